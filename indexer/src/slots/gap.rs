//! Gap: slots whose events cannot be read any more (pure data).

/// Slots without their events, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first slot.
    pub first: u64,
    /// The last slot.
    pub last: u64,
}

impl Gap {
    /// Whether the slot is one of them.
    #[must_use]
    pub fn contains(self, slot: u64) -> bool {
        (self.first..=self.last).contains(&slot)
    }

    /// How many slots they are.
    #[must_use]
    pub const fn slots(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}
