//! Reported statuses: what was reported of the slots, and which of them are processed and confirmed by it (pure).

use std::collections::{BTreeMap, BTreeSet};

/// What was reported of the slots, in any order and any number of times.
#[derive(Clone, Debug)]
pub struct ReportedStatuses {
    genesis: u64,
    /// The parent of each slot, once any message named it.
    pub parents: BTreeMap<u64, u64>,
    /// Slots said to be frozen.
    pub processed: BTreeSet<u64>,
    /// Slots said to be confirmed or finalized.
    pub confirmed: BTreeSet<u64>,
    /// Slots said to be dead.
    pub dead: BTreeSet<u64>,
}

impl ReportedStatuses {
    /// Nothing but that the first slot is confirmed.
    #[must_use]
    pub fn new(genesis: u64) -> Self {
        Self {
            genesis,
            parents: BTreeMap::new(),
            processed: BTreeSet::from([genesis]),
            confirmed: BTreeSet::from([genesis]),
            dead: BTreeSet::new(),
        }
    }

    /// Slots that are frozen together with all their ancestors.
    #[must_use]
    pub fn sealed(&self) -> BTreeSet<u64> {
        let mut sealed = BTreeSet::from([self.genesis]);
        // A parent is older than its child, so one pass in ascending order sees parents first.
        for slot in &self.processed {
            if self.parents.get(slot).is_some_and(|p| sealed.contains(p)) {
                sealed.insert(*slot);
            }
        }
        sealed
    }

    /// Dead slots and all that build on them.
    #[must_use]
    pub fn void(&self) -> BTreeSet<u64> {
        let mut void = self.dead.clone();
        for (slot, parent) in &self.parents {
            if void.contains(parent) {
                void.insert(*slot);
            }
        }
        void
    }

    /// A slot and its ancestors, youngest first.
    pub fn ancestry(&self, slot: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(slot), |slot| self.parents.get(slot).copied())
    }

    /// A slot and all that build on it.
    #[must_use]
    pub fn tree(&self, slot: u64) -> BTreeSet<u64> {
        let mut tree = BTreeSet::from([slot]);
        for (slot, parent) in self.parents.range(slot..) {
            if tree.contains(parent) {
                tree.insert(*slot);
            }
        }
        tree
    }

    /// Slots said to be confirmed, and all that they build on.
    #[must_use]
    pub fn confirmed_by_implication(&self) -> BTreeSet<u64> {
        let mut confirmed = self.confirmed.clone();
        for (slot, parent) in self.parents.iter().rev() {
            if confirmed.contains(slot) {
                confirmed.insert(*parent);
            }
        }
        confirmed
    }

    /// The slot that the confirmed view shows.
    #[must_use]
    pub fn confirmed_slot(&self) -> u64 {
        let (sealed, void) = (self.sealed(), self.void());
        let mut confirmed = self.confirmed_by_implication().into_iter().rev();
        confirmed
            .find(|slot| sealed.contains(slot) && !void.contains(slot))
            .unwrap_or(self.genesis)
    }

    /// The slot that the processed view shows.
    #[must_use]
    pub fn processed_slot(&self) -> u64 {
        let confirmed = self.confirmed_slot();
        let (tree, void) = (self.tree(confirmed), self.void());
        let sealed = self.sealed().into_iter();
        let shown = sealed.filter(|slot| tree.contains(slot) && !void.contains(slot));
        // Of two forks the longer one, of equally long ones the one with the higher slot.
        let blocks = |slot: &u64| self.ancestry(*slot).count();
        shown
            .max_by_key(|slot| (blocks(slot), *slot))
            .unwrap_or(confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(parents: &[(u64, u64)]) -> ReportedStatuses {
        let mut reported = ReportedStatuses::new(10);
        reported.parents.extend(parents.iter().copied());
        reported
            .processed
            .extend(parents.iter().map(|(slot, _)| *slot));
        reported
    }

    #[test]
    fn a_short_fork_with_a_high_number_is_not_shown() {
        let reported = reported(&[(11, 10), (12, 11), (13, 10)]);
        assert_eq!(reported.processed_slot(), 12);
    }

    #[test]
    fn the_highest_sealed_slot_is_shown_and_an_unsealed_one_is_not() {
        let mut reported = reported(&[(11, 10), (12, 11), (14, 13)]);
        assert_eq!(
            (reported.processed_slot(), reported.confirmed_slot()),
            (12, 10)
        );
        reported.parents.insert(13, 12);
        reported.processed.insert(13);
        assert_eq!(reported.processed_slot(), 14);
    }

    #[test]
    fn death_takes_the_descendants_along() {
        let mut reported = reported(&[(11, 10), (12, 11), (13, 12), (14, 11)]);
        reported.dead.insert(12);
        assert_eq!(reported.processed_slot(), 14);
        reported.dead.insert(14);
        assert_eq!(reported.processed_slot(), 11);
    }

    #[test]
    fn a_confirmed_slot_confirms_its_ancestors_and_ends_other_forks() {
        let mut reported = reported(&[(11, 10), (12, 11), (13, 11)]);
        reported.confirmed.insert(12);
        assert_eq!(
            (reported.processed_slot(), reported.confirmed_slot()),
            (12, 12)
        );
        reported.processed.remove(&12);
        assert_eq!(
            (reported.processed_slot(), reported.confirmed_slot()),
            (13, 11)
        );
    }
}
