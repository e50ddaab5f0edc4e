//! Circuit breaker: when it opens, how long it pauses, and how the concurrency adapts.

use super::*;

const MOST: u32 = 16;
const MIDDLE: u32 = u32::MAX / 2;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

/// The attempt took no time.
fn next(state: EndpointState, observation: Observation, now: i64) -> EndpointState {
    on_attempt(state, observation, (at(now), at(now)), MOST, false, MIDDLE)
}

fn pause(state: EndpointState, now: i64) -> i64 {
    let until = state.paused_until.map_or(0, Timestamp::unix_millis);
    (until - at(now).unix_millis() + 500) / 1000
}

fn opened() -> EndpointState {
    (0..FAILURES_TO_OPEN).fold(EndpointState::default(), |state, _| {
        next(state, Observation::Failed, 0)
    })
}

#[test]
fn failures_in_a_row_open_it_and_one_success_begins_anew() {
    let mut state = EndpointState::default();
    for _ in 1..FAILURES_TO_OPEN {
        state = next(state, Observation::Failed, 0);
        assert_eq!((state.breaker, state.paused_until), (Breaker::Closed, None));
    }
    let saved = next(state, Observation::Accepted, 0);
    assert_eq!(saved, EndpointState::default());
    let state = next(state, Observation::Failed, 0);
    assert_eq!(state.breaker, Breaker::Open);
    assert_eq!(pause(state, 0), 10);
}

#[test]
fn an_endpoint_in_order_opens_it_by_the_time_for_which_it_fails() {
    use Observation::{Accepted, Failed};
    let after = |made: &[(Observation, i64)], in_order| {
        let first = EndpointState::default();
        let state = made.iter().fold(first, |state, (observation, now)| {
            let took = (at(*now), at(*now));
            on_attempt(state, *observation, took, MOST, in_order, MIDDLE)
        });
        (state.breaker, state.failures)
    };
    // As the schedule has it: at once, after five seconds, after five minutes.
    let made = [(Failed, 0), (Failed, 5), (Failed, 305)];
    assert_eq!(after(&made[..2], true), (Breaker::Closed, 2));
    assert_eq!(after(&made, true), (Breaker::Open, 3));
    let others = after(&made, false);
    assert_eq!(others, (Breaker::Closed, 3), "others make more attempts");
    assert_eq!(after(&[(Failed, 0), (Failed, 60)], true).0, Breaker::Open);
    let anew = [(Failed, 0), (Accepted, 50), (Failed, 100), (Failed, 159)];
    let state = after(&anew, true);
    assert_eq!(state, (Breaker::Closed, 2), "counted from the first since");
}

#[test]
fn a_probe_that_fails_doubles_the_pause_up_to_the_longest() {
    let mut state = opened();
    let mut now = 0;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let length = pause(state, now);
        pauses.push(length);
        now += length + 1;
        state = next(state, Observation::Failed, now);
        assert_eq!(state.breaker, Breaker::Open);
    }
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300, 300, 300]);
}

#[test]
fn attempts_that_began_before_the_pause_do_not_lengthen_it() {
    let state = opened();
    assert_eq!(next(state, Observation::Failed, 1), state);
    assert_eq!(next(state, Observation::Overloaded(None), 1), state);
    let slowed = next(EndpointState::default(), Observation::Overloaded(None), 0);
    let again = next(slowed, Observation::Overloaded(None), 1);
    assert_eq!(
        (again.concurrency_limit, again.failures),
        (slowed.concurrency_limit, slowed.failures)
    );
}

#[test]
fn two_accepted_probes_close_it_and_messages_flow_slowly_first() {
    let state = next(opened(), Observation::Accepted, 20);
    assert_eq!(
        (state.breaker, state.paused_until),
        (Breaker::HalfOpen, None)
    );
    let again = next(state, Observation::Failed, 20);
    assert_eq!((again.breaker, pause(again, 20)), (Breaker::Open, 20));
    let mut state = next(state, Observation::Accepted, 20);
    let mut limits = Vec::new();
    for _ in 0..4 {
        assert_eq!((state.breaker, state.trips), (Breaker::Closed, 0));
        limits.push(state.concurrency_limit);
        state = next(state, Observation::Accepted, 20);
    }
    assert_eq!(limits, [Some(2), Some(4), Some(8), None]);
    assert_eq!(state, EndpointState::default());
}

#[test]
fn an_endpoint_with_too_much_pauses_as_asked_and_gets_half() {
    let slowed = next(EndpointState::default(), Observation::Overloaded(None), 0);
    assert_eq!(slowed.breaker, Breaker::Closed);
    assert_eq!((pause(slowed, 0), slowed.concurrency_limit), (5, Some(8)));
    let asked = Observation::Overloaded(Some(Duration::from_secs(60)));
    let slower = next(slowed, asked, 6);
    assert_eq!((pause(slower, 6), slower.concurrency_limit), (60, Some(4)));
    let for_ever = Observation::Overloaded(Some(Duration::MAX));
    let capped = next(slower, for_ever, 100);
    assert_eq!(
        (pause(capped, 100), capped.concurrency_limit),
        (3600, Some(2))
    );
    assert_eq!(
        next(capped, Observation::Accepted, 101).paused_until,
        capped.paused_until
    );
    assert_eq!(next(capped, Observation::Accepted, 5000).paused_until, None);
    let shorter = next(capped, Observation::Overloaded(None), 101);
    assert_eq!(shorter, capped, "never shortened");
}

#[test]
fn an_endpoint_that_only_ever_has_too_much_trips_the_breaker_too() {
    let mut state = EndpointState::default();
    for round in 0..FAILURES_TO_OPEN {
        state = next(state, Observation::Overloaded(None), i64::from(round) * 100);
    }
    assert_eq!(state.breaker, Breaker::Open);
    assert_eq!(state.concurrency_limit, Some(1));
}

#[test]
fn pauses_are_spread() {
    let pause = |random| {
        let state = EndpointState {
            failures: FAILURES_TO_OPEN,
            ..EndpointState::default()
        };
        let state = on_attempt(
            state,
            Observation::Failed,
            (at(0), at(0)),
            MOST,
            false,
            random,
        );
        state.paused_until.map(Timestamp::unix_millis)
    };
    assert_eq!((pause(0), pause(u32::MAX)), (Some(8_000), Some(12_000)));
}
