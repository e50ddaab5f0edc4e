//! Node watcher: asks the RPC node for its slot, against which the market's own is held.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use service_kit::OutageLog;
use tokio::time::{MissedTickBehavior, interval};
use url::Url;

use crate::view::Market;

/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(2);

/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Answer {
    result: u64,
}

/// Asks for ever. A node that does not answer is no reason to refuse quotes: it is logged, and the chain's own time remains.
pub(crate) async fn watch(market: &Market, rpc_url: &Url) {
    let client = reqwest::Client::new();
    let mut outage = OutageLog::new("asking the node for its slot");
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match slot(&client, rpc_url).await {
            Ok(slot) => {
                outage.recovered();
                market.report_node_slot(slot, Instant::now());
            }
            // Its address may carry a key.
            Err(error) => outage.failed("no answer", &error.without_url()),
        }
    }
}

async fn slot(client: &reqwest::Client, rpc_url: &Url) -> reqwest::Result<u64> {
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "getSlot",
        "params": [{"commitment": "processed"}],
    });
    let answer = client.post(rpc_url.clone()).json(&call).timeout(TIMEOUT);
    let answer: Answer = answer.send().await?.error_for_status()?.json().await?;
    Ok(answer.result)
}
