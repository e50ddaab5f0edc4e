//! Backfill: slots that an owner asks to be read for one webhook, and what came of it.

use super::{id::WebhookId, timestamp::Timestamp};

/// What is done with the messages that the slots cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackfillKind {
    /// Those that are not stored yet are stored, and delivered.
    Tell,
    /// They are counted, and none is stored.
    DryRun,
}

/// How far a backfill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillState {
    /// Slots are still to be read.
    Pending,
    /// All of them were read, or are lost.
    Done,
    /// It was given up.
    Failed,
}

impl BackfillState {
    /// Every one, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Done, Self::Failed];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Slots that an owner asks for, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// What is done with their messages.
    pub kind: BackfillKind,
    /// The first slot.
    pub first_slot: u64,
    /// The last slot.
    pub last_slot: u64,
    /// When it is asked for.
    pub now: Timestamp,
}

/// A backfill that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// The webhook.
    pub webhook: WebhookId,
    /// What is done with the messages.
    pub kind: BackfillKind,
    /// The first slot.
    pub first_slot: u64,
    /// The last slot.
    pub last_slot: u64,
    /// The first slot that was not read yet.
    pub next_slot: u64,
    /// How far it is.
    pub state: BackfillState,
    /// Why it was given up.
    pub error: Option<String>,
    /// Messages that the slots cause.
    pub matched: u64,
    /// Those of them that were not stored before.
    pub told: u64,
    /// Slots that the node does not have.
    pub lost: u64,
    /// Of a dry run the first bodies, a JSON array.
    pub samples: String,
    /// When it was asked for.
    pub created: Timestamp,
}

/// What came of some of its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillTurn {
    /// The first slot that was not read yet.
    pub next_slot: u64,
    /// How far the backfill is.
    pub state: BackfillState,
    /// Why it was given up.
    pub error: Option<String>,
    /// Messages that the slots cause.
    pub matched: u64,
    /// Those of them that were not stored before.
    pub told: u64,
    /// Slots that the node does not have.
    pub lost: u64,
    /// The samples now; `None` where none was added.
    pub samples: Option<String>,
    /// When it was done.
    pub now: Timestamp,
}
