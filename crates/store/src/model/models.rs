//! Typed identifiers, times and secrets.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use thiserror::Error;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Longest identifier accepted from outside. Ours are shorter; the limit keeps a hostile one out of
/// queries and logs.
const MAX_ID_BYTES: usize = 80;

/// A text is not an identifier of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not an identifier of the form {prefix}… with letters and digits")]
pub struct InvalidId {
    prefix: &'static str,
}

pub(crate) fn check_id(text: &str, prefix: &'static str) -> Result<(), InvalidId> {
    let rest = text.strip_prefix(prefix).unwrap_or_default();
    let fits = text.len() <= MAX_ID_BYTES;
    if fits && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(InvalidId { prefix })
}

/// What every identifier does with its text. The type has a `PREFIX` and holds the whole text.
macro_rules! text_of_id {
    ($id:ident) => {
        impl $id {
            /// Reads an identifier.
            ///
            /// # Errors
            /// [`InvalidId`] when the text cannot be one.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                check_id(text, Self::PREFIX)?;
                Ok(Self(text.to_owned()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text_of_id;

/// Identifier of a webhook: `wh_` and letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookId(String);

impl WebhookId {
    const PREFIX: &'static str = "wh_";

    /// An identifier from 16 random bytes, which makes guessing or meeting another one hopeless.
    #[must_use]
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(random)))
    }
}

text_of_id!(WebhookId);

/// Identifier of a message, sent as `webhook-id`: `msg_` and letters and digits, hence never the dot
/// that separates the parts of the signed text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

impl MessageId {
    const PREFIX: &'static str = "msg_";

    /// Makes an identifier from bytes that identify the event.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(bytes)))
    }
}

text_of_id!(MessageId);

/// Counts the webhook writes that changed what must be matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A point in time with the millisecond precision that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

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

/// A webhook's signing secret: `whsec_` and the base64 of its key. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// How every secret begins.
    pub const PREFIX: &'static str = "whsec_";

    /// A secret from 32 random bytes; Standard Webhooks asks for 24 to 64.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, STANDARD.encode(random)))
    }

    /// A secret as the store wrote it.
    pub(crate) fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The secret itself; call it only to sign, or to show it once to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked_at_the_door() {
        let id = WebhookId::from_random([7; 16]);
        assert_eq!(WebhookId::parse(id.as_str()), Ok(id));
        let longest = format!("wh_{}", "a".repeat(MAX_ID_BYTES - 3));
        assert!(WebhookId::parse(&longest).is_ok());
        let too_long = format!("{longest}a");
        for bad in [
            "",
            "wh_",
            "wh",
            "msg_1",
            "wh_a.b",
            "wh_a'--",
            "wh_ä",
            too_long.as_str(),
        ] {
            assert!(WebhookId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(!MessageId::from_bytes([0xab; 32]).as_str().contains('.'));
    }

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

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::from_random([1; 32]);
        assert!(secret.expose().starts_with("whsec_"));
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }
}
