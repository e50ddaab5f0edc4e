//! Slot number: the position of a block on the chain's clock.

use std::fmt;

/// The number of a slot of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u64);

impl Slot {
    /// The slot of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The slot this many slots later, or the last one there is.
    #[must_use]
    pub const fn plus(self, slots: u64) -> Self {
        Self(self.0.saturating_add(slots))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
