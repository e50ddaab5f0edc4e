//! [`SignedRequest`]: the headers and the bytes of an attempt (pure).
//!
//! The signature is the one of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, one for each
//! secret that is valid, separated by spaces. It is made over the JSON text, also when that is sent
//! compressed: an endpoint's framework inflates before its code, and with it the verifying library, sees the
//! body.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderName,
    InvalidHeaderValue, USER_AGENT,
};
use sluice_store::{MessageId, Secrets, Timestamp};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use thiserror::Error;

use crate::signature::{self, SecretFault};

/// Name of Sluice in the header User-Agent.
const AGENT: &str = concat!("Sluice/", env!("CARGO_PKG_VERSION"), " (webhooks)");

/// Bodies up to this length are sent as they are: they fit in a few packets, and inflating them would cost
/// the endpoint more than receiving them.
pub const MAX_PLAIN_BYTES: usize = 4 * 1024;

/// What stands in the record of an attempt for the value of a header that the webhook's owner chose: it may
/// be a password.
pub const HIDDEN: &str = "REDACTED";

/// Headers that every request has; with the one about compression.
const OUR_HEADERS: usize = 6;

/// Header names that a webhook's owner cannot choose: they are ours, or the protocol's.
const RESERVED: [&str; 18] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// Start of names that Standard Webhooks keeps for itself.
const RESERVED_PREFIX: &str = "webhook-";

/// Whether a webhook's owner may not choose a header of this name, in whatever case.
#[must_use]
pub fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(RESERVED_PREFIX) || RESERVED.contains(&name.as_str())
}

/// A message to be signed and posted.
#[derive(Clone, Copy, Debug)]
pub struct WebhookRequest<'a> {
    /// Sent as `webhook-id`.
    pub id: &'a MessageId,
    /// URL to call.
    pub url: &'a str,
    /// Secrets to sign with.
    pub secrets: &'a Secrets,
    /// Headers that the webhook's owner wants sent. Reserved ones are left out.
    pub headers: &'a [(String, String)],
    /// Whether a long body may be compressed.
    pub gzip: bool,
    /// JSON.
    pub body: &'a str,
}

