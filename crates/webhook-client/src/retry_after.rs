//! Parses the header Retry-After (pure).

use std::time::{Duration, SystemTime};

/// Reads a Retry-After header: seconds, or an HTTP date, which means nothing when it has passed.
#[must_use]
pub fn parse(value: &str, now: SystemTime) -> Option<Duration> {
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

    #[test]
    fn both_forms_are_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 60);
        let parse = |value| super::parse(value, now);
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
