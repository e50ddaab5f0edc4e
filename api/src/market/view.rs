//! What handlers read.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use cpmm::{Clock, PoolSnapshot};
use parking_lot::RwLock;
use solana_pubkey::Pubkey;

use super::apply::Sealed;

/// Age of the last sealed slot from which the market counts as stale. A slot passes every 400 ms; ten
/// seconds without one mean that the stream or the chain stands still, and a quote would be a guess.
pub const STALE_AFTER: Duration = Duration::from_secs(10);

/// Whether quotes can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The market equals the chain at `slot`.
    Ready {
        /// Last sealed slot.
        slot: u64,
        /// Time since it was sealed.
        age: Duration,
        /// Pools that can be quoted.
        pools: usize,
        /// Pools that exist but lack an account, or have one that cannot be read.
        incomplete: usize,
    },
    /// The market does not equal the chain.
    NotReady {
        /// Why, for people.
        reason: String,
        /// Last slot the market was true for.
        slot: Option<u64>,
    },
}

/// A pool with all that a quote depends on, as it was when `slot` was sealed.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// Address of the pool.
    pub address: Pubkey,
    /// Pool, fee configuration, vault balances and mints, of one moment.
    pub snapshot: Arc<PoolSnapshot>,
    /// The chain's time in `slot`.
    pub clock: Clock,
    /// The slot.
    pub slot: u64,
}

/// Handle to the live market; clones share it.
#[derive(Clone, Default)]
pub struct Market {
    visible: Arc<RwLock<Visible>>,
}

#[derive(Default)]
struct Visible {
    /// Why quotes cannot be made; `None` when they can.
    not_ready: Option<String>,
    started: bool,
    tip: Option<Tip>,
    clock: Option<Clock>,
    pools: HashMap<Pubkey, Arc<PoolSnapshot>>,
    /// Pools by their two mints, smaller address first, as pools store them.
    pairs: HashMap<(Pubkey, Pubkey), BTreeSet<Pubkey>>,
    incomplete: usize,
}

#[derive(Clone, Copy)]
struct Tip {
    slot: u64,
    sealed_at: Instant,
}

impl Market {
    /// Whether quotes can be made, and for which slot.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status_at(Instant::now())
    }

    /// All pools of two mints, in no particular order, of one moment.
    #[must_use]
    pub fn pools_for(&self, input: &Pubkey, output: &Pubkey) -> Vec<PoolView> {
        let visible = self.visible.read();
        let pools = visible.pairs.get(&pair(*input, *output));
        pools
            .into_iter()
            .flatten()
            .filter_map(|pool| visible.view(pool))
            .collect()
    }

    /// One pool. `None` when there is none, or when it cannot be quoted because an account of it is
    /// missing.
    #[must_use]
    pub fn pool(&self, pool: &Pubkey) -> Option<PoolView> {
        self.visible.read().view(pool)
    }

    fn status_at(&self, now: Instant) -> Status {
        let visible = self.visible.read();
        let not_ready = |reason: String| Status::NotReady {
            reason,
            slot: visible.tip.map(|tip| tip.slot),
        };
        if !visible.started {
            return not_ready("the market is starting".to_owned());
        }
        if let Some(reason) = &visible.not_ready {
            return not_ready(reason.clone());
        }
        let Some(tip) = visible.tip else {
            return not_ready("no slot was seen yet".to_owned());
        };
        let age = now.saturating_duration_since(tip.sealed_at);
        if age > STALE_AFTER {
            return not_ready(format!("no slot was completed for {} s", age.as_secs()));
        }
        Status::Ready {
            slot: tip.slot,
            age,
            pools: visible.pools.len(),
            incomplete: visible.incomplete,
        }
    }

    /// Quotes cannot be made any more. What was visible stays readable until the next start, so that
    /// a request that has begun ends with the state it began with.
    pub(super) fn set_not_ready(&self, reason: String) {
        let mut visible = self.visible.write();
        visible.started = true;
        visible.not_ready = Some(reason);
    }

    /// Empties the market for a start from nothing.
    pub(super) fn clear(&self, reason: String) {
        let mut visible = self.visible.write();
        let tip = visible.tip;
        *visible = Visible {
            started: true,
            not_ready: Some(reason),
            tip,
            ..Visible::default()
        };
    }

    /// Makes a slot visible, all at once.
    pub(super) fn publish(&self, sealed: Sealed, ready: bool, incomplete: usize) {
        let mut visible = self.visible.write();
        visible.tip = Some(Tip {
            slot: sealed.slot,
            sealed_at: Instant::now(),
        });
        visible.clock = sealed.clock;
        visible.incomplete = incomplete;
        if ready {
            visible.not_ready = None;
        }
        for (address, pool) in sealed.pools {
            visible.set(address, pool);
        }
    }
}

impl Visible {
    fn set(&mut self, address: Pubkey, pool: Option<Arc<PoolSnapshot>>) {
        let key = |pool: &PoolSnapshot| pair(pool.pool.mints.token_0, pool.pool.mints.token_1);
        let Some(pool) = pool else {
            if let Some(before) = self.pools.remove(&address)
                && let Some(pools) = self.pairs.get_mut(&key(&before))
            {
                pools.remove(&address);
            }
            return;
        };
        self.pairs.entry(key(&pool)).or_default().insert(address);
        self.pools.insert(address, pool);
    }

    fn view(&self, address: &Pubkey) -> Option<PoolView> {
        Some(PoolView {
            address: *address,
            snapshot: Arc::clone(self.pools.get(address)?),
            clock: self.clock?,
            slot: self.tip?.slot,
        })
    }
}

fn pair(a: Pubkey, b: Pubkey) -> (Pubkey, Pubkey) {
    if a <= b { (a, b) } else { (b, a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(slot: u64) -> Sealed {
        Sealed {
            slot,
            clock: Some(Clock::default()),
            pools: Vec::new(),
        }
    }

    fn reason(market: &Market, now: Instant) -> Option<String> {
        match market.status_at(now) {
            Status::Ready { .. } => None,
            Status::NotReady { reason, .. } => Some(reason),
        }
    }

    #[test]
    fn a_market_is_not_ready_before_it_is_said_to_be() {
        let market = Market::default();
        assert!(reason(&market, Instant::now()).is_some());
        market.clear("reading".to_owned());
        market.publish(sealed(7), false, 0);
        assert_eq!(reason(&market, Instant::now()).as_deref(), Some("reading"));
        market.publish(sealed(8), true, 0);
        assert_eq!(reason(&market, Instant::now()), None);
        market.set_not_ready("lost".to_owned());
        let lost = Status::NotReady {
            reason: "lost".to_owned(),
            slot: Some(8),
        };
        assert_eq!(market.status(), lost);
    }

    #[test]
    fn a_market_without_new_slots_becomes_stale() {
        let market = Market::default();
        market.clear("reading".to_owned());
        market.publish(sealed(7), true, 0);
        let now = Instant::now();
        assert_eq!(
            reason(&market, now + STALE_AFTER - Duration::from_secs(1)),
            None
        );
        let stale = reason(&market, now + STALE_AFTER + Duration::from_secs(1));
        assert!(stale.is_some_and(|reason| reason.contains("no slot")));
    }
}
