//! Answers of a service whose node and stream fail: what strangers read of what it is made of, which is nothing.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use crate::client::Client;

/// Time between two slots of a chain that stands still.
const STANDSTILL: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn no_failure_names_a_host_a_port_or_a_path() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let (body, mints) = (client.body(&quote), client.harness.sol_pool.state.mints);
    let folder = client.harness.database.parent().expect("a folder");
    let port = |url: &str| {
        let port = url.trim_end_matches('/').rsplit(':').next();
        port.expect("a port").to_owned()
    };
    let inside = [
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        "://".to_owned(),
        "sluice.db".to_owned(),
        folder.display().to_string(),
        port(&client.harness.node.url()),
        port(client.harness.chain.endpoint().url.as_str()),
    ];
    let judge = |status: StatusCode, text: &str| {
        assert!(status.is_server_error(), "{status}: {text}");
        for word in &inside {
            assert!(!text.contains(word.as_str()), "{word} in {text}");
        }
    };
    client.harness.node.fail_all(true);
    let mut simulated = body.clone();
    simulated["simulate"] = json!(true);
    for body in [&body, &simulated] {
        for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
            let answer = client.post(path, body).await;
            judge(answer.status, &answer.body.to_string());
        }
    }
    client.harness.chain.pace(STANDSTILL);
    let quote = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount=1000",
        mints.token_0, mints.token_1
    );
    // A quote is refused as soon as the newest slot is old.
    while client.get(&quote).await.status == 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Of readiness the answer is no problem document: what is read of each is its text.
    for path in [quote.as_str(), "/health/ready", "/v1/pools"] {
        let asked = client.http.get(format!("{}{path}", client.harness.url));
        let answer = asked.send().await.expect("an answer");
        let status = answer.status();
        judge(status, &answer.text().await.expect("a text"));
    }
}

#[tokio::test]
async fn a_market_behind_its_node_is_refused_by_the_name_of_the_bound() {
    const BOUND: &str = "freshness.max-slots-behind";
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let quote = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount=1000",
        mints.token_0, mints.token_1
    );
    assert_eq!(client.get(&quote).await.status, 200);
    let far = client.harness.node.slot() + 1_000_000;
    client.harness.node.script("getSlot", json!(far));
    let refused = loop {
        let answer = client.get(&quote).await;
        if answer.status != StatusCode::OK {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.code(), "market_not_ready", "{}", refused.body);
    assert!(refused.body.to_string().contains(BOUND), "{}", refused.body);
    let asked = format!("{}/health/ready", client.harness.url);
    let ready = client.http.get(asked).send().await.expect("an answer");
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = ready.text().await.expect("a text");
    assert!(body.contains(BOUND), "{body}");
}
