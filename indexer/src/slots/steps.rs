//! What follows from what the stream says (pure data).

use std::sync::Arc;

use sluice_store::Commitment;

use super::content::SlotContent;

/// A frozen block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its slot.
    pub slot: u64,
    /// Its hash, base58.
    pub hash: String,
    /// Slot of the block below.
    pub parent: u64,
    /// When it was produced, unix seconds.
    pub time: Option<i64>,
    /// 1 for what is told again because it was taken back although it happened, otherwise 0.
    pub revival: u32,
}

/// Why a slot's events are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevertReason {
    /// The slot was declared dead.
    Dead,
    /// The confirmed chain does not contain it.
    Abandoned,
    /// The slot has another block.
    Replaced,
}

impl RevertReason {
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
pub enum Step {
    /// Tell those who asked for this commitment what happened.
    Tell {
        /// The commitment.
        commitment: Commitment,
        /// Where.
        block: Arc<Block>,
        /// What.
        content: Arc<SlotContent>,
    },
    /// What was told of this slot at processed did not happen.
    Revert {
        /// The slot.
        slot: u64,
        /// Why.
        reason: RevertReason,
    },
    /// Everything that happened at this commitment up to this slot has been told.
    Settled {
        /// Confirmed or finalized.
        commitment: Commitment,
        /// The slot.
        slot: u64,
    },
}
