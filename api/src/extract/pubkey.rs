//! Addresses in requests and answers: 32 bytes in base58.

use std::fmt;

use five8::BASE58_ENCODED_32_MAX_LEN;
use serde::{Serialize, Serializer};
use solana_pubkey::Pubkey;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use crate::error::ApiError;

/// An address on the wire: 32 bytes in base58. It holds its text, because an answer names a mint many times, and
/// converting an address takes longer than anything else that is done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Address {
    text: [u8; BASE58_ENCODED_32_MAX_LEN],
    length: u8,
}

impl Address {
    /// The text of `pubkey`.
    #[must_use]
    pub fn new(pubkey: &Pubkey) -> Self {
        let mut text = [0; BASE58_ENCODED_32_MAX_LEN];
        let length = five8::encode_32(pubkey.as_array(), &mut text);
        Self { text, length }
    }

    fn as_str(&self) -> &str {
        let text = self.text.get(..usize::from(self.length));
        text.and_then(|text| str::from_utf8(text).ok())
            .expect("base58 is ASCII, and its length is that of what was written")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
    text.parse()
        .map_err(|_| ApiError::invalid(field, "must be an address: 32 bytes in base58"))
}
