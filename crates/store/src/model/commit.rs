//! [`Commit`]: messages with the checkpoints that they move, one transaction, and its effect.

use std::collections::BTreeMap;

use sluice_chain_types::Commitment;

use super::{
    checkpoint::{Checkpoints, UnconfirmedSlots},
    known_account::KnownAccountChanges,
    message::NewMessage,
    packed_messages::PackedMessages,
    timestamp::Timestamp,
    webhook_set::WebhookSet,
};

const NO_SLOTS: &UnconfirmedSlots = &UnconfirmedSlots::new();

/// One transaction of the indexer: all of it is stored or nothing.
#[derive(Clone, Debug)]
pub struct Commit<'a> {
    /// The messages, in the order in which they are numbered.
    pub messages: &'a [NewMessage],
    /// These messages, packed ahead, so that the commit need not pack them to stage them.
    pub packed: Option<&'a PackedMessages>,
    /// Moves the checkpoints to these slots, each unless it is further already.
    pub checkpoints: Checkpoints,
    /// Slots of which messages are emitted at processed now, or whose blockhash became known.
    pub unconfirmed: &'a UnconfirmedSlots,
    /// Slots whose outcome is final: they are confirmed or retracted.
    pub resolved: &'a [u64],
    /// What has changed of the known accounts.
    pub known_accounts: Option<&'a KnownAccountChanges>,
    /// When the new messages become due.
    pub now: Timestamp,
}

impl<'a> Commit<'a> {
    /// Messages that move no checkpoint.
    #[must_use]
    pub const fn messages(messages: &'a [NewMessage], now: Timestamp) -> Self {
        Self {
            messages,
            packed: None,
            checkpoints: Checkpoints::NONE,
            unconfirmed: NO_SLOTS,
            resolved: &[],
            known_accounts: None,
            now,
        }
    }

    /// A slot that was read at `commitment`.
    #[must_use]
    pub const fn slot(
        commitment: Commitment,
        slot: u64,
        messages: &'a [NewMessage],
        now: Timestamp,
    ) -> Self {
        Self {
            checkpoints: Checkpoints::at(commitment, slot),
            ..Self::messages(messages, now)
        }
    }
}

/// The effect of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Messages that were new, by commitment. Known ones, and those of webhooks deleted meanwhile, are not counted.
    pub inserted_at: BTreeMap<Commitment, u64>,
    /// Those of the checkpoints that the commit named, as they are afterwards.
    pub checkpoints: Checkpoints,
    /// Webhooks of new messages whose deliveries have their turn and were not leased as they were inserted. Where leases were asked
    /// for, without those of which nothing can be leased now: their endpoints pause, or they are full.
    pub unleased: WebhookSet,
    /// Webhooks of such messages of which the process held as much as their endpoints bear when the leases were asked for: the next
    /// result of theirs makes room.
    pub full: WebhookSet,
    /// Whether some are staged: [`Store::settle`](crate::Store::settle) has them written to where they belong.
    pub is_staged: bool,
}

impl Committed {
    /// How many messages were new.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted_at.values().sum()
    }
}
