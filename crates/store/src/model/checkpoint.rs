//! Resume state of the indexer: checkpoints, unconfirmed slots and filter changes not in force.

use sluice_chain_types::Commitment;

use super::FilterChange;

/// A slot of which messages were emitted at processed, and which is neither confirmed nor
/// retracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnconfirmedSlot {
    /// The slot.
    pub slot: u64,
    /// Its blockhash (base58), once known.
    pub blockhash: Option<String>,
}

/// What a new session of the indexer resumes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeState {
    /// The checkpoint at confirmed; `None` before the first.
    pub confirmed: Option<u64>,
    /// The checkpoint at finalized; `None` before the first.
    pub finalized: Option<u64>,
    /// The slots emitted at processed that are not resolved yet, in order.
    pub unconfirmed: Vec<UnconfirmedSlot>,
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
