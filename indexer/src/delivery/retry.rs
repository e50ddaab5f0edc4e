//! Retry schedule: the outcome of an attempt, and when the delivery is due again (pure).

use std::{sync::Arc, time::Duration};

use sluice_store::{Attempt, Outcome, Timestamp};

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Pauses before the first, second, … attempt: the schedule that Standard Webhooks recommends. It spans
/// three days, so that an endpoint which breaks on a Friday evening loses nothing by Monday.
pub const SCHEDULE: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5 * SECOND),
    Duration::from_secs(5 * MINUTE),
    Duration::from_secs(30 * MINUTE),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(5 * HOUR),
    Duration::from_secs(10 * HOUR),
    Duration::from_secs(14 * HOUR),
    Duration::from_secs(20 * HOUR),
    Duration::from_secs(24 * HOUR),
];

/// The schedule with these pauses between the attempts, of which the first is due at once; [`SCHEDULE`] when none
/// are named.
#[must_use]
pub fn schedule(pauses: Option<Vec<Duration>>) -> Arc<[Duration]> {
    match pauses {
        Some(pauses) => std::iter::once(Duration::ZERO).chain(pauses).collect(),
        None => SCHEDULE.into(),
    }
}

/// Longest pause that an endpoint can ask for with Retry-After: the longest of the schedule, so that no
/// header can postpone a message for ever.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * HOUR);

/// The pause is spread by this fraction to either side, so that messages which failed together do not
/// return together.
const JITTER: f64 = 0.2;

/// The pause before the attempt of this index, or `None` when the schedule is over. A Retry-After can only
/// lengthen it. `jitter` is any uniformly drawn number.
#[must_use]
pub fn next_pause(
    schedule: &[Duration],
    retry_index: u32,
    retry_after: Option<Duration>,
    jitter: u32,
) -> Option<Duration> {
    let scheduled = *schedule.get(usize::try_from(retry_index).ok()?)?;
    let spread = 1.0 + JITTER * (2.0 * f64::from(jitter) / f64::from(u32::MAX) - 1.0);
    let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
    Some(scheduled.mul_f64(spread).max(asked))
}

/// Status by which an endpoint says that it wants no more messages.
const GONE: u16 = 410;

/// The outcome of an attempt that was made ahead of its time, as a probe, where the retry itself is due at `own`: by failing it
/// takes no part of the schedule.
#[must_use]
pub fn ahead_of(own: Timestamp, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Retry { .. } | Outcome::Failed => Outcome::Early { at: own },
        Outcome::Delivered | Outcome::Early { .. } | Outcome::Gone { .. } => outcome,
    }
}

