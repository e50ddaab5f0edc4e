//! View: published states of the market, which request handlers read without a lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use cpmm::{Clock, ExchangeIds, PoolSnapshot};
use sluice_chain_types::Slot;
use sluice_geyser::{Servers, Standing};
use solana_pubkey::Pubkey;
use tokio::sync::watch;

use crate::{
    freshness::{Freshness, NodeSlot, clock_age},
    slot_state::{HeadStates, SlotState},
    state::{State, pair},
};

/// Age of the last sealed slot from which the market counts as stale. Several slots pass in a second; ten
/// seconds without one mean that the stream or the chain stands still, and a quote would be a guess.
pub const STALE_AFTER: Duration = Duration::from_secs(10);

/// Commitment of the state that a quote is made from: the market keeps none at finalized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum QuoteCommitment {
    /// The newest complete slot. It may be abandoned; the market then falls back.
    #[default]
    Processed,
    /// The newest slot that a supermajority voted for.
    Confirmed,
}

impl QuoteCommitment {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Confirmed => "confirmed",
        }
    }
}

/// Whether quotes can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The market equals the chain at `slot`.
    Ready {
        /// Last sealed slot.
        slot: Slot,
        /// Time since it was sealed.
        age: Duration,
        /// Pools that can be quoted.
        pools: usize,
        /// Pools that exist but lack an account, or have one that cannot be read.
        incomplete: usize,
    },
    /// The market does not equal the chain.
    NotReady(NotReady),
}

/// The newest slot of each commitment, highest first as a rule; `None` where none is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ladder {
    /// That the RPC node is in, while it says so.
    pub node: Option<u64>,
    /// That the stream has reported, complete or not.
    pub reported: Option<u64>,
    /// That quotes are made from.
    pub processed: Option<u64>,
    /// That a supermajority has voted for.
    pub confirmed: Option<u64>,
    /// That no fork can replace.
    pub finalized: Option<u64>,
}

/// Why the market does not equal the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// For people, anybody among them: it names no host, path or URL.
    pub reason: String,
    /// Last slot the market was true for.
    pub slot: Option<Slot>,
    /// Slots that the stream has reported since; `None` before the market was true for any.
    pub lag: Option<u64>,
}

/// A pool with all that a quote depends on, as it was when `slot` was sealed.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// Address of the pool.
    pub address: Pubkey,
    /// Pool, fee configuration, vault balances and mints, all of that slot.
    pub snapshot: Arc<PoolSnapshot>,
    /// The chain's time in `slot`.
    pub clock: Clock,
    /// The slot.
    pub slot: Slot,
}

/// Handle to the live market; clones share it. Readers take no lock: the states of both heads are published
/// together, by exchanging one pointer.
#[derive(Clone, Default)]
pub struct Market {
    shared: Arc<Shared>,
}

struct Shared {
    published: ArcSwap<Published>,
    /// Marked as changed after each exchange of `published`.
    changes: watch::Sender<()>,
    /// Highest slot that the stream reported, complete or not.
    highest_reported: AtomicU64,
    /// Highest slot that the stream reported to be finalized; 0 for none.
    highest_finalized: AtomicU64,
    exchange: ExchangeIds,
    freshness: Freshness,
    node_slot: NodeSlot,
    /// The time of day.
    clock: service_kit::Clock,
    servers: Servers,
}

impl Default for Shared {
    fn default() -> Self {
        let clock = service_kit::Clock::system();
        Self::new(
            ExchangeIds::MAINNET,
            Freshness::UNBOUNDED,
            clock,
            Servers::new([]),
        )
    }
}

impl Shared {
    fn new(
        exchange: ExchangeIds,
        freshness: Freshness,
        clock: service_kit::Clock,
        servers: Servers,
    ) -> Self {
        Self {
            exchange,
            published: ArcSwap::default(),
            changes: watch::Sender::new(()),
            highest_reported: AtomicU64::default(),
            highest_finalized: AtomicU64::default(),
            freshness,
            node_slot: NodeSlot::default(),
            clock,
            servers,
        }
    }
}

struct Published {
    /// Why quotes cannot be made; `None` when they can.
    not_ready: Option<String>,
    heads: Option<Arc<PublishedHeads>>,
}

