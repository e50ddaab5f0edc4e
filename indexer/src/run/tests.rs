//! The rate of calls to the node, as it is set: a bound from below, which holds on the slowest machine.

use std::path::Path;

use sluice_chain_types::Commitment;
use sluice_testkit::rpc_node::RpcNode;
use tokio::time::Instant;

use super::*;

/// The time that a rate gives the calls of a test: far longer than as many calls take that nothing holds back.
const SPAN: Duration = Duration::from_secs(1);

/// A configuration with this node, which may be called so often a second.
fn config(url: &str, calls_per_second: u32) -> Config {
    let text = format!(
        "[chain]\nrpc-url = \"{url}\"\n\
         [[geyser.endpoints]]\nurl = \"http://127.0.0.1:1\"\n\
         [store]\npath = \"sluice.db\"\n\
         [indexer]\nbackfill-calls-per-second = {calls_per_second}\n"
    );
    Config::parse(&text, Path::new("test")).expect("valid")
}

/// How long calls take of which the last may begin no earlier than [`SPAN`] after the first, each of a clone, all at once.
async fn time_of(calls_per_second: u32) -> Duration {
    let played = RpcNode::holding([]).await.expect("a free port");
    let begun = Instant::now();
    let node = node(&config(&played.url(), calls_per_second)).expect("reading is switched on");
    let mut calls = JoinSet::new();
    for _ in 0..=calls_per_second {
        let node = node.clone();
        calls.spawn(async move { node.slot(Commitment::Confirmed).await });
    }
    let slots = calls.join_all().await;
    let took = begun.elapsed();
    assert!(slots.iter().all(|slot| matches!(slot, Ok(0))), "{slots:?}");
    took
}

#[tokio::test]
async fn a_node_is_not_called_more_often_than_is_set() {
    // Two rates, so that the higher one is not always in force.
    for calls_per_second in [4, 16] {
        let took = time_of(calls_per_second).await;
        assert!(took >= SPAN, "{calls_per_second} a second: {took:?}");
    }
}

#[tokio::test]
async fn a_rate_of_none_switches_reading_off() {
    assert!(node(&config("http://127.0.0.1:1", 0)).is_none());
}
