//! [`Numbered`]: a message with its number, and what of it is written and leased (pure).

use super::{
    bodies::SharedBodies,
    endpoint_data::DeliveryData,
    message_rows::{MessageRow, Rows},
};
use crate::{LeaseToken, NewMessage, StoreError, Timestamp, backend::signed};

/// A message with its number.
pub(super) struct Numbered<'m> {
    pub(super) message: &'m NewMessage,
    pub(super) ordinal: i64,
    pub(super) number: u64,
    pub(super) sequence: i64,
    pub(super) slot: i64,
    /// Bytes of its body.
    pub(super) length: u64,
    pub(super) lane: Option<String>,
    pub(super) turn: Turn,
}

/// When a delivery has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// An earlier one of its lane is pending.
    Waits,
    /// It is due then.
    Due(Timestamp),
    /// It is leased, until then.
    Leased(Timestamp, LeaseToken),
}

impl Turn {
    /// Until when it is leased, and what proves it.
    pub(super) const fn lease(self) -> Option<(Timestamp, LeaseToken)> {
        match self {
            Self::Leased(until, token) => Some((until, token)),
            Self::Waits | Self::Due(_) => None,
        }
    }
}

impl<'m> Numbered<'m> {
    /// A message of the webhook with this ordinal, and its number.
    pub(super) fn new(
        message: &'m NewMessage,
        (ordinal, number): (i64, u64),
        lane: Option<String>,
        turn: Turn,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            message,
            ordinal,
            number,
            sequence: signed(number, "sequence")?,
            slot: signed(message.slot, "slot")?,
            length: message.body.len_with(number),
            lane,
            turn,
        })
    }

    /// The rows of the message and of its delivery.
    pub(super) fn rows(&self, shared: &SharedBodies, now: Timestamp) -> Rows {
        let message = self.message;
        let (due_at, lease_token) = match self.turn {
            Turn::Waits => (None, None),
            Turn::Due(at) => (Some(at), None),
            Turn::Leased(until, token) => (Some(until), Some(token.0)),
        };
        let stored = shared.stored(&message.body, self.number);
        let row = MessageRow {
            webhook: self.ordinal,
            sequence: self.sequence,
            id: message.id.as_str().to_owned(),
            kind: message.kind.name().to_owned(),
            commitment: message.commitment.name().to_owned(),
            slot: self.slot,
            order_key: message.order_key.clone(),
            shared_body: stored.shared,
            shared_bytes: stored.shared_bytes,
            due_at: due_at.map(Timestamp::unix_millis),
            lease_token,
            lane: self.lane.clone(),
            created_at: now.unix_millis(),
        };
        row.with_body(stored.body)
    }

    /// The data of its delivery.
    pub(super) fn delivery(&self, now: Timestamp) -> DeliveryData {
        DeliveryData {
            id: self.message.id.clone(),
            sequence: self.number,
            kind: self.message.kind,
            body: self.message.body.with_sequence(self.number),
            created: now,
            retry_index: 0,
            probe: false,
            ahead_of: None,
            in_order: self.lane.is_some(),
            head: self.number,
            turn: None,
        }
    }
}
