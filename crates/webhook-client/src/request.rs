//! [`SignedRequest`]: the headers and the bytes of an attempt (pure).
//!
//! The signature is the one of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, one for each
//! secret that is valid, separated by spaces, and Ed25519 where the owner asks for it. It is made over the JSON text, also when that is sent
//! compressed: an endpoint's framework inflates before its code, and with it the verifying library, sees the
//! body.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_ENCODING, CONTENT_TYPE, InvalidHeaderName, InvalidHeaderValue, USER_AGENT},
};
use sluice_store::{DeliveryOptions, MessageId, Secrets, SignatureVersion, Timestamp};
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
    /// How the webhook is delivered to.
    pub options: &'a DeliveryOptions,
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
    let mut signed = Vec::new();
    for version in SignatureVersion::ALL {
        if request.options.signs_by(version) {
            for secret in request.secrets.iter() {
                signed.push(signature::sign(secret, version, request.id, seconds, body)?);
            }
        }
    }
    Ok(signed.join(" "))
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
