//! Verification: whether a delivery comes from the service and is not an old one sent again, and what it says.

use std::io::Read;
use std::time::{Duration, SystemTime};

use flate2::read::GzDecoder;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook, WebhookError,
};
use thiserror::Error;

use crate::{message::Message, public_key::PublicKey};

/// The most that a compressed body may become: an account of 10 MiB is 14 MiB in base64.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// How a compressed body begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The longest time of sending that is read, digits: far beyond any time, and far below where numbers end.
const MOST_DIGITS: usize = 15;

/// How far the time of sending may be from now; what Standard Webhooks recommends.
const TOLERANCE: Duration = Duration::from_secs(300);

/// A delivery that was verified.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Delivery {
    /// The same at every retry and replay of the same messages.
    pub id: String,
    /// When it was sent, seconds since 1970.
    pub sent: u64,
    /// All messages, in order: several of a webhook with `batch`, one of any other. Each has its `id`: keep those that were
    /// handled.
    pub messages: Vec<Message>,
}

/// A delivery that is not to be believed. Answer it with a status of 400.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VerificationError {
    /// A header is absent or malformed, the time is more than five minutes away, or no secret signed.
    #[error("the delivery is not signed as it must be: {0}")]
    Signature(#[source] WebhookError),
    /// The time of sending is not one.
    #[error("webhook-timestamp is not Unix time in seconds")]
    Timestamp,
    /// The body is compressed, and cannot be read or is too long.
    #[error("the body is not gzip, or longer than {MOST_BYTES} bytes")]
    Compression,
    /// The body is not what the service writes.
    #[error("the body is no message of the service: {0}")]
    Body(#[source] serde_json::Error),
    /// The body is an array without a message.
    #[error("the body has no message")]
    Empty,
    /// A secret of the caller's is none. Its text is in no message.
    #[error(
        "a secret is not one: it begins with whsec_, or a public key with whpk_, and goes on in base64"
    )]
    Secret,
}

/// Verifies a delivery by Standard Webhooks and reads its body.
///
/// `body` is what arrived, before it was parsed; it may be compressed still, as bodies of a webhook with `gzip` are. Of
/// several secrets one must have signed: during a rotation name both. In place of a secret a public key may stand, `whpk_…`, for
/// a webhook with `v1a` among its `signatures`: it verifies those, and who has it can sign nothing.
///
/// # Errors
/// [`VerificationError`] for what was not signed with a secret, or more than five minutes ago.
pub fn verify<S: AsRef<str>>(
    body: &[u8],
    headers: &HeaderMap,
    secrets: &[S],
) -> Result<Delivery, VerificationError> {
    let sent = time_of_sending(headers)?;
    let plain = plain(body)?;
    let body = plain.as_deref().unwrap_or(body);
    let mut refused = None;
    for secret in secrets {
        let secret = secret.as_ref();
        let verified = if PublicKey::is_meant(secret) {
            let key = PublicKey::parse(secret).ok_or(VerificationError::Secret)?;
            verify_by_public_key(&key, body, headers, sent)
        } else {
            webhook(secret)?.verify(body, headers)
        };
        match verified {
            Ok(()) => return read(body, headers, sent),
            Err(error) => refused = Some(error),
        }
    }
    // Without a secret nothing can have been signed with one.
    Err(refused.map_or(VerificationError::Secret, VerificationError::Signature))
}

fn webhook(secret: &str) -> Result<Webhook, VerificationError> {
    let is_empty = secret.strip_prefix("whsec_").unwrap_or(secret).is_empty();
    // Whoever knows that there is no secret could sign with it.
    if is_empty {
        return Err(VerificationError::Secret);
    }
    Webhook::new(secret).map_err(|_| VerificationError::Secret)
}

/// What the scheme's own library does with a secret, with a public key.
fn verify_by_public_key(
    key: &PublicKey,
    body: &[u8],
    headers: &HeaderMap,
    sent: u64,
) -> Result<(), WebhookError> {
    let text = |name, short| {
        let value = headers.get(name);
        let value = value.ok_or(WebhookError::MissingHeader(short))?;
        value
            .to_str()
            .map_err(|_| WebhookError::InvalidHeader(short))
    };
    let id = text(HEADER_WEBHOOK_ID, "id")?;
    let signatures = text(HEADER_WEBHOOK_SIGNATURE, "signature")?;
    let seconds = text(HEADER_WEBHOOK_TIMESTAMP, "timestamp")?;
    let (sent, now) = (Duration::from_secs(sent), since_1970());
    if now.saturating_sub(sent) > TOLERANCE {
        return Err(WebhookError::TimestampTooOldError);
    }
    if sent.saturating_sub(now) > TOLERANCE {
        return Err(WebhookError::FutureTimestampError);
    }
    let signed = [id.as_bytes(), b".", seconds.as_bytes(), b".", body].concat();
    let is_signed = key.has_signed(&signed, signatures);
    is_signed
        .then_some(())
        .ok_or(WebhookError::InvalidSignature)
}

