//! [`PackedMessages`]: messages as they are staged, serialized and compressed before they have numbers (pure).
//!
//! Nothing of it is known only when the messages are committed, so it can be made before they may be.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{BodyTemplate, MessageId, MessageKind, NewMessage, WebhookId};
use crate::Commitment;

/// How much is compressed: the least, which takes a millisecond for what a slot emits.
const LEVEL: i32 = 1;

/// Messages in the form in which they are staged.
#[derive(Clone, Debug)]
pub struct PackedMessages {
    /// How many.
    pub(crate) count: usize,
    /// What they are but for their bodies: JSON, compressed.
    pub(crate) heads: Vec<u8>,
    /// The beginnings of their bodies one after the other, then the ends; compressed.
    pub(crate) bodies: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
struct Heads<'a> {
    #[serde(borrow)]
    messages: Vec<Head<'a>>,
    /// The lengths of the ends, each of which several messages may have.
    ends: Vec<usize>,
}

#[derive(Deserialize, Serialize)]
struct Head<'a> {
    id: &'a str,
    webhook: &'a str,
    kind: &'a str,
    commitment: &'a str,
    slot: u64,
    order_key: Option<Cow<'a, str>>,
    /// The length of the body's beginning.
    beginning: usize,
    /// Which of the ends the body has.
    end: usize,
}

impl PackedMessages {
    /// Most messages that are staged at a time: those of a busy slot. What is more comes faster than it is sent, and would only be
    /// written twice.
    pub const MOST: usize = 512;

    /// Most bytes of their bodies, for the same reason.
    pub const MOST_BYTES: u64 = 4 * 1024 * 1024;

    /// Packs messages; `None` when memory for it cannot be had.
    #[must_use]
    pub fn pack(messages: &[NewMessage]) -> Option<Self> {
        let mut bodies = String::new();
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut ends = Vec::new();
        let heads = messages.iter().map(|message| {
            bodies.push_str(message.body.prefix());
            let end = message.body.suffix();
            let number = numbers.entry(end.as_ptr().addr()).or_insert_with(|| {
                ends.push(end);
                ends.len().saturating_sub(1)
            });
            Head {
                id: message.id.as_str(),
                webhook: message.webhook.as_str(),
                kind: message.kind.name(),
                commitment: message.commitment.name(),
                slot: message.slot,
                order_key: message.order_key.as_deref().map(Cow::Borrowed),
                beginning: message.body.prefix().len(),
                end: *number,
            }
        });
        let messages: Vec<_> = heads.collect();
        bodies.extend(ends.iter().copied());
        let heads = Heads {
            ends: ends.iter().map(|end| end.len()).collect(),
            messages,
        };
        Some(Self {
            count: heads.messages.len(),
            heads: zstd::encode_all(&*serde_json::to_vec(&heads).ok()?, LEVEL).ok()?,
            bodies: zstd::encode_all(bodies.as_bytes(), LEVEL).ok()?,
        })
    }

    /// The messages; `None` when they are not what was packed.
    pub(crate) fn unpack(&self) -> Option<Vec<NewMessage>> {
        let heads = zstd::decode_all(&*self.heads).ok()?;
        let bodies = String::from_utf8(zstd::decode_all(&*self.bodies).ok()?).ok()?;
        let heads: Heads<'_> = serde_json::from_slice(&heads).ok()?;
        let beginnings = heads.messages.iter().map(|head| head.beginning);
        let (mut beginnings, mut rest) = bodies.split_at_checked(beginnings.sum())?;
        let mut ends: Vec<Arc<str>> = Vec::with_capacity(heads.ends.len());
        for length in heads.ends {
            let (end, later) = rest.split_at_checked(length)?;
            ends.push(end.into());
            rest = later;
        }
        let messages = heads.messages.into_iter().map(|head| {
            let (beginning, later) = beginnings.split_at_checked(head.beginning)?;
            beginnings = later;
            Some(NewMessage {
                id: MessageId::parse(head.id).ok()?,
                webhook: WebhookId::parse(head.webhook).ok()?,
                kind: MessageKind::from_name(head.kind)?,
                commitment: Commitment::from_name(head.commitment)?,
                slot: head.slot,
                order_key: head.order_key.map(Cow::into_owned),
                body: BodyTemplate::new(beginning.to_owned(), Arc::clone(ends.get(head.end)?)),
            })
        });
        messages.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn message(number: u8, order_key: Option<&str>, end: &Arc<str>) -> NewMessage {
        NewMessage {
            id: MessageId::from_bytes([number; 32]),
            webhook: WebhookId::from_random([number; 16]),
            kind: MessageKind::Event(EventKind::Transaction),
            commitment: Commitment::Confirmed,
            slot: u64::MAX - u64::from(number),
            order_key: order_key.map(str::to_owned),
            body: BodyTemplate::new(format!("{{\"nümber\":{number},"), Arc::clone(end)),
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_shares_what_it_shared() {
        let (own, shared): (Arc<str>, Arc<str>) = (",\"é\":1}".into(), "x".repeat(999).into());
        let messages = [
            message(1, None, &shared),
            message(2, Some("a \"key\""), &own),
            message(3, None, &shared),
        ];
        let packed = PackedMessages::pack(&messages).expect("packs");
        assert_eq!(packed.count, 3);
        let unpacked = packed.unpack().expect("unpacks");
        assert_eq!(unpacked, messages);
        let ends: Vec<_> = unpacked
            .iter()
            .map(|each| each.body.suffix().as_ptr())
            .collect();
        assert!(ends[0] == ends[2] && ends[0] != ends[1]);
        let none = PackedMessages::pack(&[]).expect("packs");
        assert_eq!(none.unpack(), Some(Vec::new()));
    }

    #[test]
    fn what_is_damaged_is_none() {
        let packed = PackedMessages::pack(&[message(1, None, &"}".into())]).expect("packs");
        let other = PackedMessages::pack(&[]).expect("packs");
        for damaged in [
            PackedMessages {
                bodies: other.bodies,
                ..packed.clone()
            },
            PackedMessages {
                heads: vec![1],
                ..packed.clone()
            },
        ] {
            assert_eq!(damaged.unpack(), None);
        }
    }
}
