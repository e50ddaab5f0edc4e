//! Identifiers that follow from the event.
//!
//! The id of a message is `msg_` and, in hex, its slot (8 bytes, big endian) and the last 24 bytes of a SHA-256. The
//! slot comes first for the sake of databases: what is stored together lies together in an index over ids. What is
//! hashed are the webhook's id, the kind of message, the commitment at which it is told, and what tells it apart:
//!
//! - an event: the slot (u64, little endian), its blockhash, a 1 (u32, little endian) if it was taken back
//!   and is told again, and
//!   - accountChange: the account's 32 bytes, and the signature of the transaction that wrote it last in that
//!     slot, if a transaction did. The number of the write is not used: it differs from validator to
//!     validator;
//!   - transaction: the signature's 64 bytes;
//!   - programEvent: the signature, and where in the transaction the event was emitted;
//! - reverted: the id of the message that is taken back;
//! - gap: the first and the last slot that are missing; its slot is the last;
//! - heartbeat: its number since 1970, counted in the webhook's own interval; that stands in for the slot.
//!
//! Each part is preceded by its length (u32, little endian), so that no two lists of parts look alike.
//! Hence the same event has the same id after a retry, a replay, a restart, and on another validator.

use sha2::{Digest, Sha256};
use sluice_store::{Commitment, EventKind, MessageId, MessageKind, WebhookId};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::program_events::EventPath;

/// A block, as far as identifiers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockId<'a> {
    /// Its slot.
    pub slot: u64,
    /// Its hash, base58.
    pub hash: &'a str,
    /// 1 for messages that were taken back although the block was confirmed in the end: telling of it again
    /// needs new names. Otherwise 0.
    pub revival: u32,
}

/// What tells a message apart.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// The last write of an account in a block.
    AccountChange(BlockId<'a>, &'a Pubkey, Option<&'a Signature>),
    /// A transaction.
    Transaction(BlockId<'a>, &'a Signature),
    /// An event of a program.
    ProgramEvent(BlockId<'a>, &'a Signature, EventPath),
    /// A message about this slot is taken back.
    Reverted(u64, &'a MessageId),
    /// Slots are missing.
    Gap(u64, u64),
    /// A sign of life.
    Heartbeat(u64),
}

impl Identity<'_> {
    /// The kind of message.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::AccountChange(..) => MessageKind::Event(EventKind::AccountChange),
            Self::Transaction(..) => MessageKind::Event(EventKind::Transaction),
            Self::ProgramEvent(..) => MessageKind::Event(EventKind::ProgramEvent),
            Self::Reverted(..) => MessageKind::Reverted,
            Self::Gap(..) => MessageKind::Gap,
            Self::Heartbeat(_) => MessageKind::Heartbeat,
        }
    }

    /// What ids begin with.
    const fn slot(&self) -> u64 {
        match self {
            Self::AccountChange(block, ..)
            | Self::Transaction(block, _)
            | Self::ProgramEvent(block, ..) => block.slot,
            Self::Reverted(slot, _) | Self::Gap(_, slot) | Self::Heartbeat(slot) => *slot,
        }
    }
}

struct Parts(Sha256);

impl Parts {
    fn add(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.update(length.to_le_bytes());
        self.0.update(bytes);
    }

    fn block(&mut self, block: BlockId<'_>) {
        self.add(&block.slot.to_le_bytes());
        self.add(block.hash.as_bytes());
        if block.revival > 0 {
            self.add(&block.revival.to_le_bytes());
        }
    }
}

/// The id of the message that tells `webhook` at `commitment`.
#[must_use]
pub fn message_id(
    webhook: &WebhookId,
    commitment: Commitment,
    identity: Identity<'_>,
) -> MessageId {
    let mut parts = Parts(Sha256::new());
    parts.add(webhook.as_str().as_bytes());
    parts.add(identity.kind().name().as_bytes());
    parts.add(commitment.name().as_bytes());
    match identity {
        Identity::AccountChange(block, pubkey, writer) => {
            parts.block(block);
            parts.add(pubkey.as_ref());
            if let Some(writer) = writer {
                parts.add(writer.as_ref());
            }
        }
        Identity::Transaction(block, signature) => {
            parts.block(block);
            parts.add(signature.as_ref());
        }
        Identity::ProgramEvent(block, signature, path) => {
            parts.block(block);
            parts.add(signature.as_ref());
            parts.add(path.to_string().as_bytes());
        }
        Identity::Reverted(_, first) => parts.add(first.as_str().as_bytes()),
        Identity::Gap(first, last) => {
            parts.add(&first.to_le_bytes());
            parts.add(&last.to_le_bytes());
        }
        Identity::Heartbeat(number) => parts.add(&number.to_le_bytes()),
    }
    let mut id: [u8; 32] = parts.0.finalize().into();
    let (start, _) = id.split_at_mut(size_of::<u64>());
    start.copy_from_slice(&identity.slot().to_be_bytes());
    MessageId::from_bytes(id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const BLOCK: BlockId<'static> = BlockId {
        slot: 7,
        hash: "hash",
        revival: 0,
    };

    #[test]
    fn an_id_never_changes() {
        let webhook = WebhookId::from_random([1; 16]);
        let key = Pubkey::new_from_array([2; 32]);
        let identity = Identity::AccountChange(BLOCK, &key, None);
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
        let revived = BlockId {
            revival: 1,
            ..BLOCK
        };
        let log = |ordinal| EventPath::Log { ordinal };
        let cpi = |outer, inner| EventPath::Cpi { outer, inner };
        let taken_back = message_id(
            &one,
            Commitment::Processed,
            Identity::Transaction(BLOCK, &first),
        );
        let identities = [
            Identity::AccountChange(BLOCK, &key, None),
            Identity::AccountChange(BLOCK, &key, Some(&first)),
            Identity::AccountChange(BLOCK, &key, Some(&second)),
            Identity::AccountChange(later, &key, None),
            Identity::AccountChange(fork, &key, None),
            Identity::AccountChange(revived, &key, None),
            Identity::AccountChange(BLOCK, &other_key, None),
            Identity::Transaction(BLOCK, &first),
            Identity::Transaction(BLOCK, &second),
            Identity::Transaction(fork, &first),
            Identity::ProgramEvent(BLOCK, &first, log(1)),
            Identity::ProgramEvent(BLOCK, &first, log(2)),
            Identity::ProgramEvent(BLOCK, &first, cpi(1, 2)),
            Identity::ProgramEvent(BLOCK, &first, cpi(12, 0)),
            Identity::ProgramEvent(later, &first, log(1)),
            Identity::Reverted(7, &taken_back),
            Identity::Gap(7, 8),
            Identity::Gap(7, 9),
            Identity::Heartbeat(7),
            Identity::Heartbeat(8),
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
