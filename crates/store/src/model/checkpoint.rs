//! Checkpoints and resume state of the indexer: unconfirmed slots, and filter changes not in force.

use std::collections::BTreeMap;

use sluice_chain_types::Commitment;

use super::FilterChange;

/// By commitment, the slot up to which everything that happened is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    processed: Option<u64>,
    confirmed: Option<u64>,
    finalized: Option<u64>,
}

impl Checkpoints {
    /// None at any commitment.
    pub const NONE: Self = Self {
        processed: None,
        confirmed: None,
        finalized: None,
    };

    /// One at this commitment alone.
    #[must_use]
    pub const fn at(commitment: Commitment, slot: u64) -> Self {
        let mut one = Self::NONE;
        *one.slot_mut(commitment) = Some(slot);
        one
    }

    /// The slot of a commitment; `None` where there is none.
    #[must_use]
    pub const fn slot(&self, commitment: Commitment) -> Option<u64> {
        match commitment {
            Commitment::Processed => self.processed,
            Commitment::Confirmed => self.confirmed,
            Commitment::Finalized => self.finalized,
        }
    }

    /// Moves the one of a commitment to this slot, unless it is further already.
    pub fn advance(&mut self, commitment: Commitment, slot: u64) {
        let moved = self.slot_mut(commitment);
        *moved = (*moved).max(Some(slot));
    }

    /// Those that there are, the lowest commitment first.
    pub fn iter(&self) -> impl Iterator<Item = (Commitment, u64)> {
        let all = Commitment::ALL.into_iter();
        all.filter_map(|commitment| Some((commitment, self.slot(commitment)?)))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    const fn slot_mut(&mut self, commitment: Commitment) -> &mut Option<u64> {
        match commitment {
            Commitment::Processed => &mut self.processed,
            Commitment::Confirmed => &mut self.confirmed,
            Commitment::Finalized => &mut self.finalized,
        }
    }
}

/// Slots of which messages were emitted at processed, and which are neither confirmed nor retracted, each with its
/// blockhash (base58), once known.
pub type UnconfirmedSlots = BTreeMap<u64, Option<String>>;

/// What a new session of the indexer resumes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeState {
    /// The checkpoint at confirmed; `None` before the first.
    pub confirmed: Option<u64>,
    /// The checkpoint at finalized; `None` before the first.
    pub finalized: Option<u64>,
    /// The slots emitted at processed that are not resolved yet.
    pub unconfirmed: UnconfirmedSlots,
    /// The filter changes after the revision in force, in order.
    pub filter_changes: Vec<FilterChange>,
}

/// Slots whose changes of accounts were not read, for which webhooks are to get a `gap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountGap {
    /// The commitment at which they are missing: confirmed, for processed too, or finalized.
    pub commitment: Commitment,
    /// The first of the slots; the last is how far the indexer has come when it reports them.
    pub first_slot: u64,
}
