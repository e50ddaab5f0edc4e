//! When to try again: a pure function of what happened.

use std::time::{Duration, SystemTime};

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Pauses before the first, second, … attempt: the schedule that Standard Webhooks recommends. It spans
/// three days, so that a receiver which breaks on a Friday evening loses nothing by Monday.
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

/// Longest pause that a receiver can ask for with Retry-After: the longest of the schedule, so that no
/// header can postpone a message for ever.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * HOUR);

/// The pause is spread by this fraction to either side, so that messages which failed together do not
/// return together.
const JITTER: f64 = 0.2;

/// The pause before the next attempt after `attempts` have failed, or `None` when the schedule is
/// over. A Retry-After can only lengthen it. `random` is any uniformly drawn number.
#[must_use]
pub fn next_pause(
    schedule: &[Duration],
    attempts: u32,
    retry_after: Option<Duration>,
    random: u32,
) -> Option<Duration> {
    let scheduled = *schedule.get(usize::try_from(attempts).ok()?)?;
    let spread = 1.0 + JITTER * (2.0 * f64::from(random) / f64::from(u32::MAX) - 1.0);
    let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
    Some(scheduled.mul_f64(spread).max(asked))
}

/// Reads a Retry-After header: seconds, or an HTTP date, which means nothing when it has passed.
#[must_use]
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value.trim())
        .ok()?
        .duration_since(now)
        .ok()
}

#[cfg(test)]
mod tests {
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
    fn a_receiver_can_lengthen_the_pause_up_to_the_cap_but_not_shorten_it() {
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

    #[test]
    fn both_forms_of_retry_after_are_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 60);
        let parse = |value| parse_retry_after(value, now);
        assert_eq!(parse("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse(" 0 "), Some(Duration::ZERO));
        assert_eq!(
            parse("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(Duration::from_secs(60))
        );
        assert_eq!(parse("Sun, 06 Nov 1994 08:47:37 GMT"), None, "in the past");
        for nonsense in ["", "-1", "1.5", "soon", "99999999999999999999999"] {
            assert_eq!(parse(nonsense), None, "{nonsense:?}");
        }
    }
}
