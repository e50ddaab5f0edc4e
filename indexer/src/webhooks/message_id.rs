//! Identifiers that follow from the event.
//!
//! The id of a message is `msg_` and the hex SHA-256 of: the webhook's id, the kind of event, the
//! commitment, the slot (u64, little endian), and what tells the event apart within the slot:
//!
//! - accountChange: the account's 32 bytes. A confirmed stream delivers the last write of an account in
//!   a slot only, and the version number of that write differs from validator to validator.
//! - transaction: the signature's 64 bytes.
//! - programEvent: the signature, and where in the transaction the event was emitted.
//!
//! Each part is preceded by its length (u32, little endian), so that no two lists of parts look alike.
//! Hence the same event has the same id after a retry, a replay, a restart, and on another validator.

use sha2::{Digest, Sha256};
use sluice_store::{EventKind, MessageId, WebhookId};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::{COMMITMENT, program_events::EventPath};

/// What tells an event apart within its slot.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// The last write of an account.
    AccountChange(&'a Pubkey),
    /// A transaction.
    Transaction(&'a Signature),
    /// An event of a program.
    ProgramEvent(&'a Signature, EventPath),
}

/// The id of the message that tells `webhook` about an event.
#[must_use]
pub fn message_id(webhook: &WebhookId, slot: u64, identity: Identity<'_>) -> MessageId {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        hash.update(length.to_le_bytes());
        hash.update(bytes);
    };
    let kind = match identity {
        Identity::AccountChange(_) => EventKind::AccountChange,
        Identity::Transaction(_) => EventKind::Transaction,
        Identity::ProgramEvent(..) => EventKind::ProgramEvent,
    };
    part(webhook.as_str().as_bytes());
    part(kind.name().as_bytes());
    part(COMMITMENT.as_bytes());
    part(&slot.to_le_bytes());
    match identity {
        Identity::AccountChange(pubkey) => part(pubkey.as_ref()),
        Identity::Transaction(signature) => part(signature.as_ref()),
        Identity::ProgramEvent(signature, path) => {
            part(signature.as_ref());
            part(path.to_string().as_bytes());
        }
    }
    MessageId::from_digest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_never_changes() {
        let webhook = WebhookId::from_random([1; 16]);
        let id = message_id(
            &webhook,
            7,
            Identity::AccountChange(&Pubkey::new_from_array([2; 32])),
        );
        assert_eq!(
            id.as_str(),
            "msg_0035b22ed2644f17cc3bb05e65b7975cecd66e97e02cf19c11d672dd787efaec"
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
        let ids = [
            message_id(&one, 7, Identity::AccountChange(&key)),
            message_id(&two, 7, Identity::AccountChange(&key)),
            message_id(&one, 8, Identity::AccountChange(&key)),
            message_id(&one, 7, Identity::AccountChange(&other_key)),
            message_id(&one, 7, Identity::Transaction(&first)),
            message_id(&one, 7, Identity::Transaction(&second)),
            message_id(
                &one,
                7,
                Identity::ProgramEvent(&first, EventPath::Log { ordinal: 1 }),
            ),
            message_id(
                &one,
                7,
                Identity::ProgramEvent(&first, EventPath::Log { ordinal: 2 }),
            ),
            message_id(
                &one,
                7,
                Identity::ProgramEvent(&first, EventPath::Cpi { outer: 1, inner: 2 }),
            ),
            message_id(
                &one,
                7,
                Identity::ProgramEvent(
                    &first,
                    EventPath::Cpi {
                        outer: 12,
                        inner: 0,
                    },
                ),
            ),
        ];
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
