//! What the API says of itself: its metrics, and the id of each request.

use serde_json::json;

use crate::client::Client;

impl Client {
    async fn metrics(&self) -> (u16, String) {
        let request = self.http.get(format!("{}/metrics", self.harness.url));
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a text"))
    }

    /// The id of the answer to a request with this id, or without one.
    async fn request_id(&self, path: &str, given: Option<&str>) -> String {
        let mut request = self.http.get(format!("{}{path}", self.harness.url));
        if let Some(given) = given {
            request = request.header("x-request-id", given);
        }
        let answer = request.send().await.expect("an answer");
        let id = answer.headers().get("x-request-id").expect("an id");
        id.to_str().expect("text").to_owned()
    }
}

fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn requests_rpc_calls_the_market_and_its_servers_are_counted() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let built = client.transaction(&client.body(&quote)).await;
    assert_eq!(built.status, 200, "{}", built.body);
    client
        .post("/v1/swap/instruction", &json!({ "quote": 1 }))
        .await;
    for path in ["/v1/one", "/v1/two", "/three"] {
        assert_eq!(client.get(path).await.status, 404);
    }
    let (status, text) = client.metrics().await;
    assert_eq!(status, 200);
    let count = |route: &str, class: &str| {
        let labels = format!("{{route=\"{route}\",status=\"{class}\"}}");
        let name = format!("sluice_api_request_duration_seconds_count{labels}");
        value(&text, &name).unwrap_or_else(|| panic!("no {name}"))
    };
    assert!(count("/v1/quote", "2xx") >= 1.0);
    assert!(count("/v1/swap/transaction", "2xx") >= 1.0);
    assert!(count("/v1/swap/instruction", "4xx") >= 1.0);
    // However many paths are asked for, they are one name.
    assert!(count("other", "4xx") >= 3.0);
    assert!(!text.contains("/v1/one"));
    let calls = |method: &str| {
        let labels = format!("{{method=\"{method}\",outcome=\"answered\"}}");
        value(&text, &format!("sluice_api_rpc_calls_total{labels}"))
    };
    assert!(calls("getLatestBlockhash") >= Some(1.0));
    assert!(calls("getMultipleAccounts") >= Some(1.0));
    assert_eq!(value(&text, "sluice_api_market_ready "), Some(1.0));
    assert!(value(&text, "sluice_api_market_slot ") > Some(1_000.0));
    assert_eq!(
        value(&text, "sluice_api_stream_server_connected{"),
        Some(1.0)
    );
    assert!(value(&text, "sluice_api_stream_server_slots_taken_total{") >= Some(1.0));
}

#[tokio::test]
async fn metrics_are_for_this_machine_unless_it_is_set_otherwise() {
    for (api, status) in [("", 404), ("metrics-for-all = true", 200)] {
        let client = Client::start_as(api).await;
        let request = client.http.get(format!("{}/metrics", client.harness.url));
        // As a proxy on this machine passes on what it was sent.
        let request = request.header("x-forwarded-for", "198.51.100.1");
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{api}");
    }
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let client = Client::start().await;
    for path in ["/v1/quote", "/health/live", "/openapi.json", "/none"] {
        let first = client.request_id(path, None).await;
        assert_ne!(first, client.request_id(path, None).await, "{path}");
        assert_eq!(client.request_id(path, Some("order-77")).await, "order-77");
        let replaced = client.request_id(path, Some("two words")).await;
        assert!(!replaced.contains("two"), "{replaced}");
    }
}