#[expect(
    clippy::disallowed_methods,
    reason = "whether a delivery is old shows by the receiver's own clock"
)]
fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A clock from before then makes every delivery one of the future.
    now.unwrap_or_default()
}

fn time_of_sending(headers: &HeaderMap) -> Result<u64, VerificationError> {
    let missing = WebhookError::MissingHeader("timestamp");
    let value = headers.get(HEADER_WEBHOOK_TIMESTAMP);
    let value = value.ok_or(VerificationError::Signature(missing))?;
    let digits = value.to_str().map_err(|_| VerificationError::Timestamp)?;
    let is_time = digits.len() <= MOST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    let sent = digits.parse().ok().filter(|_| is_time);
    sent.ok_or(VerificationError::Timestamp)
}

/// What was signed, where the body is compressed.
fn plain(body: &[u8]) -> Result<Option<Vec<u8>>, VerificationError> {
    if !body.starts_with(&GZIP) {
        return Ok(None);
    }
    let mut plain = Vec::new();
    let mut limited = GzDecoder::new(body).take(MOST_BYTES + 1);
    let length = limited.read_to_end(&mut plain);
    match length {
        Ok(length) if length as u64 <= MOST_BYTES => Ok(Some(plain)),
        _ => Err(VerificationError::Compression),
    }
}

/// One message, or the array of a webhook with `batch`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Body {
    Batch(Vec<Message>),
    Single(Box<Message>),
}

