//! Echoes: refusals of requests that are long, of which no more is repeated than finds the fault.

use reqwest::{RequestBuilder, header};
use serde_json::{Value, json};

use crate::client::Client;

/// As long as the part of a request that is repeated.
const LONG: usize = 30_000;

/// The same of a body, of which no more than 16 KiB are read.
const LONG_IN_BODY: usize = 10_000;

/// The longest problem, bytes: what it says by itself, and what it repeats.
const MOST: usize = 1_500;

/// The document that a request is refused with.
async fn refusal(request: RequestBuilder) -> Value {
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    assert!(status.is_client_error(), "{status}");
    let kind = answer.headers().get(header::CONTENT_TYPE);
    assert_eq!(kind.expect("a kind"), "application/problem+json");
    let text = answer.text().await.expect("a text");
    assert!(text.len() <= MOST, "{} bytes: {text:.300}", text.len());
    serde_json::from_str(&text).expect("a document")
}

#[tokio::test]
async fn no_refusal_repeats_more_than_the_beginning() {
    let client = Client::start_as("cors-origins = [\"https://a.example\"]").await;
    let long = "x".repeat(LONG);
    let get = |path: &str| client.http.get(format!("{}{path}", client.harness.url));
    for path in [
        format!("/v1/quote?{long}=1"),
        format!("/v1/quote?amount={long}"),
        format!("/v1/quote?inputMint={long}"),
        format!("/v1/quote?amount=1&{}=1", "amount=1&".repeat(LONG / 9)),
        format!("/v1/quote/stream?lastEventId={long}"),
        format!("/v1/pools?cursor={long}"),
        format!("/v1/pools/{long}"),
        format!("/v1/mints/{long}"),
        format!("/v1/priority-fees?pool={long}"),
        format!("/v1/transactions/{long}"),
        format!("/v1/{long}"),
        format!("/api/webhooks/{long}"),
        format!("/api/webhooks/{long}/messages/{long}"),
    ] {
        let problem = refusal(get(&path)).await;
        assert!(problem["detail"].is_string(), "{problem}");
    }
    let stream = get("/v1/quote/stream")
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::ORIGIN, format!("https://{long}"));
    assert_eq!(refusal(stream).await["code"], "origin_refused");
    let long = "x".repeat(LONG_IN_BODY);
    let quote = client.quote().await;
    for (field, value) in [
        (long.as_str(), json!(1)),
        ("userPublicKey", json!(long)),
        ("priorityFeeLamports", json!(long)),
        ("transactionVersion", json!(long)),
        ("wrapSol", json!(long)),
        ("swapMode", json!(long)),
        ("receiver", json!(vec![long.as_str()])),
        ("quote", json!({ long.as_str(): 1 })),
    ] {
        let mut body = client.body(&quote);
        body[field] = value;
        for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
            let url = format!("{}{path}", client.harness.url);
            let request = client.http.post(url).body(body.to_string());
            let request = request.header(header::CONTENT_TYPE, "application/json");
            assert_ne!(refusal(request).await["code"], "body_too_large");
        }
    }
}
