//! Hand-over: webhooks that another connection's tree served are served from this one (pure).
//!
//! A connection whose filter was replaced holds what new addresses did only from some slot on. Another connection read
//! the slots before; it has emitted what this one has emitted, and what it holds of slots that are still to be emitted is
//! added to them here.

use sluice_chain_types::Commitment;

use super::{
    super::{Action, slot_node::SlotNode},
    ForkTree, ForkTreeError,
};

impl ForkTree {
    /// The slot up to which everything is emitted at confirmed or finalized; `None` before the first block of a
    /// connection that began with whatever came next.
    #[must_use]
    pub fn watermark(&self, commitment: Commitment) -> Option<u64> {
        self.progress(commitment).watermark
    }

    /// The hash of a slot's block, where it is held.
    #[must_use]
    pub fn blockhash(&self, slot: u64) -> Option<&str> {
        let block = self.nodes.get(&slot)?.block.as_ref()?;
        Some(&block.hash)
    }

    /// Holds from now on all that it emits, until [`ForkTree::release_emitted`], and for webhooks that ask for finalized
    /// events until it is final.
    pub fn hold_emitted(&mut self, finality_wanted: bool) {
        self.holds_emitted = true;
        if finality_wanted {
            self.last_commitment = Commitment::Finalized;
        }
    }

    /// Forgets what was held only because it is to be emitted once more.
    pub fn release_emitted(&mut self) {
        self.holds_emitted = false;
        for node in self.nodes.values_mut() {
            if node.emitted >= Some(self.last_commitment) {
                self.bytes = self.bytes.saturating_sub(node.drop_events());
            }
        }
        if let Some(watermark) = self.watermark(self.last_commitment) {
            self.forget(self.last_commitment, watermark);
        }
    }

    /// Whether `side` has emitted whatever this tree has emitted of the slots before `end`.
    #[must_use]
    pub fn is_emitted_by(&self, side: &Self, end: u64) -> bool {
        [Commitment::Confirmed, Commitment::Finalized]
            .into_iter()
            .filter(|commitment| *commitment <= side.last_commitment)
            .all(|commitment| side.watermark(commitment) >= self.emitted_before(end, commitment))
    }

    /// Whether `side` holds the block of every slot before `end` that may still be abandoned here, or none may be: the last
    /// one before `end` is among them, so that nothing below it is to come on its fork.
    #[must_use]
    pub fn is_held_by(&self, side: &Self, end: u64) -> bool {
        let Some(last) = end.checked_sub(1) else {
            return true;
        };
        let confirmed = self.watermark(Commitment::Confirmed);
        if confirmed >= Some(last) {
            return true;
        }
        let first = confirmed.map_or(0, |slot| slot.saturating_add(1));
        let is_held = |(slot, node): (&u64, &SlotNode)| {
            let of_side = side.nodes.get(slot);
            of_side.is_some_and(|of_side| of_side.sealed && node.has_same_block(of_side))
        };
        self.nodes.get(&last).is_some_and(|node| node.sealed)
            && self.nodes.range(first..end).all(is_held)
    }

    /// The newest slot before `end` that was emitted at a commitment, by this connection or one before it.
    fn emitted_before(&self, end: u64, commitment: Commitment) -> Option<u64> {
        let watermark = self.watermark(commitment)?;
        if watermark < end {
            return Some(watermark);
        }
        let below = self.nodes.range(..end).rev();
        let mut emitted = below.filter(|(_, node)| node.emitted >= Some(commitment));
        emitted.next().map(|(slot, _)| *slot).or(self.floor)
    }

    /// The newest slot that was emitted here at a commitment and of which `side` holds the same block: it may be behind.
    #[must_use]
    pub fn newest_in_common(&self, side: &Self, commitment: Commitment) -> Option<u64> {
        let known = side.nodes.range(..=self.watermark(commitment)?).rev();
        let is_emitted = |(slot, of_side): &(&u64, &SlotNode)| {
            self.nodes.get(slot).is_some_and(|node| {
                node.emitted >= Some(commitment) && node.has_same_block(of_side)
            })
        };
        known
            .take_while(|(slot, _)| side.watermark(commitment) < Some(**slot))
            .find(is_emitted)
            .map(|(slot, _)| *slot)
    }

    /// Adds the events that `side` holds of the slots up to `last`, of the blocks that are held here as well.
    ///
    /// # Errors
    /// [`ForkTreeError::Full`].
    pub fn supplement(&mut self, side: &Self, last: u64) -> Result<(), ForkTreeError> {
        for (slot, of_side) in side.nodes.range(..=last) {
            if let Some(node) = self.nodes.get_mut(slot)
                && node.has_same_block(of_side)
            {
                let added = node.supplement(of_side.events(), self.last_commitment);
                self.bytes = self.bytes.saturating_add(added);
            }
        }
        self.check_limits()
    }

    /// What was emitted of the slots from `first` on and is held, to be emitted to webhooks that came since.
    #[must_use]
    pub fn emitted_since(&self, first: u64) -> Vec<Action> {
        let nodes = self.nodes.range(first..);
        nodes.flat_map(|(_, node)| node.repeat()).collect()
    }
}
