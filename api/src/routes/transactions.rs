//! `/v1/transactions`: sends signed swaps, says what became of them, and explains any transaction.

pub mod explain;
mod explained;
pub mod get;
pub mod send;
pub mod stream;
mod wire;

use solana_signature::Signature;

use crate::error::ApiError;

/// The signature of a path.
fn signature(text: &str) -> Result<Signature, ApiError> {
    let parsed = text.parse();
    parsed.map_err(|_| ApiError::invalid("signature", "is none; write its 64 bytes in base 58"))
}

/// That this one is not followed.
fn unknown(signature: &Signature) -> ApiError {
    ApiError::NotFound {
        what: "followed transaction of the signature",
        id: signature.to_string(),
    }
}
