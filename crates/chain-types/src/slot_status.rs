//! Slot status: how far a validator is with one slot.

/// Stages of a slot. The first three are commitments, the rest are stages of its construction that
/// arrive in no fixed order relative to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotStatus {
    /// The bank is frozen: every account write of the slot has been delivered before.
    Processed,
    /// A supermajority voted for it.
    Confirmed,
    /// It is rooted.
    Finalized,
    /// The first shred arrived.
    FirstShredReceived,
    /// All shreds arrived.
    Completed,
    /// The bank was created.
    CreatedBank,
    /// The slot was abandoned; its writes are void.
    Dead,
}
