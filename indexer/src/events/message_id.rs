//! Message ids: one event has one id after a retry, a replay, a restart, and on another validator (pure).
//!
//! The id of a message is `msg_` and, in hex, its slot (8 bytes, big endian) and the last 24 bytes of a SHA-256. The
//! slot comes first for the sake of databases: what is stored together lies together in an index over ids. What is
//! hashed are the webhook's id, the kind of message, the commitment at which it is emitted, and the rest of its
//! [`MessageIdentity`]:
//!
//! - an event: the slot (u64, little endian), its blockhash, a 1 (u32, little endian) if it was retracted and is
//!   reinstated, and
//!   - accountChange: the account's 32 bytes, and the signature of the transaction that wrote it last in that
//!     slot, if a transaction did. The number of the write is not used: it differs from validator to
//!     validator;
//!   - transaction: the signature's 64 bytes;
//!   - programEvent: the signature, and where in the transaction the event was emitted;
//! - reverted: the id of the message that is retracted;
//! - gap: its first and its last slot; its slot is the last;
//! - accountChange of origin snapshot: the word `state`, the slot of which the account is, the first and the last slot of
//!   the gap, and the account;
//! - resumed: the first and the last slot that were not watched; its slot is the last;
//! - filterRefused: the revision of the webhooks at which the filter was refused; it stands in for the slot;
//! - of another webhook: the word `operation`, a name and a number. For endpoint.disabled and filter.refused they are the other
//!   webhook's id and its version or revision, for endpoint.failing its id and since when it fails, for a gap the id of the
//!   other's message and its slot, for quota the quota with its limit and the day. The number stands in for the slot;
//! - heartbeat: its number since 1970, counted in the webhook's own interval; that stands in for the slot.
//!
//! Each part is preceded by its length (u32, little endian), so that no two lists of parts look alike.

use sha2::{Digest, Sha256};
use sluice_store::{Commitment, EventKind, MessageId, MessageKind, OperationKind, WebhookId};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::program_events::EventPath;
use crate::slots::Gap;

/// A block, as far as identifiers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId<'a> {
    /// Its slot.
    pub slot: u64,
    /// Its hash, base58.
    pub hash: &'a str,
    /// 1 for messages that were retracted although the block was confirmed in the end: what is reinstated needs ids
    /// of its own. Otherwise 0.
    pub incarnation: u32,
}

/// What a message's id is made of, but for the webhook and the commitment.
#[derive(Clone, Copy, Debug)]
pub enum MessageIdentity<'a> {
    /// The last write of an account in a block.
    AccountChange(BlockId<'a>, &'a Pubkey, Option<&'a Signature>),
    /// A transaction.
    Transaction(BlockId<'a>, &'a Signature),
    /// An event of a program.
    ProgramEvent(BlockId<'a>, &'a Signature, EventPath),
    /// A message about this slot is retracted.
    Reverted(u64, &'a MessageId),
    /// Slots cannot be read any more.
    Gap(Gap),
    /// Slots were not watched, because the webhook was switched off.
    Resumed(Gap),
    /// An account as it was in this slot, which is sent after a gap.
    AccountState(u64, Gap, &'a Pubkey),
    /// A heartbeat of this number.
    Heartbeat(u64),
    /// The filter is refused at this revision.
    FilterRefused(u64),
    /// Something became of what has this name; the number tells it from what became of it before.
    Operation(OperationKind, &'a str, u64),
}

impl MessageIdentity<'_> {
    /// The same event in another incarnation of its block's messages; other messages have none.
    #[must_use]
    pub const fn with_incarnation(mut self, incarnation: u32) -> Self {
        if let Self::AccountChange(block, ..)
        | Self::Transaction(block, _)
        | Self::ProgramEvent(block, ..) = &mut self
        {
            block.incarnation = incarnation;
        }
        self
    }

    /// The kind of message.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::AccountChange(..) | Self::AccountState(..) => {
                MessageKind::Event(EventKind::AccountChange)
            }
            Self::Transaction(..) => MessageKind::Event(EventKind::Transaction),
            Self::ProgramEvent(..) => MessageKind::Event(EventKind::ProgramEvent),
            Self::Reverted(..) => MessageKind::Reverted,
            Self::Gap(_) => MessageKind::Gap,
            Self::Resumed(_) => MessageKind::Resumed,
            Self::Heartbeat(_) => MessageKind::Heartbeat,
            Self::FilterRefused(_) => MessageKind::FilterRefused,
            Self::Operation(kind, ..) => kind.message_kind(),
        }
    }

    /// The number that ids begin with.
    const fn slot(&self) -> u64 {
        match self {
            Self::AccountChange(block, ..)
            | Self::Transaction(block, _)
            | Self::ProgramEvent(block, ..) => block.slot,
            Self::Gap(gap) | Self::Resumed(gap) => gap.last,
            Self::Reverted(slot, _)
            | Self::Heartbeat(slot)
            | Self::FilterRefused(slot)
            | Self::Operation(_, _, slot)
            | Self::AccountState(slot, ..) => *slot,
        }
    }
}

