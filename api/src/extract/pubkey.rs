//! Addresses in base58.

use solana_pubkey::Pubkey;

use crate::error::ApiError;

/// Parses the base58 address in `field`.
///
/// # Errors
/// [`ApiError::InvalidField`] when it is not 32 bytes of base58.
pub fn parse_pubkey(field: &str, text: &str) -> Result<Pubkey, ApiError> {
    text.parse()
        .map_err(|_| ApiError::invalid(field, "must be an address: 32 bytes in base58"))
}
