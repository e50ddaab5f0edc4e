//! [`Timestamp`]: a time with the millisecond precision that is stored (pure).

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A point in time with the millisecond precision that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// What tells the time to all processes on a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedTime {
    /// The clock of its server shows this.
    Server(Timestamp),
    /// It is a file, and the newest time noted in it is this: what processes before took for the present.
    Noted(Timestamp),
}

impl Timestamp {
    /// From unix milliseconds.
    #[must_use]
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// From unix seconds.
    #[must_use]
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Unix milliseconds.
    #[must_use]
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Whole unix seconds.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This time, `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This time, `duration` earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        let millis = Duration::from_millis(timestamp.0.unsigned_abs());
        if timestamp.0 < 0 {
            UNIX_EPOCH - millis
        } else {
            UNIX_EPOCH + millis
        }
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(0).after(since),
            Err(earlier) => Self(0).before(earlier.duration()),
        }
    }
}

/// ISO 8601 in UTC, such as `2026-01-31T12:00:00.25Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|time| time.format(&Rfc3339).ok())
            .ok_or(fmt::Error)?;
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_iso_8601_in_utc() {
        assert_eq!(
            Timestamp::from_unix_millis(0).to_string(),
            "1970-01-01T00:00:00Z"
        );
        assert_eq!(
            Timestamp::from_unix_millis(1_767_225_600_250).to_string(),
            "2026-01-01T00:00:00.25Z"
        );
        assert_eq!(Timestamp::from_unix_millis(-1).unix_seconds(), -1);
    }
}
