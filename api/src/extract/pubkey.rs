//! Addresses in requests and answers: 32 bytes in base58.

use std::fmt;

use serde::{Serialize, Serializer};
use solana_pubkey::Pubkey;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use super::known_addresses::{self, Text};
use crate::error::ApiError;

/// An address on the wire: 32 bytes in base58. It holds its text, because an answer names a mint many times, and
/// converting an address takes longer than anything else that is done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Address(Text);

impl Address {
    /// The text of `pubkey`.
    #[must_use]
    pub fn new(pubkey: &Pubkey) -> Self {
        Self(known_addresses::of_pubkey(pubkey))
    }

    /// The base58 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the base58 address in `field`, which is the text of no other address, and has no other text: it need not be
    /// made again where the address is answered.
    ///
    /// # Errors
    /// As [`parse_pubkey`].
    pub fn parse(field: &str, text: &str) -> Result<(Pubkey, Self), ApiError> {
        let known = known_addresses::of_text(text);
        let (pubkey, text) = known.ok_or_else(|| unreadable(field))?;
        Ok((pubkey, Self(text)))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl PartialSchema for Address {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[1-9A-HJ-NP-Za-km-z]{32,44}$"))
            .description(Some("An address: 32 bytes in base58."))
            .examples(["So11111111111111111111111111111111111111112"])
            .into()
    }
}

impl ToSchema for Address {}

/// Parses the base58 address in `field`.
///
/// # Errors
/// [`ApiError::InvalidField`] when it is not 32 bytes of base58.
pub fn parse_pubkey(field: &str, text: &str) -> Result<Pubkey, ApiError> {
    text.parse().map_err(|_| unreadable(field))
}

fn unreadable(field: &str) -> ApiError {
    ApiError::invalid(field, "must be an address: 32 bytes in base58")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_text() {
        let zeros = |count: usize| {
            let mut bytes = [7; 32];
            bytes[..count].fill(0);
            Pubkey::from(bytes)
        };
        for pubkey in (0..=32).map(zeros) {
            let text = pubkey.to_string();
            let (parsed, kept) = Address::parse("mint", &text).expect("an address");
            assert_eq!((parsed, kept), (pubkey, Address::new(&pubkey)));
            let fewer = text.strip_prefix('1').map(str::to_owned);
            let others = [Some(format!("1{text}")), Some(format!("{text} ")), fewer];
            for other in others.into_iter().flatten() {
                let refused = Address::parse("mint", &other).expect_err(&other);
                assert_eq!(refused.code(), "invalid_field");
            }
        }
    }
}
