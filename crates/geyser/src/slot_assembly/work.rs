//! Work of the assembler: slots to look at again, and slots that are not given out for good (pure).
//!
//! A chain that stops finalizing leaves hundreds of slots, so that no message may cost as much as there are.

use std::collections::BTreeSet;

/// Slots to look at.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Something became known of them since they were looked at.
    due: BTreeSet<u64>,
    /// Something became known that may concern any.
    all: bool,
    /// Those that were not given out, or that another block than the given one is said to be of. Some may be neither.
    suspects: BTreeSet<u64>,
}

impl Work {
    pub(super) fn is_due(&mut self, slot: u64) {
        self.due.insert(slot);
    }

    pub(super) const fn all_are_due(&mut self) {
        self.all = true;
    }

    /// Whether something became known that may concern any slot, which is forgotten with that.
    pub(super) const fn take_all(&mut self) -> bool {
        std::mem::replace(&mut self.all, false)
    }

    /// Takes out the lowest slot that is due.
    pub(super) fn next(&mut self) -> Option<u64> {
        self.due.pop_first()
    }

    pub(super) fn suspect(&mut self, slot: u64) {
        self.suspects.insert(slot);
    }

    pub(super) fn clear(&mut self, slot: u64) {
        self.suspects.remove(&slot);
    }

    /// Slots that may have to be asked for again.
    pub(super) fn suspects_from(&self, start: u64) -> impl Iterator<Item = u64> {
        self.suspects.range(start..).copied()
    }

    /// Nothing is known of this slot and those above.
    pub(super) fn forget_from(&mut self, slot: u64) {
        self.due.split_off(&slot);
        self.suspects.split_off(&slot);
    }

    /// Nothing below is of any interest.
    pub(super) fn forget_below(&mut self, slot: u64) {
        self.due = self.due.split_off(&slot);
        self.suspects = self.suspects.split_off(&slot);
    }
}
