//! Reader of the market under test, and the one place of the suite that names the market's types.

use cpmm::PoolSnapshot;
use sluice_market::{Market, QuoteCommitment, Status, View};
use solana_pubkey::Pubkey;

use super::model::QuotedState;

/// One of the two views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The newest state.
    Processed,
    /// The newest confirmed state.
    Confirmed,
}

/// Reads a market.
#[derive(Clone)]
pub struct Reader(Market);

impl Reader {
    /// Reads this market.
    #[must_use]
    pub const fn new(market: Market) -> Self {
        Self(market)
    }

    /// Why the market cannot be read, if it says so.
    #[must_use]
    pub fn not_ready(&self) -> Option<String> {
        match self.0.status() {
            Status::Ready { .. } => None,
            Status::NotReady(not_ready) => Some(not_ready.reason),
        }
    }

    /// One view, whole; `None` while the market is not ready.
    #[must_use]
    pub fn moment(&self, level: Level) -> Option<QuotedState> {
        Some(Held(self.view(level)?).moment())
    }

    /// The slot of one view; `None` while the market is not ready.
    #[must_use]
    pub fn slot(&self, level: Level) -> Option<u64> {
        Some(self.view(level)?.slot().get())
    }

    fn view(&self, level: Level) -> Option<View> {
        let commitment = match level {
            Level::Processed => QuoteCommitment::Processed,
            Level::Confirmed => QuoteCommitment::Confirmed,
        };
        self.0.view(commitment).ok()
    }

    /// The processed view as it is now, to be read again later.
    ///
    /// # Panics
    /// When the market is not ready.
    #[must_use]
    pub fn hold(&self) -> Held {
        let view = self.0.view(QuoteCommitment::Processed);
        Held(view.expect("the market is ready"))
    }

    /// Pools of two mints in one view, in order of their addresses.
    #[must_use]
    pub fn pools_for(&self, a: &Pubkey, b: &Pubkey) -> Vec<Pubkey> {
        let Ok(view) = self.0.view(QuoteCommitment::Processed) else {
            return Vec::new();
        };
        let mut pools: Vec<Pubkey> = view.pools_for(a, b).map(|pool| pool.address).collect();
        pools.sort_unstable();
        pools
    }
}

/// A view that somebody holds.
pub struct Held(View);

impl Held {
    /// What it shows.
    #[must_use]
    pub fn moment(&self) -> QuotedState {
        let pools = self.0.pools();
        QuotedState {
            slot: self.0.slot().get(),
            clock: self.0.clock(),
            pools: pools
                .map(|pool| (pool.address, PoolSnapshot::clone(&pool.snapshot)))
                .collect(),
        }
    }
}
