//! Requests that are repeated under a key, and nodes that are behind.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_testkit::rpc_node::Fault;

use crate::client::{AMOUNT, Client};

/// Code of a node that has not reached the slot that a call demands.
const NOT_REACHED: i64 = -32016;

impl Client {
    /// Status, code and text of the answer to this body under a key.
    async fn under_key(&self, key: &str, body: &Value) -> (u16, String, String) {
        let url = format!("{}/v1/swap/transaction", self.harness.url);
        let request = self.http.post(url).header("idempotency-key", key);
        let answer = request.json(body).send().await.expect("an answer");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("a whole answer");
        let body: Value = serde_json::from_str(&text).expect("JSON");
        let code = body["code"].as_str().unwrap_or("none").to_owned();
        (status, code, text)
    }
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_and_another_one_under_its_key_none() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let (status, _, first) = client.under_key("a", &body).await;
    assert_eq!(status, 200, "{first}");
    let blockhash = |text: &str| {
        let answer: Value = serde_json::from_str(text).expect("JSON");
        answer["blockhash"].clone()
    };
    // Until an answer without the key has another blockhash.
    loop {
        let other = client.transaction(&body).await;
        if other.body["blockhash"] != blockhash(&first) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // What was read of the body counts, not its bytes.
    let mut same = body.clone();
    same["quote"]["amountIn"] = json!(AMOUNT.to_string());
    same["wrapAndUnwrapSol"] = json!(true);
    let (status, _, again) = client.under_key("a", &same).await;
    assert_eq!((status, again), (200, first.clone()));
    let (_, _, other) = client.under_key("b", &body).await;
    assert_ne!(blockhash(&other), blockhash(&first));
    let mut changed = body.clone();
    changed["priorityFeeLamports"] = json!(1);
    let (status, code, text) = client.under_key("a", &changed).await;
    assert_eq!(
        (status, code.as_str()),
        (422, "idempotency_key_reused"),
        "{text}"
    );
    let (status, code, _) = client.under_key("two words", &body).await;
    assert_eq!((status, code.as_str()), (400, "invalid_field"));
}

#[tokio::test]
async fn requests_under_one_key_at_the_same_time_get_one_transaction() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    client.harness.node.forget_calls();
    let answers = (0..20).map(|_| client.under_key("a", &body));
    let answers = futures::future::join_all(answers).await;
    let (status, _, first) = &answers[0];
    assert_eq!(*status, 200, "{first}");
    assert!(answers.iter().all(|(_, _, text)| text == first));
    assert_eq!(client.harness.node.count("getMultipleAccounts"), 1);
}

#[tokio::test]
async fn accounts_are_read_as_of_what_the_market_knows_to_be_confirmed() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let before = client.harness.chain.slot();
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let demanded = client.harness.node.demanded("getMultipleAccounts");
    let demanded = demanded.expect("a slot");
    // The confirmed slot is two behind, and the quote may be as far behind the chain again.
    assert!(demanded + 50 > before && demanded <= client.harness.chain.slot());
}

#[tokio::test]
async fn a_node_that_is_behind_is_asked_again() {
    let client = Client::start_with(Duration::from_secs(30)).await;
    let body = client.body(&client.quote().await);
    client.harness.node.forget_calls();
    let behind = Fault::Refused(NOT_REACHED, "has not been reached".to_owned());
    client.harness.node.fail(vec![behind; 5]);
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // Fetching a blockhash may have met one of them.
    assert!(client.harness.node.count("getMultipleAccounts") >= 4);
    // Any other refusal ends the request.
    let other = Fault::Refused(-32005, "Node is unhealthy".to_owned());
    client.harness.node.fail(vec![other; 5]);
    assert_eq!(client.transaction(&body).await.code(), "rpc_failed");
}
