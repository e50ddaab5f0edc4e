//! Addresses in base58.

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

/// An address on the wire: 32 bytes in base58. It is written straight into the answer; an answer holds dozens of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub Pubkey);

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
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
