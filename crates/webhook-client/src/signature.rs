//! Signs messages by Standard Webhooks 1.0 (pure).
//!
//! A signature is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, under the bytes that the
//! secret's text stands for.
//!
//! The scheme's own library hashes without the processor's instructions, which makes signing the dearest
//! part of a delivery; the tests hold these signatures against it.

use base64::{DecodeError, Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use sluice_store::{MessageId, Secret};
use thiserror::Error;

/// Version of the scheme, before the signature.
const VERSION: &str = "v1,";

/// Why a secret signs nothing.
#[derive(Debug, Error)]
pub enum SecretFault {
    /// Its text does not begin as secrets do.
    #[error("it does not begin with {}", Secret::PREFIX)]
    Prefix,
    /// The rest is no base64.
    #[error("it is not base64: {0}")]
    Base64(#[from] DecodeError),
}

/// Signs `body`, sent under `id` at `seconds` of Unix time.
///
/// # Errors
/// The text of the secret is none.
pub(crate) fn sign(
    secret: &Secret,
    id: &MessageId,
    seconds: i64,
    body: &[u8],
) -> Result<String, SecretFault> {
    let text = secret.expose().strip_prefix(Secret::PREFIX);
    let key = BASE64_STANDARD.decode(text.ok_or(SecretFault::Prefix)?)?;
    let mut mac: Hmac<Sha256> = Mac::new_from_slice(&key).expect("HMAC takes keys of every length");
    for part in [
        id.as_str().as_bytes(),
        b".",
        seconds.to_string().as_bytes(),
        b".",
        body,
    ] {
        mac.update(part);
    }
    let mut signature = VERSION.to_owned();
    BASE64_STANDARD.encode_string(mac.finalize().into_bytes(), &mut signature);
    Ok(signature)
}

#[cfg(test)]
mod tests {
    use standardwebhooks::Webhook;

    use super::*;

    #[test]
    fn a_signature_is_the_one_of_the_schemes_own_library() {
        let id = MessageId::from_bytes([7; 32]);
        for (byte, length, seconds) in [(1, 0, 0), (2, 1, 1_700_000_000), (3, 5_000, i64::MAX)] {
            let (secret, body) = (Secret::from_random([byte; 32]), vec![b'x'; length]);
            let library = Webhook::new(secret.expose()).expect("a secret");
            assert_eq!(
                sign(&secret, &id, seconds, &body).expect("a secret"),
                library.sign(id.as_str(), seconds, &body).expect("valid"),
            );
        }
    }
}
