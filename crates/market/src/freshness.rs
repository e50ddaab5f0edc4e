//! Freshness: how far behind the present the market may be and still be quoted from (pure).
//!
//! A stream may deliver every slot whole and in order, and each of them a minute late. What it delivers cannot show that; only
//! the chain's own time against the time of day can, and another node's slot.

use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use cpmm::Clock;
use sluice_chain_types::Slot;

/// Age from which a node's word about its slot says nothing any more. A node that does not answer leaves the chain's time as
/// the only measure.
const NODE_SLOT_VALID_FOR: Duration = Duration::from_secs(15);

/// How far behind the market may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Longest time by which the newest slot's Clock sysvar may be behind the time of day. The chain's time is an estimate of
    /// its validators, which is commonly a second or two behind.
    pub max_clock_age: Duration,
    /// Most slots by which the newest slot may be behind the RPC node's.
    pub max_slots_behind: u64,
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            max_clock_age: Duration::from_secs(30),
            max_slots_behind: 64,
        }
    }
}

impl Freshness {
    /// No bounds: for chains whose time is not that of the day.
    pub(crate) const UNBOUNDED: Self = Self {
        max_clock_age: Duration::MAX,
        max_slots_behind: u64::MAX,
    };

    /// Why a slot is too old to be quoted from, if it is.
    pub(crate) fn objection(
        &self,
        slot: Slot,
        clock_age: Duration,
        node_slot: Option<u64>,
    ) -> Option<String> {
        if clock_age > self.max_clock_age {
            return Some(format!(
                "slot {slot} is {} s old by the chain's time, more than {} s (freshness.max-clock-age-secs)",
                clock_age.as_secs(),
                self.max_clock_age.as_secs()
            ));
        }
        let behind = node_slot?.saturating_sub(slot.get());
        (behind > self.max_slots_behind).then(|| {
            format!(
                "slot {slot} is {behind} slots behind the node, more than {} (freshness.max-slots-behind)",
                self.max_slots_behind
            )
        })
    }
}

/// By how much the chain's time is behind the time of day; zero when it is ahead.
pub(crate) fn clock_age(clock: &Clock, now: SystemTime) -> Duration {
    let chain = u64::try_from(clock.unix_timestamp).unwrap_or(0);
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(Duration::from_secs(chain))
}

/// The RPC node's slot, as it said last.
#[derive(Default)]
pub(crate) struct NodeSlot(ArcSwapOption<(u64, Instant)>);

impl NodeSlot {
    /// The node said that it is in this slot.
    pub(crate) fn report(&self, slot: u64, now: Instant) {
        self.0.store(Some(std::sync::Arc::new((slot, now))));
    }

    /// The slot, while it says something.
    pub(crate) fn at(&self, now: Instant) -> Option<u64> {
        let reported = self.0.load();
        let (slot, at) = **reported.as_ref()?;
        (now.saturating_duration_since(at) <= NODE_SLOT_VALID_FOR).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_slot_and_one_behind_the_node_are_refused_by_the_name_of_the_bound() {
        let bounds = Freshness::default();
        let slot = Slot::new(100);
        let second = Duration::from_secs(1);
        assert_eq!(
            bounds.objection(slot, bounds.max_clock_age, Some(164)),
            None
        );
        let old = bounds.objection(slot, bounds.max_clock_age + second, None);
        assert!(
            old.expect("too old")
                .contains("freshness.max-clock-age-secs")
        );
        let behind = bounds.objection(slot, Duration::ZERO, Some(165));
        assert!(
            behind
                .expect("behind")
                .contains("freshness.max-slots-behind")
        );
    }

    #[test]
    fn a_chain_whose_time_is_ahead_is_new_and_a_node_that_fell_silent_says_nothing() {
        let clock = Clock {
            epoch: 0,
            unix_timestamp: 50,
        };
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert_eq!(clock_age(&clock, at(49)), Duration::ZERO);
        assert_eq!(clock_age(&clock, at(110)), Duration::from_secs(60));
        let (node, now) = (NodeSlot::default(), Instant::now());
        assert_eq!(node.at(now), None);
        node.report(7, now);
        assert_eq!(node.at(now + NODE_SLOT_VALID_FOR), Some(7));
        assert_eq!(
            node.at(now + NODE_SLOT_VALID_FOR + Duration::from_secs(1)),
            None
        );
    }
}