/// Hashes parts, each with its length.
struct PartsHasher(Sha256);

impl PartsHasher {
    fn add(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.update(length.to_le_bytes());
        self.0.update(bytes);
    }

    fn block(&mut self, block: BlockId<'_>) {
        self.add(&block.slot.to_le_bytes());
        self.add(block.hash.as_bytes());
        if block.incarnation > 0 {
            self.add(&block.incarnation.to_le_bytes());
        }
    }
}

/// The id of a message to `webhook` at `commitment`.
#[must_use]
pub fn message_id(
    webhook: &WebhookId,
    commitment: Commitment,
    identity: MessageIdentity<'_>,
) -> MessageId {
    let mut hasher = PartsHasher(Sha256::new());
    hasher.add(webhook.as_str().as_bytes());
    hasher.add(identity.kind().name().as_bytes());
    hasher.add(commitment.name().as_bytes());
    match identity {
        MessageIdentity::AccountChange(block, pubkey, writer) => {
            hasher.block(block);
            hasher.add(pubkey.as_ref());
            if let Some(writer) = writer {
                hasher.add(writer.as_ref());
            }
        }
        MessageIdentity::Transaction(block, signature) => {
            hasher.block(block);
            hasher.add(signature.as_ref());
        }
        MessageIdentity::ProgramEvent(block, signature, path) => {
            hasher.block(block);
            hasher.add(signature.as_ref());
            hasher.add(path.to_string().as_bytes());
        }
        MessageIdentity::Reverted(_, first) => hasher.add(first.as_str().as_bytes()),
        MessageIdentity::Gap(gap) | MessageIdentity::Resumed(gap) => {
            hasher.add(&gap.first.to_le_bytes());
            hasher.add(&gap.last.to_le_bytes());
        }
        MessageIdentity::AccountState(slot, gap, pubkey) => {
            hasher.add(b"state");
            hasher.add(&slot.to_le_bytes());
            hasher.add(&gap.first.to_le_bytes());
            hasher.add(&gap.last.to_le_bytes());
            hasher.add(pubkey.as_ref());
        }
        MessageIdentity::Heartbeat(number) | MessageIdentity::FilterRefused(number) => {
            hasher.add(&number.to_le_bytes());
        }
        MessageIdentity::Operation(_, name, number) => {
            hasher.add(b"operation");
            hasher.add(name.as_bytes());
            hasher.add(&number.to_le_bytes());
        }
    }
    let mut id: [u8; 32] = hasher.0.finalize().into();
    let (start, _) = id.split_at_mut(size_of::<u64>());
    start.copy_from_slice(&identity.slot().to_be_bytes());
    MessageId::from_bytes(id)
}

