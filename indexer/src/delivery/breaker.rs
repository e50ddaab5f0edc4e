//! Circuit breaker and adaptive concurrency of one endpoint (pure).
//!
//! The retry schedule is about one message; this is about the endpoint. While the breaker is closed, messages flow, as
//! many at once as the endpoint has shown to bear. An endpoint that says it has too much (429, 502, 504, or
//! Retry-After) pauses for a while and then gets half as many at once. One that fails
//! [`FAILURES_TO_OPEN`] times in a row trips the breaker: nothing is sent before a pause is over, and then one
//! message, the probe. A probe that fails doubles the pause; one that is accepted is followed by a second, and then
//! messages flow again, slowly first. Nothing is lost meanwhile: what is not attempted does not move on in
//! its schedule.

use std::time::Duration;

use sluice_store::{Breaker, EndpointState, Observation, Timestamp};

use super::limits::{FIRST_CONCURRENCY, LEAST_CONCURRENCY};

/// Failed attempts in a row after which the breaker trips: more than one restart of an endpoint fails, with
/// several messages in flight, less than a minute of a busy webhook.
pub const FAILURES_TO_OPEN: u32 = 10;

/// First pause after the breaker tripped.
pub const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// Longest pause: an endpoint that heals is noticed within it.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Pause of an endpoint that has too much and does not say for how long.
pub const SLOW_DOWN: Duration = Duration::from_secs(5);

/// Longest pause of all messages that an endpoint can ask for. A single message may be put off for longer.
pub const LONGEST_SLOW_DOWN: Duration = Duration::from_secs(60 * 60);

/// Pauses are spread by this fraction to either side, so that endpoints behind one proxy do not return
/// together.
const JITTER: f64 = 0.2;

/// The state of an endpoint after an attempt that began at `started` and ended at `ended`. `most` is the most
/// attempts that may be in flight to an endpoint; `jitter` any uniformly drawn number.
#[must_use]
pub fn on_attempt(
    state: EndpointState,
    observation: Observation,
    (started, ended): (Timestamp, Timestamp),
    most: u32,
    jitter: u32,
) -> EndpointState {
    // Of several in flight when the endpoint was paused, the first one's result counts.
    let known = state.paused_until.is_some_and(|until| started < until);
    match observation {
        Observation::Accepted => accepted(state, ended, most),
        Observation::Failed if known && state.breaker != Breaker::Closed => state,
        Observation::Failed => failed(state, ended, jitter),
        Observation::Overloaded(asked) => {
            let slowed = if known {
                state
            } else {
                EndpointState {
                    concurrency_limit: Some(
                        (state.concurrency_limit.unwrap_or(most) / 2).max(LEAST_CONCURRENCY),
                    ),
                    ..failed(state, ended, jitter)
                }
            };
            let asked = asked.unwrap_or(SLOW_DOWN).min(LONGEST_SLOW_DOWN);
            let until = ended.after(spread(asked, jitter).max(asked));
            EndpointState {
                paused_until: slowed.paused_until.max(Some(until)),
                ..slowed
            }
        }
    }
}

fn accepted(state: EndpointState, ended: Timestamp, most: u32) -> EndpointState {
    match state.breaker {
        Breaker::Closed => EndpointState {
            failures: 0,
            trips: 0,
            // One accepted message does not end the pause that another one was asked for.
            paused_until: state.paused_until.filter(|until| ended < *until),
            // Twice as many after each accepted message, until there is no need to count.
            concurrency_limit: state
                .concurrency_limit
                .map(|now| now.saturating_mul(2))
                .filter(|next| *next < most),
            ..state
        },
        Breaker::Open => EndpointState {
            breaker: Breaker::HalfOpen,
            failures: 0,
            paused_until: None,
            ..state
        },
        Breaker::HalfOpen => EndpointState {
            breaker: Breaker::Closed,
            failures: 0,
            trips: 0,
            paused_until: None,
            concurrency_limit: Some(FIRST_CONCURRENCY).filter(|few| *few < most),
        },
    }
}

fn failed(state: EndpointState, ended: Timestamp, jitter: u32) -> EndpointState {
    let failures = state.failures.saturating_add(1);
    if state.breaker == Breaker::Closed && failures < FAILURES_TO_OPEN {
        return EndpointState { failures, ..state };
    }
    let pause = FIRST_PAUSE
        .saturating_mul(1u32.checked_shl(state.trips).unwrap_or(u32::MAX))
        .min(LONGEST_PAUSE);
    EndpointState {
        breaker: Breaker::Open,
        failures,
        trips: state.trips.saturating_add(1),
        paused_until: Some(ended.after(spread(pause, jitter))),
        concurrency_limit: state.concurrency_limit,
    }
}

fn spread(pause: Duration, jitter: u32) -> Duration {
    pause.mul_f64(1.0 + JITTER * (2.0 * f64::from(jitter) / f64::from(u32::MAX) - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 16;
    const MIDDLE: u32 = u32::MAX / 2;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    /// The attempt took no time.
    fn next(state: EndpointState, observation: Observation, now: i64) -> EndpointState {
        on_attempt(state, observation, (at(now), at(now)), MOST, MIDDLE)
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
            let state = on_attempt(state, Observation::Failed, (at(0), at(0)), MOST, random);
            state.paused_until.map(Timestamp::unix_millis)
        };
        assert_eq!((pause(0), pause(u32::MAX)), (Some(8_000), Some(12_000)));
    }
}
