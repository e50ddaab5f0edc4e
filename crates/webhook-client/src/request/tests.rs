//! Signed requests: verified by the reference library, with all secrets, compressed or not.

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
        options: &DeliveryOptions::default(),
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
fn each_secret_signs_by_each_version_that_is_asked_for() {
    let versions = |signatures: Option<&[SignatureVersion]>| {
        let unsigned = WebhookRequest {
            id: &MessageId::from_bytes([1; 32]),
            url: "https://example.com/",
            secrets: &secrets(9, Some(8)),
            headers: &[],
            gzip: false,
            options: &DeliveryOptions {
                signatures: signatures.map(<[_]>::to_vec),
                ..DeliveryOptions::default()
            },
            body: "{}",
        };
        let signed = sign(&unsigned, now()).expect("builds").headers;
        let text = signed["webhook-signature"]
            .to_str()
            .expect("text")
            .to_owned();
        let versions = text
            .split(' ')
            .map(|one| one.split(',').next().map(str::to_owned));
        versions.map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    assert_eq!(versions(None), ["v1", "v1"]);
    assert_eq!(versions(Some(&[SignatureVersion::V1a])), ["v1a", "v1a"]);
    assert_eq!(
        versions(Some(&SignatureVersion::ALL)),
        ["v1", "v1", "v1a", "v1a"]
    );
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
        options: &DeliveryOptions::default(),
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
        options: &DeliveryOptions::default(),
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
