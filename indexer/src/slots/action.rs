//! Actions: what is to be done after an update of the stream (pure data).

use std::sync::Arc;

use sluice_chain_types::Commitment;

use super::SlotEvents;

/// The block of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its slot.
    pub slot: u64,
    /// Its hash, base58.
    pub hash: String,
    /// Slot of its parent.
    pub parent: u64,
    /// When it was produced, unix seconds.
    pub time: Option<i64>,
}

/// Why a slot's events are retracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetractReason {
    /// The slot was declared dead.
    Dead,
    /// The confirmed chain does not contain it.
    Abandoned,
    /// The slot has a replacement block.
    Replaced,
}

impl RetractReason {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Abandoned => "abandoned",
            Self::Replaced => "replaced",
        }
    }
}

/// What is to be done, in order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Emit the events of a block to the webhooks of a commitment.
    Emit {
        /// The commitment.
        commitment: Commitment,
        /// The block.
        block: Arc<Block>,
        /// Its events, or those that came late.
        events: Arc<SlotEvents>,
    },
    /// Retract what was emitted of a slot.
    Retract {
        /// The slot.
        slot: u64,
        /// Why.
        reason: RetractReason,
        /// The highest commitment at which it was emitted: processed, or confirmed where the server corrects itself.
        emitted: Commitment,
    },
    /// Record that everything up to a slot has been emitted at a commitment.
    Checkpoint {
        /// Confirmed or finalized.
        commitment: Commitment,
        /// The slot.
        slot: u64,
    },
}
