//! Divergence: what the stream reported does not fit the tree of slots, so the market must start over.

use solana_pubkey::Pubkey;

/// The stream reported something that the tree of slots has no place for. Only new snapshots help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Divergence {
    /// A confirmed slot was abandoned.
    #[error("slot {slot} was confirmed and is now dead")]
    DeadConfirmedSlot {
        /// The slot.
        slot: u64,
    },
    /// A slot was reported with two parents, so two different blocks share its number.
    #[error("slot {slot} was reported to build on slot {before}, and now on slot {now}")]
    TwoParents {
        /// The slot.
        slot: u64,
        /// The parent reported first.
        before: u64,
        /// The parent reported now.
        now: u64,
    },
    /// Complete slots wait for parents that were never reported.
    #[error("slots up to {slot} do not build on anything that was reported")]
    Orphans {
        /// The last of them.
        slot: u64,
    },
    /// A write arrived after its slot was sealed.
    #[error("a write to {pubkey} arrived after its slot {slot} was complete")]
    LateWrite {
        /// The slot.
        slot: u64,
        /// The account.
        pubkey: Pubkey,
    },
}