fn read(body: &[u8], headers: &HeaderMap, sent: u64) -> Result<Delivery, VerificationError> {
    let id = headers.get(HEADER_WEBHOOK_ID);
    let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
    // Which of the two it is shows in the first letter; read as that one, a fault of it is named.
    let is_batch = body.trim_ascii_start().starts_with(b"[");
    let read = if is_batch {
        serde_json::from_slice(body).map(Body::Batch)
    } else {
        serde_json::from_slice(body).map(Body::Single)
    };
    let messages = match read.map_err(VerificationError::Body)? {
        Body::Batch(messages) => messages,
        Body::Single(message) => vec![Message {
            id: Some(id.to_owned()),
            ..*message
        }],
    };
    if messages.is_empty() {
        return Err(VerificationError::Empty);
    }
    Ok(Delivery {
        id: id.to_owned(),
        sent,
        messages,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    use base64::{Engine, prelude::BASE64_STANDARD};
    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;
    use crate::message::Content;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

    fn body() -> String {
        json!({
            "type": "accountChange", "timestamp": "2026-11-23T00:00:00Z", "webhookId": "wh_1", "sequence": 7,
            "slot": 9, "commitment": "confirmed",
            "data": {
                "pubkey": "a", "owner": "b", "lamports": u64::MAX, "data": "", "dataLength": 0,
                "executable": false, "writtenBy": null,
            },
        })
        .to_string()
    }

    /// Headers of a delivery that was sent `ago`.
    fn signed(body: &str, secret: &str, ago: Duration) -> HeaderMap {
        let sent = (since_1970() - ago).as_secs();
        let time = i64::try_from(sent).expect("small");
        let webhook = Webhook::new(secret).expect("a secret");
        let signature = webhook.sign("msg_1", time, body.as_bytes()).expect("text");
        headers(sent, signature)
    }

    fn headers(sent: u64, signature: String) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (HEADER_WEBHOOK_ID, "msg_1".to_owned()),
            (HEADER_WEBHOOK_TIMESTAMP, sent.to_string()),
            (HEADER_WEBHOOK_SIGNATURE, signature),
        ] {
            headers.insert(name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn a_signed_delivery_is_read_with_every_unit_of_its_amounts() {
        let body = body();
        let headers = signed(&body, SECRET, Duration::ZERO);
        let delivery = verify(body.as_bytes(), &headers, &[OTHER, SECRET]).expect("signed");
        assert_eq!(delivery.id, "msg_1");
        let [message] = &delivery.messages[..] else {
            panic!("{delivery:?}");
        };
        assert_eq!(message.id.as_deref(), Some("msg_1"));
        assert_eq!((message.sequence, message.slot), (7, 9));
        let Content::AccountChange(change) = &message.content else {
            panic!("{message:?}");
        };
        assert_eq!(change.lamports, u64::MAX);
    }

    #[test]
    fn a_compressed_delivery_and_a_batch_are_read() {
        let batch = format!("[{}]", body().replacen('{', "{\"id\":\"msg_7\",", 1));
        let headers = signed(&batch, SECRET, Duration::ZERO);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(batch.as_bytes()).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let delivery = verify(&gzip, &headers, &[SECRET]).expect("signed");
        assert_eq!(delivery.messages[0].id.as_deref(), Some("msg_7"));
        let damaged = verify(&gzip[..gzip.len() - 9], &headers, &[SECRET]);
        assert!(matches!(damaged, Err(VerificationError::Compression)));
    }

    #[test]
    fn a_kind_of_a_later_version_is_handed_on() {
        let body = body().replace("accountChange", "comet");
        let headers = signed(&body, SECRET, Duration::ZERO);
        let delivery = verify(body.as_bytes(), &headers, &[SECRET]).expect("signed");
        let Content::Other { kind, .. } = &delivery.messages[0].content else {
            panic!("{delivery:?}");
        };
        assert_eq!(kind, "comet");
    }

    #[test]
    fn a_thin_delivery_says_what_it_leaves_out() {
        let body = body().replace(r#""data":{"#, r#""dataBytes":120,"rest":{"#);
        let headers = signed(&body, SECRET, Duration::ZERO);
        let delivery = verify(body.as_bytes(), &headers, &[SECRET]).expect("signed");
        let Content::Thin { kind, data_bytes } = &delivery.messages[0].content else {
            panic!("{delivery:?}");
        };
        assert_eq!((kind.as_str(), *data_bytes), ("accountChange", 120));
    }

    #[test]
    fn what_is_damaged_old_or_of_another_secret_is_refused() {
        let body = body();
        let headers = signed(&body, SECRET, Duration::ZERO);
        let damaged = body.replace("\"slot\":9", "\"slot\":8");
        verify(damaged.as_bytes(), &headers, &[SECRET]).expect_err("damaged");
        verify(body.as_bytes(), &headers, &[OTHER]).expect_err("of another secret");
        verify::<&str>(body.as_bytes(), &headers, &[]).expect_err("of no secret");
        verify(body.as_bytes(), &headers, &["whsec_"]).expect_err("an empty secret");
        let old = signed(&body, SECRET, Duration::from_secs(301));
        verify(body.as_bytes(), &old, &[SECRET]).expect_err("old");
        for time in ["", "-9223372036854775808", "+1", "1e9", "9999999999999999"] {
            let mut headers = headers.clone();
            headers.insert(HEADER_WEBHOOK_TIMESTAMP, time.parse().expect("a value"));
            let refused = verify(body.as_bytes(), &headers, &[SECRET]).expect_err("no time");
            assert!(
                matches!(refused, VerificationError::Timestamp),
                "{time}: {refused}"
            );
        }
    }

    #[test]
    fn a_public_key_verifies_what_is_signed_by_v1a_alone() {
        let body = body();
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed");
        let key = format!("whpk_{}", BASE64_STANDARD.encode(pair.public_key()));
        let signed = |sent: u64| {
            let made = pair.sign(format!("msg_1.{sent}.{body}").as_bytes());
            headers(sent, format!("v1a,{}", BASE64_STANDARD.encode(made)))
        };
        let now = since_1970().as_secs();
        let sent = signed(now);
        let delivery = verify(body.as_bytes(), &sent, &[OTHER, &key]).expect("signed");
        assert_eq!((delivery.id.as_str(), delivery.sent), ("msg_1", now));
        let refused = |body: &str, headers: &HeaderMap, secret: &str| match verify(
            body.as_bytes(),
            headers,
            &[secret],
        )
        .expect_err("refused")
        {
            VerificationError::Signature(error) => error.to_string(),
            other => other.to_string(),
        };
        let damaged = body.replace("\"slot\":9", "\"slot\":8");
        assert_eq!(refused(&damaged, &sent, &key), "signature invalid");
        assert_eq!(refused(&body, &sent, SECRET), "signature invalid");
        let (old, early) = (signed(now - 400), signed(now + 400));
        assert_eq!(refused(&body, &old, &key), "signature timestamp too old");
        let future = refused(&body, &early, &key);
        assert_eq!(future, "signature timestamp too far in future");
        for wrong in ["whpk_", "whpk_AAAA"] {
            let refused = verify(body.as_bytes(), &sent, &[wrong]).expect_err("no key");
            assert!(matches!(refused, VerificationError::Secret), "{refused}");
        }
        let mut nameless = sent.clone();
        nameless.remove(HEADER_WEBHOOK_ID);
        assert_eq!(refused(&body, &nameless, &key), "missing header id");
    }

    #[test]
    fn an_empty_batch_is_refused() {
        let headers = signed("[]", SECRET, Duration::ZERO);
        let refused = verify(b"[]", &headers, &[SECRET]).expect_err("empty");
        assert!(matches!(refused, VerificationError::Empty));
    }
}
