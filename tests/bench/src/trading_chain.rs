//! Trading chain: a scripted chain in whose slots pools trade in turn, as many as trade in a busy slot.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use cpmm::{PoolState, ids};
use parking_lot::Mutex;
use sluice_geyser::SlotStatus;
use sluice_testkit::{
    accounts::Content,
    scripted_chain::{Message, ScriptedChain},
    scripted_pools::{self, ScriptedPool, ScriptedPools},
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{task::AbortHandle, time::sleep};

/// Slot in which the chain begins.
pub const GENESIS: u64 = 1_000;

/// Pools of the chain, and those of them that trade in each slot.
const POOLS: usize = 500;
const TRADING: usize = 200;

/// Swaps reported at a time: with a millisecond after each, 15,000 writes in a second.
const PIECE: usize = 5;
const BETWEEN_PIECES: Duration = Duration::from_millis(1);

/// Slots after which a slot is confirmed, and finalized.
const CONFIRMED_AFTER: u64 = 2;
const FINALIZED_AFTER: u64 = 32;

/// The chain, which goes on until this is dropped.
pub struct TradingChain {
    /// What servers and nodes report.
    pub chain: ScriptedChain,
    sealed: Arc<Mutex<BTreeMap<u64, Instant>>>,
    task: AbortHandle,
}

impl Drop for TradingChain {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TradingChain {
    /// Starts one whose slots are this long, the time in which their writes come included.
    #[must_use]
    pub fn start(slot_time: Duration) -> Self {
        let exchange = exchange();
        let chain = ScriptedChain::new(GENESIS, exchange.state(GENESIS));
        let sealed = Arc::default();
        let trade = trade(
            chain.clone(),
            exchange.pools,
            slot_time,
            Arc::clone(&sealed),
        );
        Self {
            chain,
            sealed,
            task: tokio::spawn(trade).abort_handle(),
        }
    }

    /// When the message that completes a slot was handed to the servers.
    #[must_use]
    pub fn sealed_at(&self, slot: u64) -> Option<Instant> {
        self.sealed.lock().get(&slot).copied()
    }

    /// The newest slot of which that has happened.
    #[must_use]
    pub fn newest_sealed(&self) -> Option<u64> {
        self.sealed.lock().keys().next_back().copied()
    }
}

fn exchange() -> ScriptedPools {
    let mut exchange = ScriptedPools::default();
    let [a, b, ..] = exchange.tokens;
    let config = exchange.configs[0];
    let pool = |number| ScriptedPool::new(&format!("traded pool {number}"), config, a, b);
    exchange.pools = (0..POOLS).map(pool).collect();
    exchange
}

async fn trade(
    chain: ScriptedChain,
    pools: Vec<ScriptedPool>,
    slot_time: Duration,
    sealed: Arc<Mutex<BTreeMap<u64, Instant>>>,
) {
    for slot in GENESIS + 1.. {
        let begun = Instant::now();
        pass(&chain, slot, &pools, &sealed).await;
        sleep(slot_time.saturating_sub(begun.elapsed())).await;
    }
}

async fn pass(
    chain: &ScriptedChain,
    slot: u64,
    pools: &[ScriptedPool],
    sealed: &Mutex<BTreeMap<u64, Instant>>,
) {
    chain.lock().tree.open(slot, slot - 1);
    let status = |slot, status| chain.report(Message::status(slot, status, Some(slot - 1)));
    status(slot, SlotStatus::CreatedBank);
    let clock = scripted_pools::clock(slot, scripted_pools::EPOCH);
    write(chain, slot, ids::CLOCK, clock, None);
    let first = usize::try_from(slot).unwrap_or_default() * TRADING;
    let trading: Vec<_> = pools
        .iter()
        .cycle()
        .skip(first % POOLS)
        .take(TRADING)
        .collect();
    let mut number = 0;
    for piece in trading.chunks(PIECE) {
        for pool in piece {
            swap(chain, slot, pool, number);
            number += 1;
        }
        sleep(BETWEEN_PIECES).await;
    }
    {
        // A reader that is faster than this waits for the moment to be noted.
        let mut sealed = sealed.lock();
        let processed = Message::status(slot, SlotStatus::Processed, Some(slot - 1));
        sealed.insert(slot, chain.report_timed(processed));
    }
    for (after, level) in [
        (CONFIRMED_AFTER, SlotStatus::Confirmed),
        (FINALIZED_AFTER, SlotStatus::Finalized),
    ] {
        if slot > GENESIS + after {
            status(slot - after, level);
        }
    }
}

/// The swap of this number in a slot: one transaction makes its writes, as on every chain.
fn swap(chain: &ScriptedChain, slot: u64, pool: &ScriptedPool, number: u64) {
    let mut signature = [0; 64];
    let (of_slot, of_swap) = signature.split_at_mut(32);
    of_slot[..8].copy_from_slice(&slot.to_le_bytes());
    of_swap[..8].copy_from_slice(&number.to_le_bytes());
    let signature = Signature::from(signature);
    let mut state: PoolState = pool.state();
    state.protocol_fees.token_0 = slot;
    for (key, content) in [
        (pool.vaults.token_0, pool.vault_0(1_000_000 + slot)),
        (pool.vaults.token_1, pool.vault_1(2_000_000 - slot)),
        (pool.pool, Content::pool(state)),
    ] {
        write(chain, slot, key, content, Some(signature));
    }
}

/// A write by a transaction, or by the validator itself.
fn write(
    chain: &ScriptedChain,
    slot: u64,
    key: Pubkey,
    content: Content,
    transaction: Option<Signature>,
) {
    let write = {
        let mut record = chain.lock();
        let block = record.tree.current(slot).expect("the slot is open");
        record.tree.write_in(block, key, content, transaction)
    };
    chain.report(Message::write(slot, &write));
}
