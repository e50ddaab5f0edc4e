//! Priority fees of pools: levels of what the node says, from one call for all who ask within a moment.

use futures::future::join_all;
use serde_json::{Value, json};
use sluice_testkit::names::address;

use crate::client::Client;

const RECENT: &str = "getRecentPrioritizationFees";

impl Client {
    /// Has the node say these prices, of consecutive slots.
    fn say_prices(&self, prices: impl IntoIterator<Item = u64>) {
        let slots = (100..).zip(prices);
        let fees: Vec<Value> = slots
            .map(|(slot, price): (u64, u64)| json!({ "slot": slot, "prioritizationFee": price }))
            .collect();
        self.harness.node.script(RECENT, json!(fees));
    }
}

#[tokio::test]
async fn a_crowd_that_asks_about_a_pool_costs_the_node_one_call() {
    let client = Client::start().await;
    client.say_prices((1..=100).map(|n| n * 1_000));
    let pool = &client.harness.sol_pool;
    let path = format!("/v1/priority-fees?pool={}", pool.address);
    let answers = join_all((0..50).map(|_| client.get(&path))).await;
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    // A machine that takes longer than an answer is kept for makes a second call, and none makes one for each.
    let calls = client.harness.node.count(RECENT);
    assert!((1..25).contains(&calls), "{calls} calls");
    let body = &answers[0].body;
    assert_eq!(body["pool"], json!(pool.address.to_string()));
    assert_eq!((&body["slot"], &body["slots"]), (&json!(199), &json!(100)));
    let medium = json!({
        "percentile": 50, "unitPriceMicroLamports": 50_000, "unitPriceMicroLamportsString": "50000",
    });
    assert_eq!(body["levels"][1], medium);
    let highest = &body["levels"][5]["unitPriceMicroLamports"];
    assert_eq!(*highest, json!(100_000));
    // What a swap there writes.
    let state = &pool.state;
    let accounts = [
        pool.address,
        state.observation,
        state.vaults.token_0,
        state.vaults.token_1,
    ];
    let accounts = accounts.map(|account| account.to_string());
    assert_eq!(body["accounts"], json!(accounts));
    let asked = client.harness.node.params(RECENT);
    assert_eq!(asked, Some(json!([accounts])));
}

#[tokio::test]
async fn of_two_hops_the_accounts_of_both_pools_count() {
    let client = Client::start().await;
    client.say_prices([]);
    let (near, far) = (&client.harness.sol_pool, &client.harness.far_pool);
    let path = format!("/v1/priority-fees?pool={},{}", near.address, far.address);
    let answer = client.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["accounts"].as_array().map(Vec::len), Some(8));
    let nothing = (&answer.body["slot"], &answer.body["levels"]);
    assert_eq!(nothing, (&Value::Null, &json!([])));
}

#[tokio::test]
async fn what_is_no_pool_is_refused_and_a_failure_is_not_kept() {
    let client = Client::start().await;
    client.say_prices([5]);
    let missing = client.get("/v1/priority-fees").await;
    assert_eq!(
        (missing.status.as_u16(), missing.code()),
        (400, "missing_field")
    );
    let path = format!("/v1/priority-fees?pool={}", address("none"));
    let unknown = client.get(&path).await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.code()),
        (404, "not_found")
    );
    assert_eq!(client.harness.node.count(RECENT), 0);
    let path = format!("/v1/priority-fees?pool={}", client.harness.far_pool.address);
    client.harness.node.fail_all(true);
    let failed = client.get(&path).await;
    assert_eq!(failed.code(), "rpc_failed", "{}", failed.body);
    client.harness.node.fail_all(false);
    assert_eq!(client.get(&path).await.status, 200);
}
