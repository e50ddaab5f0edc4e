//! Signs messages by Standard Webhooks 1.0 (pure).
//!
//! A signature is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, under the bytes that the
//! secret's text stands for; or `v1a,` and that of Ed25519 over the same, under a key that follows from these bytes. So one
//! secret is kept, sealed and rotated for both. Who knows it can sign by either; who has the public key can by neither.
//!
//! The scheme's own library hashes without the processor's instructions, which makes signing the dearest
//! part of a delivery; the tests hold these signatures against it.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{DecodeError, Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use sluice_store::{MessageId, Secret, SignatureVersion};
use thiserror::Error;

/// What of a secret's bytes the key of asymmetric signatures is: their HMAC-SHA256 of this text is its seed.
const ASYMMETRIC_KEY: &[u8] = b"sluice v1a signing key";

/// How every public key begins.
const PUBLIC_KEY_PREFIX: &str = "whpk_";

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
    version: SignatureVersion,
    id: &MessageId,
    seconds: i64,
    body: &[u8],
) -> Result<String, SecretFault> {
    let seconds = seconds.to_string();
    let signed = [id.as_str().as_bytes(), b".", seconds.as_bytes(), b".", body];
    let mut signature = format!("{},", version.name());
    match version {
        SignatureVersion::V1 => {
            let mac = mac(&bytes(secret)?, &signed);
            BASE64_STANDARD.encode_string(mac, &mut signature);
        }
        SignatureVersion::V1a => {
            let made = asymmetric_key(secret)?.sign(&signed.concat());
            BASE64_STANDARD.encode_string(made, &mut signature);
        }
    }
    Ok(signature)
}

/// The public key by which the asymmetric signatures of a secret are verified: `whpk_` and its base64.
///
/// # Errors
/// The text of the secret is none.
pub fn public_key(secret: &Secret) -> Result<String, SecretFault> {
    let mut text = PUBLIC_KEY_PREFIX.to_owned();
    BASE64_STANDARD.encode_string(asymmetric_key(secret)?.public_key(), &mut text);
    Ok(text)
}

/// The bytes that a secret's text stands for.
fn bytes(secret: &Secret) -> Result<Vec<u8>, SecretFault> {
    let text = secret.expose().strip_prefix(Secret::PREFIX);
    Ok(BASE64_STANDARD.decode(text.ok_or(SecretFault::Prefix)?)?)
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac: Hmac<Sha256> = Mac::new_from_slice(key).expect("HMAC takes keys of every length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn asymmetric_key(secret: &Secret) -> Result<Ed25519KeyPair, SecretFault> {
    let seed = mac(&bytes(secret)?, &[ASYMMETRIC_KEY]);
    Ok(Ed25519KeyPair::from_seed_unchecked(&seed).expect("every 32 bytes are a seed"))
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
                sign(&secret, SignatureVersion::V1, &id, seconds, &body).expect("a secret"),
                library.sign(id.as_str(), seconds, &body).expect("valid"),
            );
        }
    }

    /// Made with Node's own Ed25519.
    #[test]
    fn an_asymmetric_signature_and_its_public_key_are_those_of_another_library() {
        const BODY: &str = r#"{"type":"heartbeat","sequence":18446744073709551615,"slot":5,"data":{"lastSequence":4,"text":"é"}}"#;
        let text = "msg_000000000000000586a8240185e5155b503e16cba7e0c97224422e02b6a9782e";
        let id = MessageId::parse(text).expect("an id");
        let secret = Secret::from_random([7; 32]);
        assert_eq!(
            public_key(&secret).expect("a secret"),
            "whpk_EVcMhRPaI5bkX7v8w4055FIPiiS1vp2UEuSBm/Aka5M="
        );
        let version = SignatureVersion::V1a;
        let signature = sign(&secret, version, &id, 1_700_000_000, BODY.as_bytes());
        assert_eq!(
            signature.expect("a secret"),
            "v1a,dN4XWFw8rZ0KLuPcZ/iVQSMXJtS55X5bBZ64RpDMDFsxF5iaJ/Tc9qOa9oTSrhi91j9viHE2spiY4YFwux0hBw=="
        );
    }
}