/// The id of the `reverted` message that retracts the message `retracted` about a slot at a commitment.
#[must_use]
pub fn retraction_id(
    webhook: &WebhookId,
    (slot, commitment): (u64, Commitment),
    retracted: &MessageId,
) -> MessageId {
    let identity = MessageIdentity::Reverted(slot, retracted);
    message_id(webhook, commitment, identity)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const BLOCK: BlockId<'static> = BlockId {
        slot: 7,
        hash: "hash",
        incarnation: 0,
    };

    #[test]
    fn an_id_never_changes() {
        let webhook = WebhookId::from_random([1; 16]);
        let key = Pubkey::new_from_array([2; 32]);
        let identity = MessageIdentity::AccountChange(BLOCK, &key, None);
        let id = message_id(&webhook, Commitment::Confirmed, identity);
        // The parts written out and hashed by another program.
        assert_eq!(
            id.as_str(),
            "msg_00000000000000076ac0442fd958c6e5fb4a0861930d068042be78259f763300"
        );
    }

    #[test]
    fn every_part_counts() {
        let (one, two) = (
            WebhookId::from_random([1; 16]),
            WebhookId::from_random([2; 16]),
        );
        let (first, second) = (Signature::from([1; 64]), Signature::from([2; 64]));
        let (key, other_key) = (
            Pubkey::new_from_array([1; 32]),
            Pubkey::new_from_array([2; 32]),
        );
        let later = BlockId { slot: 8, ..BLOCK };
        let fork = BlockId {
            hash: "hasch",
            ..BLOCK
        };
        let reinstated = BlockId {
            incarnation: 1,
            ..BLOCK
        };
        let log = |ordinal| EventPath::Log { ordinal };
        let cpi = |outer, inner| EventPath::Cpi { outer, inner };
        let retracted = message_id(
            &one,
            Commitment::Processed,
            MessageIdentity::Transaction(BLOCK, &first),
        );
        let identities = [
            MessageIdentity::AccountChange(BLOCK, &key, None),
            MessageIdentity::AccountChange(BLOCK, &key, Some(&first)),
            MessageIdentity::AccountChange(BLOCK, &key, Some(&second)),
            MessageIdentity::AccountChange(later, &key, None),
            MessageIdentity::AccountChange(fork, &key, None),
            MessageIdentity::AccountChange(reinstated, &key, None),
            MessageIdentity::AccountChange(BLOCK, &other_key, None),
            MessageIdentity::Transaction(BLOCK, &first),
            MessageIdentity::Transaction(BLOCK, &second),
            MessageIdentity::Transaction(fork, &first),
            MessageIdentity::ProgramEvent(BLOCK, &first, log(1)),
            MessageIdentity::ProgramEvent(BLOCK, &first, log(2)),
            MessageIdentity::ProgramEvent(BLOCK, &first, cpi(1, 2)),
            MessageIdentity::ProgramEvent(BLOCK, &first, cpi(12, 0)),
            MessageIdentity::ProgramEvent(later, &first, log(1)),
            MessageIdentity::Reverted(7, &retracted),
            MessageIdentity::Gap(Gap { first: 7, last: 8 }),
            MessageIdentity::Gap(Gap { first: 7, last: 9 }),
            MessageIdentity::Resumed(Gap { first: 7, last: 8 }),
            MessageIdentity::AccountState(7, Gap { first: 7, last: 9 }, &key),
            MessageIdentity::AccountState(8, Gap { first: 7, last: 9 }, &key),
            MessageIdentity::AccountState(8, Gap { first: 7, last: 8 }, &key),
            MessageIdentity::AccountState(8, Gap { first: 7, last: 8 }, &other_key),
            MessageIdentity::Heartbeat(7),
            MessageIdentity::Heartbeat(8),
            MessageIdentity::FilterRefused(8),
            MessageIdentity::Operation(OperationKind::Gap, "wh_1", 8),
            MessageIdentity::Operation(OperationKind::Gap, "wh_2", 8),
            MessageIdentity::Operation(OperationKind::Quota, "wh_1", 8),
            MessageIdentity::Operation(OperationKind::Quota, "wh_1", 9),
        ];
        let mut ids = HashSet::new();
        for identity in identities {
            for webhook in [&one, &two] {
                for commitment in Commitment::ALL {
                    assert!(
                        ids.insert(message_id(webhook, commitment, identity)),
                        "{identity:?}"
                    );
                }
            }
        }
    }
}