/// Why a request cannot be made at all; only a damaged database leads here.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The secret is none.
    #[error("cannot be signed: {0}")]
    Secret(#[from] SecretFault),
    /// A name that is none.
    #[error("a header's name is malformed: {0}")]
    Name(#[from] InvalidHeaderName),
    /// A value that is none.
    #[error("a header's value is malformed: {0}")]
    Value(#[from] InvalidHeaderValue),
    /// Compression failed.
    #[error("cannot be compressed: {0}")]
    Gzip(#[from] std::io::Error),
}

/// A signed request, and its headers as the record of the attempt shows them.
#[derive(Clone, Debug)]
pub struct SignedRequest {
    /// All headers.
    pub headers: HeaderMap,
    /// Names and values, those of the owner hidden.
    pub shown: Vec<(String, String)>,
    /// Bytes to send.
    pub body: Vec<u8>,
}

/// Signs the request of an attempt made at `now`. The id stays the same over all attempts, the timestamp is the
/// attempt's, so that an endpoint can refuse a replayed request by its age.
///
/// # Errors
/// [`RequestError`].
pub fn sign(request: &WebhookRequest<'_>, now: Timestamp) -> Result<SignedRequest, RequestError> {
    let mut headers = HeaderMap::with_capacity(OUR_HEADERS + request.headers.len());
    for (name, value) in request.headers {
        if !is_reserved_header(name) {
            headers.append(
                HeaderName::from_bytes(name.as_bytes())?,
                HeaderValue::from_str(value)?,
            );
        }
    }
    let hidden: Vec<HeaderName> = headers.keys().cloned().collect();
    let seconds = now.unix_seconds();
    let ours = [
        (CONTENT_TYPE, "application/json"),
        (USER_AGENT, AGENT),
        (
            HeaderName::from_static(HEADER_WEBHOOK_ID),
            request.id.as_str(),
        ),
        (
            HeaderName::from_static(HEADER_WEBHOOK_TIMESTAMP),
            &seconds.to_string(),
        ),
        (
            HeaderName::from_static(HEADER_WEBHOOK_SIGNATURE),
            &signatures(request, seconds)?,
        ),
    ];
    for (name, value) in ours {
        headers.insert(name, HeaderValue::from_str(value)?);
    }
    let body = if request.gzip && request.body.len() > MAX_PLAIN_BYTES {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        compress(request.body.as_bytes())?
    } else {
        request.body.as_bytes().to_vec()
    };
    let shown = headers
        .iter()
        .map(|(name, value)| {
            let value = if hidden.contains(name) {
                HIDDEN.to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.to_string(), value)
        })
        .collect();
    Ok(SignedRequest {
        headers,
        shown,
        body,
    })
}

fn signatures(request: &WebhookRequest<'_>, seconds: i64) -> Result<String, SecretFault> {
    let body = request.body.as_bytes();
    let secrets = request.secrets.iter();
    let signed: Result<Vec<_>, _> = secrets
        .map(|secret| signature::sign(secret, request.id, seconds, body))
        .collect();
    Ok(signed?.join(" "))
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        time::{Duration, SystemTime},
    };

    use flate2::read::GzDecoder;
    use sluice_store::Secret;
    use standardwebhooks::Webhook;

    use super::*;

    fn secrets(current: u8, previous: Option<u8>) -> Secrets {
        let secret = |byte| Secret::from_random([byte; 32]);
        Secrets {
            current: secret(current),
            previous: previous.map(secret).into_iter().collect(),
        }
    }

    fn verifier(byte: u8) -> Webhook {
        Webhook::new(Secret::from_random([byte; 32]).expose()).expect("valid secret")
    }

    fn request(secrets: &Secrets, now: Timestamp, body: &str) -> SignedRequest {
        let unsigned = WebhookRequest {
            id: &MessageId::from_bytes([1; 32]),
            url: "https://example.com/",
            secrets,
            headers: &[],
            gzip: true,
            body,
        };
        sign(&unsigned, now).expect("builds")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the verifier compares with the system's clock"
    )]
    fn now() -> Timestamp {
        Timestamp::from(SystemTime::now())
    }

    #[test]
    fn the_official_verifier_accepts_the_signature_and_nothing_else() {
        let body = "{\"type\":\"transaction\"}";
        let signed = request(&secrets(9, None), now(), body).headers;
        verifier(9).verify(body.as_bytes(), &signed).expect("good");
        assert!(
            verifier(9)
                .verify(b"{\"type\":\"transactioN\"}", &signed)
                .is_err()
        );
        assert!(verifier(8).verify(body.as_bytes(), &signed).is_err());
        let old = request(
            &secrets(9, None),
            now().before(Duration::from_secs(600)),
            body,
        )
        .headers;
        assert!(
            verifier(9).verify(body.as_bytes(), &old).is_err(),
            "replayed after ten minutes"
        );
        let mut renamed = signed;
        let other_id = MessageId::from_bytes([2; 32]);
        renamed.insert(
            HEADER_WEBHOOK_ID,
            HeaderValue::from_str(other_id.as_str()).expect("ascii"),
        );
        assert!(verifier(9).verify(body.as_bytes(), &renamed).is_err());
    }

    #[test]
    fn both_secrets_of_a_rotation_verify() {
        let signed = request(&secrets(2, Some(1)), now(), "{}").headers;
        let signature = signed[HEADER_WEBHOOK_SIGNATURE].to_str().expect("ascii");
        assert_eq!(signature.split(' ').count(), 2);
        for byte in [1, 2] {
            verifier(byte).verify(b"{}", &signed).expect("good");
        }
        assert!(verifier(3).verify(b"{}", &signed).is_err());
    }

    #[test]
    fn the_signature_is_the_one_of_the_specification() {
        // HMAC-SHA256 with 32 zero bytes as the key, computed independently.
        let secrets = secrets(0, None);
        let unsigned = WebhookRequest {
            id: &MessageId::from_bytes([0; 32]),
            url: "",
            secrets: &secrets,
            headers: &[],
            gzip: false,
            body: "{}",
        };
        let signed = sign(&unsigned, Timestamp::from_unix_seconds(1))
            .expect("builds")
            .headers;
        assert_eq!(signed[HEADER_WEBHOOK_TIMESTAMP], "1");
        assert_eq!(
            signed[HEADER_WEBHOOK_SIGNATURE],
            "v1,GLyLrxlwHwMtTgKLxn23+/53RSr5GfO78uUOFxVJPEM="
        );
    }

    #[test]
    fn a_long_body_is_compressed_and_the_signature_is_of_the_text() {
        let body = format!("\"{}\"", "a".repeat(MAX_PLAIN_BYTES));
        let request = request(&secrets(9, None), now(), &body);
        assert_eq!(request.headers[CONTENT_ENCODING], "gzip");
        assert!(request.body.len() < body.len());
        let mut inflated = String::new();
        GzDecoder::new(request.body.as_slice())
            .read_to_string(&mut inflated)
            .expect("gzip");
        assert_eq!(inflated, body);
        verifier(9)
            .verify(inflated.as_bytes(), &request.headers)
            .expect("good");
    }

    #[test]
    fn a_short_body_is_sent_as_it_is() {
        let body = "a".repeat(MAX_PLAIN_BYTES);
        let request = request(&secrets(9, None), now(), &body);
        assert_eq!(request.body, body.as_bytes());
        assert!(!request.headers.contains_key(CONTENT_ENCODING));
    }

    #[test]
    fn the_owners_headers_are_sent_but_neither_shown_nor_allowed_to_replace_ours() {
        let secrets = secrets(9, None);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let unsigned = WebhookRequest {
            id: &MessageId::from_bytes([1; 32]),
            url: "",
            secrets: &secrets,
            headers: &[
                header("Authorization", "Bearer s3cret"),
                header("Webhook-Id", "forged"),
                header("Content-Length", "0"),
                header("HOST", "internal"),
            ],
            gzip: false,
            body: "{}",
        };
        let request = sign(&unsigned, now()).expect("builds");
        assert_eq!(request.headers["authorization"], "Bearer s3cret");
        assert_eq!(request.headers[HEADER_WEBHOOK_ID], unsigned.id.as_str());
        assert!(!request.headers.contains_key("content-length"));
        assert!(!request.headers.contains_key("host"));
        assert!(!format!("{:?}", request.shown).contains("s3cret"));
        assert!(request.shown.contains(&header("authorization", HIDDEN)));
        assert!(
            request
                .shown
                .contains(&header("content-type", "application/json"))
        );
    }
}
