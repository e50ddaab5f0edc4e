//! Calls of the API to its node: how many, and what a slow node costs.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::json;
use solana_hash::Hash;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::Client;

/// Requests at the same time.
const CROWD: usize = 60;

/// Requests of which each gets a blockhash, at the least.
const REQUESTS: u32 = 60;

/// Calls for a blockhash until which requests go on: the second shows that it is fetched again.
const FETCHES: usize = 2;

/// Pause of the API between two calls for a blockhash.
const FETCH_PAUSE: Duration = Duration::from_secs(1);

/// How long a node that is slow takes: so long that what is answered sooner was answered without it.
const SLOW: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_transaction_and_an_instruction_take_one_call_each() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    client.harness.node.forget_calls();
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(client.harness.node.count("getMultipleAccounts"), 1);
    client.harness.node.forget_calls();
    let answer = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(client.harness.node.count("getMultipleAccounts"), 1);
}

#[tokio::test]
async fn the_blockhash_is_fetched_beside_the_requests_and_with_its_height() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    client.harness.node.forget_calls();
    let begun = Instant::now();
    let mut requests = 0;
    while requests < REQUESTS || client.harness.node.count("getLatestBlockhash") < FETCHES {
        let answer = client.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        // The node makes its blockhashes so that the height can be read from them.
        let blockhash: Hash = answer.body["blockhash"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("a blockhash");
        let slot = u64::from_le_bytes(blockhash.to_bytes()[..8].try_into().expect("8 bytes"));
        assert_eq!(answer.body["lastValidBlockHeight"], json!(slot + 150));
        let bytes = BASE64
            .decode(answer.body["transaction"].as_str().expect("a transaction"))
            .expect("base64");
        let transaction: VersionedTransaction =
            wincode::deserialize_exact(&bytes).expect("a transaction");
        assert_eq!(*transaction.message.recent_blockhash(), blockhash);
        requests += 1;
    }
    let calls = client.harness.node.count("getLatestBlockhash");
    let pauses = begun.elapsed().as_millis() / FETCH_PAUSE.as_millis();
    let most = usize::try_from(pauses).expect("few") + 2;
    assert!(calls <= most, "{calls} for {requests} requests");
}

#[tokio::test]
async fn requests_at_the_same_moment_share_calls() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    client.harness.node.forget_calls();
    // Longer than the crowd takes to come.
    client.harness.node.delay(Duration::from_secs(2));
    let answers = (0..CROWD).map(|_| client.transaction(&body));
    for answer in futures::future::join_all(answers).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let calls = client.harness.node.count("getMultipleAccounts");
    assert!(calls <= CROWD / 4, "{calls} calls for {CROWD} requests");
}

#[tokio::test]
async fn a_slow_node_is_a_504_in_time_and_a_broken_one_a_502() {
    let client = Client::start_with(Duration::from_secs(2)).await;
    let body = client.body(&client.quote().await);
    client.harness.node.delay(SLOW);
    let begun = Instant::now();
    let answer = client.transaction(&body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (504, "rpc_timeout")
    );
    assert_eq!(answer.body["retryable"], json!(true));
    assert!(begun.elapsed() < SLOW, "{:?}", begun.elapsed());
    client.harness.node.delay(Duration::ZERO);
    client.harness.node.fail_all(true);
    let answer = client.transaction(&body).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (502, "rpc_failed"));
    client.harness.node.fail_all(false);
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}
