//! Identifiers of webhooks and messages, checked when they are read (pure).

use thiserror::Error;

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

        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
}
