//! Resume after a cut of 30 seconds: time from the return of the network to a market that is ready again.
//!
//! Slots of 400 ms go on during the cut, and the server replays the frozen blocks that the market missed. Ready is a market
//! that shows the slot that was the newest when the network returned, or a later one.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sluice_harness::market::{MarketHarness, settings};
use sluice_market::{Market, QuoteCommitment, Status};
use sluice_testkit::{
    figure::{Figure, Limit},
    network_link::NetworkLink,
    rpc_node::RpcNode,
    yellowstone_server::YellowstoneServer,
};
use tokio::time::sleep;

use crate::trading_chain::TradingChain;

/// A slot of the chain.
const SLOT_TIME: Duration = Duration::from_millis(400);

/// How long the network is away, and how often.
const CUT: Duration = Duration::from_secs(30);
const CUTS: usize = 3;

/// Between two looks at the market.
const LOOK: Duration = Duration::from_millis(2);

/// When to give up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures cuts; the longest of them counts.
///
/// # Errors
/// When a double cannot be started, or the market does not get ready.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let trading = TradingChain::start(SLOT_TIME);
    let node = RpcNode::of_chain(trading.chain.clone()).await?;
    let server = YellowstoneServer::start(trading.chain.clone()).await?;
    let link = NetworkLink::to(server.address()).await?;
    let market = MarketHarness::start(settings(&[link.url()], &node.url()));
    until_ready(market.market(), 0).await?;

    let mut longest = Duration::ZERO;
    for _ in 0..CUTS {
        link.refuse(true);
        link.cut();
        sleep(CUT).await;
        if is_ready(market.market()) {
            bail!("the market is ready without its stream");
        }
        let newest = trading.newest_sealed().context("slots were sealed")?;
        link.refuse(false);
        longest = longest.max(until_ready(market.market(), newest).await?);
    }
    market.stop().await;
    Ok(vec![Figure::new(
        "network back after a cut of 30 s -> ready, the longest of three",
        longest.as_secs_f64(),
        "s",
        Limit::AtMost(2.0),
    )])
}

/// Waits until the market is ready and shows this slot, or a later one.
async fn until_ready(market: &Market, slot: u64) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let shows = || {
        let view = market.view(QuoteCommitment::Processed);
        view.is_ok_and(|view| view.slot().get() >= slot)
    };
    let ready = async {
        while !(is_ready(market) && shows()) {
            sleep(LOOK).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, ready).await;
    waited.with_context(|| format!("the market does not get ready: {:?}", market.status()))?;
    Ok(begun.elapsed())
}

fn is_ready(market: &Market) -> bool {
    matches!(market.status(), Status::Ready { .. })
}
