//! [`Numbered`]: a message with its number, and what of it is written and leased (pure).

use super::{
    bodies::StoredBody,
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
    /// When it is due unless it is leased.
    pub(super) due_at: Timestamp,
    pub(super) lane: Option<String>,
    /// Whether an earlier one of its lane is pending.
    pub(super) waits: bool,
    pub(super) stored: StoredBody,
}

impl Numbered<'_> {
    /// The rows of the message and of its delivery.
    pub(super) fn rows(
        self,
        due_at: Option<Timestamp>,
        token: Option<LeaseToken>,
        now: Timestamp,
    ) -> Result<Rows, StoreError> {
        let row = self.row(due_at, token, now)?;
        Ok(row.with_body(self.stored.body))
    }

    /// What is stored of it beside the body.
    pub(super) fn row(
        &self,
        due_at: Option<Timestamp>,
        token: Option<LeaseToken>,
        now: Timestamp,
    ) -> Result<MessageRow, StoreError> {
        let message = self.message;
        Ok(MessageRow {
            webhook: self.ordinal,
            sequence: self.sequence,
            id: message.id.as_str().to_owned(),
            kind: message.kind.name().to_owned(),
            commitment: message.commitment.name().to_owned(),
            slot: signed(message.slot, "slot")?,
            order_key: message.order_key.clone(),
            shared_body: self.stored.shared,
            shared_bytes: self.stored.shared_bytes,
            due_at: due_at.map(Timestamp::unix_millis),
            lease_token: token.map(|token| token.0),
            lane: self.lane.clone(),
            created_at: now.unix_millis(),
            body_bytes: self.stored.body.len(),
        })
    }

    /// The data of its delivery.
    pub(super) fn leased(&self, now: Timestamp) -> DeliveryData {
        self.delivery(self.whole_body(), now)
    }

    fn whole_body(&self) -> String {
        self.message.body.with_sequence(self.number)
    }

    /// The data of its delivery, when what is stored of the body is written.
    pub(super) fn leased_when_staged(mut self, now: Timestamp) -> DeliveryData {
        let body = match self.stored.shared {
            Some(_) => self.whole_body(),
            None => std::mem::take(&mut self.stored.body),
        };
        self.delivery(body, now)
    }

    fn delivery(&self, body: String, now: Timestamp) -> DeliveryData {
        DeliveryData {
            id: self.message.id.clone(),
            sequence: self.number,
            kind: self.message.kind,
            body,
            created: now,
            retry_index: 0,
            probe: false,
            in_order: self.lane.is_some(),
            head: self.number,
            turn: None,
        }
    }
}