/// The outcome of an attempt. `retry_index` is the number of attempts of this run of the schedule that were
/// recorded before it; `jitter` any uniformly drawn number.
#[must_use]
pub fn outcome(attempt: &Attempt, retry_index: u32, schedule: &[Duration], jitter: u32) -> Outcome {
    if attempt.accepted() {
        return Outcome::Delivered;
    }
    let pause = next_pause(
        schedule,
        retry_index.saturating_add(1),
        attempt.retry_after,
        jitter,
    );
    let ended = attempt.ended();
    if attempt.status == Some(GONE) {
        return Outcome::Gone {
            reason: "the receiver answered 410 Gone".to_owned(),
            retry_at: ended.after(pause.unwrap_or_default()),
        };
    }
    match pause {
        Some(pause) => Outcome::Retry {
            at: ended.after(pause),
        },
        None => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::Timings;

    use super::*;

    const LEAST: u32 = 0;
    const MIDDLE: u32 = u32::MAX / 2;
    const MOST: u32 = u32::MAX;

    #[test]
    fn the_schedule_is_followed_to_its_end() {
        let seconds: Vec<_> = (0..=10)
            .map(|attempts| {
                next_pause(&SCHEDULE, attempts, None, MIDDLE)
                    .map(|pause| pause.as_secs_f64().round())
            })
            .collect();
        let expected = [
            0.0, 5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0,
        ];
        assert_eq!(seconds[..10], expected.map(Some));
        assert_eq!(seconds[10], None);
        assert_eq!(next_pause(&SCHEDULE, u32::MAX, None, MIDDLE), None);
    }

    #[test]
    fn the_example_file_shows_the_default_schedule() {
        // From the folder of this package, in which its tests run.
        let example =
            sluice_config::Config::load("../sluice.example.toml".as_ref()).expect("valid");
        let shown = example.webhooks.retry_pauses();
        assert!(shown.is_some());
        assert_eq!(*schedule(shown), SCHEDULE);
        assert_eq!(*schedule(None), SCHEDULE);
        assert_eq!(*schedule(Some(Vec::new())), [Duration::ZERO]);
    }

    #[test]
    fn jitter_spreads_by_a_fifth_to_either_side() {
        assert_eq!(
            next_pause(&SCHEDULE, 1, None, LEAST),
            Some(Duration::from_secs(4))
        );
        assert_eq!(
            next_pause(&SCHEDULE, 1, None, MOST),
            Some(Duration::from_secs(6))
        );
    }

    #[test]
    fn an_endpoint_can_lengthen_the_pause_up_to_the_cap_but_not_shorten_it() {
        let pause = |asked| {
            next_pause(&SCHEDULE, 2, Some(Duration::from_secs(asked)), MIDDLE).map(|p| p.as_secs())
        };
        assert_eq!(
            pause(1),
            next_pause(&SCHEDULE, 2, None, MIDDLE).map(|p| p.as_secs())
        );
        assert_eq!(pause(3600), Some(3600));
        assert_eq!(pause(u64::MAX), Some(LONGEST_RETRY_AFTER.as_secs()));
        assert_eq!(
            next_pause(&SCHEDULE, 10, Some(Duration::from_secs(1)), MIDDLE),
            None
        );
    }

    fn attempt(status: u16, error: Option<&str>) -> Attempt {
        Attempt {
            number: 0,
            url: String::new(),
            started: Timestamp::from_unix_millis(0),
            duration: Duration::ZERO,
            timings: Timings::default(),
            status: Some(status),
            error: error.map(str::to_owned),
            retry_after: None,
            request_headers: Vec::new(),
            response: None,
            response_cut: false,
        }
    }

    #[test]
    fn a_probe_ahead_of_its_time_takes_no_part_of_the_schedule() {
        let own = Timestamp::from_unix_millis(9);
        let of =
            |attempt: &Attempt, before| ahead_of(own, outcome(attempt, before, &SCHEDULE, MIDDLE));
        let refused = attempt(500, Some("answered 500"));
        assert_eq!(of(&refused, 1), Outcome::Early { at: own });
        assert_eq!(of(&refused, 9), Outcome::Early { at: own });
        assert_eq!(of(&attempt(200, None), 9), Outcome::Delivered);
        let gone = attempt(410, Some("answered 410"));
        assert!(matches!(of(&gone, 1), Outcome::Gone { .. }));
    }

    #[test]
    fn what_is_not_accepted_is_retried_to_the_end_of_the_schedule_unless_it_is_gone() {
        let now = Timestamp::from_unix_millis(0);
        let outcome = |attempt: &Attempt, before| outcome(attempt, before, &SCHEDULE, MIDDLE);
        assert_eq!(outcome(&attempt(200, None), 9), Outcome::Delivered);
        let refused = attempt(500, Some("answered 500"));
        assert!(matches!(outcome(&refused, 0), Outcome::Retry { at } if at > now));
        assert!(matches!(outcome(&refused, 8), Outcome::Retry { .. }));
        assert_eq!(outcome(&refused, 9), Outcome::Failed);
        let gone = attempt(410, Some("answered 410"));
        assert!(matches!(outcome(&gone, 0), Outcome::Gone { .. }));
        assert!(matches!(outcome(&gone, 9), Outcome::Gone { .. }));
    }
}