struct PublishedHeads {
    sealed_at: Instant,
    /// By how much the chain's time was behind the time of day then.
    clock_age: Duration,
    processed: PublishedState,
    confirmed: PublishedState,
}

/// A slot state whose clock is known.
struct PublishedState {
    slot: u64,
    state: State,
    clock: Clock,
}

impl Default for Published {
    fn default() -> Self {
        Self {
            not_ready: Some("the market is starting".to_owned()),
            heads: None,
        }
    }
}

/// The exchange at the end of one slot. It stays as it is, however long it is held.
#[derive(Clone)]
pub struct View {
    exchange: ExchangeIds,
    heads: Arc<PublishedHeads>,
    commitment: QuoteCommitment,
}

impl Market {
    /// A market without a state.
    pub(crate) fn new(
        exchange: ExchangeIds,
        freshness: Freshness,
        clock: service_kit::Clock,
        servers: Servers,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(exchange, freshness, clock, servers)),
        }
    }

    /// Where the exchange is.
    #[must_use]
    pub fn exchange(&self) -> ExchangeIds {
        self.shared.exchange
    }

    /// How each server of the stream stands against the others.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        self.shared.servers.standings()
    }

    /// Whether quotes can be made, and for which slot.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status_at(Instant::now())
    }

    /// The newest slot of each commitment.
    #[must_use]
    pub fn ladder(&self) -> Ladder {
        let known = |slot: &AtomicU64| Some(slot.load(Ordering::Relaxed)).filter(|slot| *slot > 0);
        let published = self.shared.published.load();
        let heads = published.heads.as_ref();
        Ladder {
            node: self.shared.node_slot.at(Instant::now()),
            reported: known(&self.shared.highest_reported),
            processed: heads.map(|heads| heads.processed.slot),
            confirmed: heads.map(|heads| heads.confirmed.slot),
            finalized: known(&self.shared.highest_finalized),
        }
    }

    /// What changes whenever readers are shown something else. A market that grows stale changes nothing by it.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// The exchange at the newest slot of a commitment.
    ///
    /// # Errors
    /// Why no quote can be made.
    pub fn view(&self, commitment: QuoteCommitment) -> Result<View, NotReady> {
        self.view_at(commitment, Instant::now())
    }

    fn status_at(&self, now: Instant) -> Status {
        match self.view_at(QuoteCommitment::Processed, now) {
            Err(not_ready) => Status::NotReady(not_ready),
            Ok(view) => Status::Ready {
                slot: view.slot(),
                age: now.saturating_duration_since(view.heads.sealed_at),
                pools: view.len(),
                incomplete: view.shown().state.incomplete_len(),
            },
        }
    }

    fn view_at(&self, commitment: QuoteCommitment, now: Instant) -> Result<View, NotReady> {
        let published = self.shared.published.load();
        let reason = match (&published.not_ready, &published.heads) {
            (Some(reason), _) => reason.clone(),
            (None, None) => "no slot was seen yet".to_owned(),
            (None, Some(heads)) => {
                let age = now.saturating_duration_since(heads.sealed_at);
                let objection = self.shared.freshness.objection(
                    Slot::new(heads.processed.slot),
                    heads.clock_age.saturating_add(age),
                    self.shared.node_slot.at(now),
                );
                match objection {
                    _ if age > STALE_AFTER => {
                        format!("no slot was completed for {} s", age.as_secs())
                    }
                    Some(objection) => objection,
                    None => {
                        let heads = Arc::clone(heads);
                        let exchange = self.shared.exchange;
                        return Ok(View {
                            exchange,
                            heads,
                            commitment,
                        });
                    }
                }
            }
        };
        let heads = published.heads.as_ref();
        let slot = heads.map(|heads| Slot::new(heads.processed.slot));
        let highest = self.shared.highest_reported.load(Ordering::Relaxed);
        Err(NotReady {
            reason,
            slot,
            lag: slot.map(|slot| highest.saturating_sub(slot.get())),
        })
    }

    /// Quotes cannot be made any more. Views that were taken stay readable, so that a request that
    /// has begun ends with the state it began with.
    pub(crate) fn set_not_ready(&self, reason: String) {
        self.shared.published.rcu(|before| Published {
            not_ready: Some(reason.clone()),
            heads: before.heads.clone(),
        });
        self.shared.changes.send_replace(());
    }

    /// The stream reported a slot.
    pub(crate) fn report_slot(&self, slot: u64) {
        self.shared
            .highest_reported
            .fetch_max(slot, Ordering::Relaxed);
    }

    /// The stream reported that a slot is finalized.
    pub(crate) fn report_finalized(&self, slot: u64) {
        self.shared
            .highest_finalized
            .fetch_max(slot, Ordering::Relaxed);
    }

    /// The node said that it is in this slot.
    pub(crate) fn report_node_slot(&self, slot: u64, now: Instant) {
        self.shared.node_slot.report(slot, now);
    }

    /// Shows readers the states of both heads, all at once. Without the chain's time nothing is shown.
    pub(crate) fn publish(&self, states: HeadStates) {
        let published = |SlotState { slot, state }| {
            let clock = state.clock()?;
            Some(PublishedState { slot, state, clock })
        };
        let both = published(states.processed).zip(published(states.confirmed));
        let heads = both.map(|(processed, confirmed)| {
            Arc::new(PublishedHeads {
                sealed_at: Instant::now(),
                clock_age: clock_age(&processed.clock, self.shared.clock.now()),
                processed,
                confirmed,
            })
        });
        let before = self.shared.published.swap(Arc::new(Published {
            not_ready: heads
                .is_none()
                .then(|| "the chain's time is not known".to_owned()),
            heads,
        }));
        self.shared.changes.send_replace(());
        // All that only the states before had is freed with them, hundreds of pools: readers do not wait for that.
        drop(before);
    }
}

