//! The Standard Webhooks signature: HMAC-SHA256 over `id.timestamp.body`.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sluice_store::{MessageId, Secret, Timestamp};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook,
};
use thiserror::Error;

/// Why a message cannot be signed; only a damaged database leads here.
#[derive(Debug, Error)]
#[error("cannot be signed: {0}")]
pub struct SignError(String);

/// The three headers of an attempt made at `now`. The id stays the same over all attempts, the
/// timestamp is the attempt's, so that a receiver can refuse a replayed request by its age.
///
/// # Errors
/// [`SignError`] when the stored secret is not base64.
pub fn headers(
    secret: &Secret,
    id: &MessageId,
    now: Timestamp,
    body: &str,
) -> Result<HeaderMap, SignError> {
    let fault = |error: &dyn std::fmt::Display| SignError(error.to_string());
    let seconds = now.unix_seconds();
    let signature = Webhook::new(secret.expose())
        .and_then(|webhook| webhook.sign(id.as_str(), seconds, body.as_bytes()))
        .map_err(|error| fault(&error))?;
    let values = [
        (HEADER_WEBHOOK_ID, id.as_str()),
        (HEADER_WEBHOOK_TIMESTAMP, &seconds.to_string()),
        (HEADER_WEBHOOK_SIGNATURE, &signature),
    ];
    values
        .into_iter()
        .map(|(name, value)| {
            let value = HeaderValue::from_str(value).map_err(|error| fault(&error))?;
            Ok((HeaderName::from_static(name), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_official_verifier_accepts_the_signature_and_nothing_else() {
        let secret = Secret::from_random([9; 32]);
        let id = MessageId::from_digest([1; 32]);
        let now = Timestamp::from(SystemTime::now());
        let body = "{\"type\":\"transaction\"}";
        let signed = headers(&secret, &id, now, body).expect("signs");
        let verifier = Webhook::new(secret.expose()).expect("valid secret");
        verifier.verify(body.as_bytes(), &signed).expect("good");

        assert!(
            verifier
                .verify(b"{\"type\":\"transactioN\"}", &signed)
                .is_err()
        );
        let other = Webhook::new(Secret::from_random([8; 32]).expose()).expect("valid secret");
        assert!(other.verify(body.as_bytes(), &signed).is_err());
        let old = headers(&secret, &id, now.before(Duration::from_secs(600)), body).expect("signs");
        assert!(
            verifier.verify(body.as_bytes(), &old).is_err(),
            "replayed after ten minutes"
        );
        let mut renamed = signed;
        let other_id = MessageId::from_digest([2; 32]);
        renamed.insert(
            HEADER_WEBHOOK_ID,
            HeaderValue::from_str(other_id.as_str()).expect("ascii"),
        );
        assert!(verifier.verify(body.as_bytes(), &renamed).is_err());
    }

    #[test]
    fn the_signature_is_the_one_of_the_specification() {
        // HMAC-SHA256 with 32 zero bytes as the key, computed independently.
        let secret = Secret::from_random([0; 32]);
        let id = MessageId::from_digest([0; 32]);
        let signed = headers(&secret, &id, Timestamp::from_unix_seconds(1), "{}").expect("signs");
        assert_eq!(signed[HEADER_WEBHOOK_TIMESTAMP], "1");
        assert_eq!(signed[HEADER_WEBHOOK_ID], id.as_str());
        assert_eq!(
            signed[HEADER_WEBHOOK_SIGNATURE],
            "v1,GLyLrxlwHwMtTgKLxn23+/53RSr5GfO78uUOFxVJPEM="
        );
    }
}
