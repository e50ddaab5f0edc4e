//! Recent blocks: which slots a confirmed one has below it, and which it leaves behind (pure).

use std::collections::{BTreeMap, BTreeSet};

/// Unconfirmed blocks that are known at once: where confirmations stop, the oldest are forgotten.
const MOST_UNCONFIRMED: usize = 1_024;

/// Confirmed slots that are remembered: more than a replay repeats.
const MOST_CONFIRMED: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Block {
    parent: u64,
    height: Option<u64>,
}

/// The blocks that the stream has shown.
#[derive(Debug, Default)]
pub(super) struct RecentBlocks {
    unconfirmed: BTreeMap<u64, Block>,
    confirmed: BTreeSet<u64>,
}

/// What the confirmation of a slot decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    /// The slots that are confirmed by it.
    pub(super) confirmed: BTreeSet<u64>,
    /// Of the slots from this one up to the confirmed one, those that are not among `confirmed` were left behind.
    pub(super) from: u64,
    /// Whether a block is missing between the slot that was confirmed before and this one.
    pub(super) has_gap: bool,
    /// Height of the block.
    pub(super) height: Option<u64>,
}

impl RecentBlocks {
    /// The block of a slot, whichever it had before.
    pub(super) fn block(&mut self, slot: u64, parent: u64, height: Option<u64>) {
        if self.newest_confirmed().is_some_and(|newest| slot <= newest) {
            return;
        }
        self.unconfirmed.insert(slot, Block { parent, height });
        if self.unconfirmed.len() > MOST_UNCONFIRMED {
            self.unconfirmed.pop_first();
        }
    }

    /// A slot is confirmed, and with it all that it builds on; `None` where that was known.
    pub(super) fn confirm(&mut self, slot: u64) -> Option<Decided> {
        let before = self.newest_confirmed();
        if before.is_some_and(|newest| slot <= newest) {
            return None;
        }
        let height = self.unconfirmed.get(&slot).and_then(|block| block.height);
        let mut confirmed = BTreeSet::from([slot]);
        let mut lowest = slot;
        // A parent is older than its child, so this ends.
        while let Some(block) = self.unconfirmed.get(&lowest)
            && block.parent < lowest
            && before.is_none_or(|before| block.parent > before)
            && self.unconfirmed.contains_key(&block.parent)
        {
            lowest = block.parent;
            confirmed.insert(lowest);
        }
        let below = self.unconfirmed.get(&lowest).map(|block| block.parent);
        let is_whole = before.is_some() && below == before;
        let from = match before {
            Some(before) if is_whole => before.saturating_add(1),
            _ => lowest,
        };
        self.unconfirmed = self.unconfirmed.split_off(&slot.saturating_add(1));
        self.confirmed.extend(&confirmed);
        while self.confirmed.len() > MOST_CONFIRMED {
            self.confirmed.pop_first();
        }
        Some(Decided {
            confirmed,
            from,
            has_gap: before.is_some() && !is_whole,
            height,
        })
    }

    /// Whether the slot has a block that is not known to be confirmed.
    pub(super) fn has_unconfirmed(&self, slot: u64) -> bool {
        self.unconfirmed.contains_key(&slot)
    }

    /// Whether the slot is known to be confirmed.
    pub(super) fn is_confirmed(&self, slot: u64) -> bool {
        self.confirmed.contains(&slot)
    }

    /// The newest slot that is known to be confirmed.
    pub(super) fn newest_confirmed(&self) -> Option<u64> {
        self.confirmed.last().copied()
    }

    /// What came next was not seen.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(of: &[(u64, u64)]) -> RecentBlocks {
        let mut blocks = RecentBlocks::default();
        for (slot, parent) in of {
            blocks.block(*slot, *parent, Some(slot + 100));
        }
        blocks
    }

    #[test]
    fn a_confirmed_slot_confirms_what_it_builds_on_and_leaves_the_rest_behind() {
        let mut blocks = blocks(&[(10, 9), (11, 10), (12, 11), (13, 11), (15, 13), (16, 15)]);
        let first = blocks.confirm(10).expect("news");
        assert_eq!((first.from, first.has_gap), (10, false));
        let decided = blocks.confirm(15).expect("news");
        assert_eq!(decided.confirmed, BTreeSet::from([11, 13, 15]));
        assert_eq!((decided.from, decided.has_gap), (11, false));
        assert_eq!(decided.height, Some(115));
        assert!(blocks.is_confirmed(11) && !blocks.is_confirmed(12));
        assert_eq!(blocks.confirm(13), None);
        assert!(!blocks.confirm(16).expect("news").has_gap);
    }

    #[test]
    fn where_a_block_is_missing_nothing_below_it_is_decided() {
        let mut blocks = blocks(&[(10, 9), (11, 10), (13, 12), (14, 13)]);
        blocks.confirm(10);
        let decided = blocks.confirm(14).expect("news");
        assert_eq!(decided.confirmed, BTreeSet::from([13, 14]));
        assert_eq!((decided.from, decided.has_gap), (13, true));
    }

    #[test]
    fn no_more_blocks_are_known_than_may_be() {
        let mut blocks = RecentBlocks::default();
        for slot in 1..10_000 {
            blocks.block(slot, slot - 1, None);
        }
        assert_eq!(blocks.unconfirmed.len(), MOST_UNCONFIRMED);
        for slot in 10_000..20_000 {
            blocks.block(slot, slot - 1, None);
            blocks.confirm(slot);
        }
        assert_eq!(blocks.confirmed.len(), MOST_CONFIRMED);
        assert_eq!(blocks.unconfirmed.len(), 0);
    }
}
