//! Resume after a cut of 30 seconds: time from the return of the network to a market that is ready again.
//!
//! Slots of 400 ms go on during the cut, and the server replays the frozen blocks that the market missed.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use cpmm::{PoolState, ids};
use sluice_geyser::SlotStatus;
use sluice_harness::market::{MarketHarness, settings};
use sluice_market::{Market, Status};
use sluice_testkit::{
    accounts::Content,
    figure::{Figure, Limit},
    network_link::NetworkLink,
    rpc_node::RpcNode,
    scripted_chain::{Message, ScriptedChain},
    scripted_pools::{self, ScriptedPool, ScriptedPools},
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use tokio::{task::AbortHandle, time::sleep};

/// Slot in which the chain begins.
const GENESIS: u64 = 1_000;

/// A slot of the chain.
const SLOT_TIME: Duration = Duration::from_millis(400);

/// Pools of the chain, and those of them that trade in each slot.
const POOLS: usize = 500;
const TRADING: usize = 200;

/// How long the network is away, and how often.
const CUT: Duration = Duration::from_secs(30);
const CUTS: usize = 3;

/// Between two looks at the market.
const LOOK: Duration = Duration::from_millis(2);

/// When to give up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Slots after which a slot is confirmed, and finalized.
const CONFIRMED_AFTER: u64 = 2;
const FINALIZED_AFTER: u64 = 32;

/// Measures cuts; the longest of them counts.
///
/// # Errors
/// When a double cannot be started, or the market does not get ready.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let exchange = exchange();
    let chain = ScriptedChain::new(GENESIS, exchange.state(GENESIS));
    let node = RpcNode::of_chain(chain.clone()).await?;
    let server = YellowstoneServer::start(chain.clone()).await?;
    let link = NetworkLink::to(server.address()).await?;
    let _trade = trade(chain, exchange.pools);
    let market = MarketHarness::start(settings(&[link.url()], &node.url()));
    until_ready(market.market()).await?;

    let mut longest = Duration::ZERO;
    for _ in 0..CUTS {
        link.refuse(true);
        link.cut();
        sleep(CUT).await;
        if is_ready(market.market()) {
            bail!("the market is ready without its stream");
        }
        link.refuse(false);
        longest = longest.max(until_ready(market.market()).await?);
    }
    market.stop().await;
    Ok(vec![Figure::new(
        "network back after a cut of 30 s -> ready, the longest of three",
        longest.as_secs_f64(),
        "s",
        Limit::AtMost(2.0),
    )])
}

fn exchange() -> ScriptedPools {
    let mut exchange = ScriptedPools::default();
    let [a, b, ..] = exchange.tokens;
    let config = exchange.configs[0];
    let pool = |number| ScriptedPool::new(&format!("traded pool {number}"), config, a, b);
    exchange.pools = (0..POOLS).map(pool).collect();
    exchange
}

async fn until_ready(market: &Market) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let ready = async {
        while !is_ready(market) {
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

/// Slots pass in which pools trade in turn, until the handle is dropped.
fn trade(chain: ScriptedChain, pools: Vec<ScriptedPool>) -> Trade {
    let task = tokio::spawn(async move {
        for slot in GENESIS + 1.. {
            pass(&chain, slot, &pools);
            sleep(SLOT_TIME).await;
        }
    });
    Trade(task.abort_handle())
}

/// Ends the trade when it is dropped.
struct Trade(AbortHandle);

impl Drop for Trade {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn pass(chain: &ScriptedChain, slot: u64, pools: &[ScriptedPool]) {
    let parent = slot - 1;
    chain.lock().tree.open(slot, parent);
    let status = |slot, status| chain.report(Message::status(slot, status, Some(slot - 1)));
    status(slot, SlotStatus::CreatedBank);
    write(
        chain,
        slot,
        ids::CLOCK,
        scripted_pools::clock(slot, scripted_pools::EPOCH),
    );
    let first = usize::try_from(slot).unwrap_or_default() * TRADING;
    for scripted in pools.iter().cycle().skip(first % POOLS).take(TRADING) {
        let mut state: PoolState = scripted.state();
        state.protocol_fees.token_0 = slot;
        write(
            chain,
            slot,
            scripted.vaults.token_0,
            scripted.vault_0(1_000_000 + slot),
        );
        write(
            chain,
            slot,
            scripted.vaults.token_1,
            scripted.vault_1(2_000_000 - slot),
        );
        write(chain, slot, scripted.pool, Content::pool(state));
    }
    status(slot, SlotStatus::Processed);
    for (after, level) in [
        (CONFIRMED_AFTER, SlotStatus::Confirmed),
        (FINALIZED_AFTER, SlotStatus::Finalized),
    ] {
        if slot > GENESIS + after {
            status(slot - after, level);
        }
    }
}

fn write(chain: &ScriptedChain, slot: u64, key: Pubkey, content: Content) {
    let write = chain.lock().tree.write(slot, key, content);
    chain.report(Message::write(slot, &write));
}
