//! Retry schedule: whether a call is repeated, and how long to wait before (pure).

use std::time::{Duration, SystemTime};

/// The first pause, before jitter. A market that is refilled takes about a second.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause, before jitter.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Whether a later attempt may succeed where one was answered with this status.
pub const fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 502 | 503 | 504)
}

/// The pause before the attempt after `attempts`: random up to a bound that doubles, so that clients which failed together do
/// not come back together. What the service asks for by `Retry-After` is added to, never shortened. `random` is 0 to 1.
pub fn pause_after(attempts: u32, asked: Duration, random: f64) -> Duration {
    let doubled = 1_u32
        .checked_shl(attempts.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let bound = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
    asked.saturating_add(bound.mul_f64(random.clamp(0.0, 1.0)))
}

/// What `Retry-After` asks for: seconds or a date. Nothing where it is absent or neither.
pub fn retry_after(header: Option<&str>, now: SystemTime) -> Duration {
    let Some(header) = header.map(str::trim) else {
        return Duration::ZERO;
    };
    if let Ok(seconds) = header.parse() {
        return Duration::from_secs(seconds);
    }
    let date = httpdate::parse_http_date(header);
    date.map_or(Duration::ZERO, |date| {
        date.duration_since(now).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_keep_to_what_is_asked() {
        let longest = |attempts| pause_after(attempts, Duration::ZERO, 1.0).as_millis();
        assert_eq!([1, 2, 3, 9, 99].map(longest), [200, 400, 800, 5000, 5000]);
        let asked = Duration::from_secs(7);
        assert_eq!(pause_after(1, asked, 0.0), asked);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let read = |header| retry_after(Some(header), now).as_secs();
        assert_eq!(read("3"), 3);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), 7);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:00 GMT"), 0);
        assert_eq!(read("soon"), 0);
        assert_eq!(retry_after(None, now), Duration::ZERO);
    }
}
