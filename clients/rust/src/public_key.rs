//! Public key of a webhook, `whpk_…`: verifies signatures of version `v1a`, which are Ed25519, and can make none (pure).

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::{Engine, prelude::BASE64_STANDARD};

/// How the text of every public key begins.
const PREFIX: &str = "whpk_";

/// Before the base64 of a signature that it verifies. Other versions are passed over.
const VERSION: &str = "v1a,";

/// Length of a key, bytes.
const LENGTH: usize = 32;

/// The most signatures that are looked at: the secret and those before it that still sign are five at most, of two versions.
const MOST_SIGNATURES: usize = 16;

/// What verifies a webhook's asymmetric signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; LENGTH]);

impl PublicKey {
    /// Whether a text means to be a public key rather than a secret.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The key of a text, which is base64 after `whpk_`.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// Whether one of the signatures, which stand apart by a space, is this key's of `signed`.
    pub fn has_signed(&self, signed: &[u8], signatures: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        signatures
            .split(' ')
            .take(MOST_SIGNATURES)
            .filter_map(|text| BASE64_STANDARD.decode(text.strip_prefix(VERSION)?).ok())
            .any(|signature| key.verify(signed, &signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "whpk_EVcMhRPaI5bkX7v8w4055FIPiiS1vp2UEuSBm/Aka5M=";

    /// What the key has signed; made with Node's own Ed25519.
    const SIGNED: &str = r#"msg_000000000000000586a8240185e5155b503e16cba7e0c97224422e02b6a9782e.1700000000.{"type":"heartbeat","sequence":18446744073709551615,"slot":5,"data":{"lastSequence":4,"text":"é"}}"#;

    const SIGNATURE: &str = "v1a,dN4XWFw8rZ0KLuPcZ/iVQSMXJtS55X5bBZ64RpDMDFsxF5iaJ/Tc9qOa9oTSrhi91j9viHE2spiY4YFwux0hBw==";

    #[test]
    fn signatures_of_another_library_are_verified() {
        let key = PublicKey::parse(KEY).expect("a key");
        assert!(key.has_signed(SIGNED.as_bytes(), SIGNATURE));
        let among_others = format!("v1,AAAA v1a,AAAA v2,{} {SIGNATURE}", &SIGNATURE[4..]);
        assert!(key.has_signed(SIGNED.as_bytes(), &among_others));
    }

    /// Test 2 of RFC 8032, section 7.1.
    #[test]
    fn the_vector_of_the_standard_is_verified() {
        let key = PublicKey::parse("whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=");
        let signature = "v1a,kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==";
        let key = key.expect("a key");
        assert!(key.has_signed(b"\x72", signature));
        assert!(!key.has_signed(b"\x73", signature));
    }

    #[test]
    fn what_another_key_another_body_or_another_version_has_is_no_signature() {
        let key = PublicKey::parse(KEY).expect("a key");
        let other = SIGNED.replace("\"slot\":5", "\"slot\":6");
        assert!(!key.has_signed(other.as_bytes(), SIGNATURE));
        let stranger = PublicKey([7; LENGTH]);
        assert!(!stranger.has_signed(SIGNED.as_bytes(), SIGNATURE));
        for signatures in [
            "",
            "v1a,",
            "v1a,AAAA",
            &SIGNATURE[4..],
            &SIGNATURE.replacen("v1a", "v1", 1),
        ] {
            assert!(
                !key.has_signed(SIGNED.as_bytes(), signatures),
                "{signatures}"
            );
        }
        let too_many = format!("{}{SIGNATURE}", "v1a,AAAA ".repeat(MOST_SIGNATURES));
        assert!(!key.has_signed(SIGNED.as_bytes(), &too_many));
    }

    #[test]
    fn a_key_is_as_long_as_keys_are() {
        for text in ["", "whpk_", "whpk_AAAA", "whpk_?", &KEY[5..], "whsec_AAAA"] {
            assert_eq!(PublicKey::parse(text), None, "{text}");
        }
    }
}