impl View {
    /// The slot whose end this is.
    #[must_use]
    pub fn slot(&self) -> Slot {
        Slot::new(self.shown().slot)
    }

    /// The chain's time in the slot.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shown().clock
    }

    /// Where the exchange is.
    #[must_use]
    pub const fn exchange(&self) -> ExchangeIds {
        self.exchange
    }

    /// Commitment at which the view was taken.
    #[must_use]
    pub const fn commitment(&self) -> QuoteCommitment {
        self.commitment
    }

    /// One pool. `None` when there is none, or when it cannot be quoted because an account of it is
    /// missing.
    #[must_use]
    pub fn pool(&self, address: &Pubkey) -> Option<PoolView> {
        let snapshot = self.shown().state.pool(address)?;
        Some(self.of(*address, snapshot))
    }

    /// All pools of two mints that can be quoted, in the order of their addresses.
    pub fn pools_for(&self, a: &Pubkey, b: &Pubkey) -> impl Iterator<Item = PoolView> {
        let listed = self.shown().state.pools_of(&pair(*a, *b)).iter();
        listed.filter_map(|address| self.pool(address))
    }

    /// The mints through which two pools lead from the one mint to the other, in no order. Only mints that the rarer of
    /// the two is traded for are looked at, and not every pair of pools.
    pub fn middles(&self, a: &Pubkey, b: &Pubkey) -> impl Iterator<Item = Pubkey> {
        self.shown().state.middles(a, b)
    }

    /// The addresses of the pools that trade a mint and can be quoted, in no order.
    pub fn addresses_of(&self, mint: &Pubkey) -> impl Iterator<Item = Pubkey> {
        self.shown().state.pools_with(mint)
    }

    /// The addresses of every pool that can be quoted, in no order.
    pub fn addresses(&self) -> impl Iterator<Item = Pubkey> {
        let pools = self.shown().state.pools();
        pools.map(|(address, _)| *address)
    }

    /// Every pool that can be quoted, in no order.
    pub fn pools(&self) -> impl Iterator<Item = PoolView> {
        let pools = self.shown().state.pools();
        pools.map(|(address, snapshot)| self.of(*address, snapshot))
    }

    /// Number of pools that can be quoted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shown().state.len()
    }

    /// Whether no pool can be quoted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shown(&self) -> &PublishedState {
        match self.commitment {
            QuoteCommitment::Processed => &self.heads.processed,
            QuoteCommitment::Confirmed => &self.heads.confirmed,
        }
    }

    fn of(&self, address: Pubkey, snapshot: &Arc<PoolSnapshot>) -> PoolView {
        PoolView {
            address,
            snapshot: Arc::clone(snapshot),
            clock: self.clock(),
            slot: self.slot(),
        }
    }
}

#[cfg(test)]
mod tests;
