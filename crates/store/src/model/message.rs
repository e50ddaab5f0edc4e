//! Messages: as they are given to the store, and as they are stored.

use std::sync::Arc;

use sluice_chain_types::Commitment;

use super::{
    event_kind::EventKind,
    id::{MessageId, WebhookId},
    operation::OperationKind,
    timestamp::Timestamp,
};

/// A message body with a blank for the sequence number. The number is known only inside the
/// transaction that inserts the message, so the body is completed there; the suffix is shared, since
/// it is the same for every webhook that an event matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate {
    prefix: String,
    suffix: Arc<str>,
}

/// Digits of the largest sequence number.
const DIGITS: usize = 20;

impl BodyTemplate {
    /// A body of `prefix`, the sequence number in decimal, and `suffix`.
    #[must_use]
    pub fn new(prefix: String, suffix: Arc<str>) -> Self {
        Self { prefix, suffix }
    }

    /// How many bytes the body has at most, whatever its sequence number is.
    #[must_use]
    pub fn len_at_most(&self) -> u64 {
        let length = self.prefix.len() + DIGITS + self.suffix.len();
        u64::try_from(length).unwrap_or(u64::MAX)
    }

    /// The body with its sequence number.
    #[must_use]
    pub fn with_sequence(&self, sequence: u64) -> String {
        let mut body = String::with_capacity(self.prefix.len() + DIGITS + self.suffix.len());
        self.push_beginning(sequence, &mut body);
        body.push_str(&self.suffix);
        body
    }

    /// What is the webhook's own: the body up to its sequence number, and that.
    pub(crate) fn beginning(&self, sequence: u64) -> String {
        let mut beginning = String::with_capacity(self.prefix.len() + DIGITS);
        self.push_beginning(sequence, &mut beginning);
        beginning
    }

    /// How many bytes the beginning has at most, whatever its sequence number is.
    pub(crate) fn beginning_at_most(&self) -> u64 {
        u64::try_from(self.prefix.len() + DIGITS).unwrap_or(u64::MAX)
    }

    /// How many bytes the body has with its sequence number.
    pub(crate) fn len_with(&self, sequence: u64) -> u64 {
        let digits = sequence.checked_ilog10().unwrap_or(0).saturating_add(1);
        let texts = self.prefix.len().saturating_add(self.suffix.len());
        let texts = u64::try_from(texts).unwrap_or(u64::MAX);
        texts.saturating_add(digits.into())
    }

    /// What precedes the sequence number.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What follows the sequence number. Bodies of one event have the very same text.
    pub(crate) fn suffix(&self) -> &str {
        &self.suffix
    }

    fn push_beginning(&self, sequence: u64, body: &mut String) {
        body.push_str(&self.prefix);
        body.push_str(&sequence.to_string());
    }
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// An event of the chain.
    Event(EventKind),
    /// Events emitted at processed are retracted, because their slot is not part of the chain.
    Reverted,
    /// Slots were not read and cannot be replayed.
    Gap,
    /// A heartbeat.
    Heartbeat,
    /// The stream's server refuses the webhook's filter.
    FilterRefused,
    /// The webhook was switched off and watches again.
    Resumed,
    /// Something became of another webhook of the owner's, other than a gap.
    Operation(OperationKind),
}

impl MessageKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event(kind) => kind.name(),
            Self::Reverted => "reverted",
            Self::Gap => "gap",
            Self::Heartbeat => "heartbeat",
            Self::FilterRefused => "filterRefused",
            Self::Resumed => "resumed",
            Self::Operation(kind) => kind.name(),
        }
    }

    /// The kind of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "reverted" => Some(Self::Reverted),
            "gap" => Some(Self::Gap),
            "heartbeat" => Some(Self::Heartbeat),
            "filterRefused" => Some(Self::FilterRefused),
            "resumed" => Some(Self::Resumed),
            other => EventKind::from_name(other)
                .map(Self::Event)
                .or_else(|| OperationKind::from_name(other).map(Self::Operation)),
        }
    }
}

impl OperationKind {
    /// The kind of its messages: a gap is what it is, whoever is told of it.
    #[must_use]
    pub const fn message_kind(self) -> MessageKind {
        match self {
            Self::Gap => MessageKind::Gap,
            other => MessageKind::Operation(other),
        }
    }
}

/// A message to be stored for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Identifier derived from the event: the same event has the same one, for ever.
    pub id: MessageId,
    /// The webhook it is for.
    pub webhook: WebhookId,
    /// Its kind.
    pub kind: MessageKind,
    /// Commitment at which the event was emitted.
    pub commitment: Commitment,
    /// Slot of the event.
    pub slot: u64,
    /// What must stay in order when the webhook asks for order per key: the account, or the signer.
    /// Messages without one are in no lane then.
    pub order_key: Option<String>,
    /// Body, but for the sequence number.
    pub body: BodyTemplate,
}

/// A message as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Identifier.
    pub id: MessageId,
    /// Position among the webhook's messages, from 1.
    pub sequence: u64,
    /// Its kind.
    pub kind: MessageKind,
    /// Commitment at which the event was emitted.
    pub commitment: Commitment,
    /// Slot of the event.
    pub slot: u64,
    /// When it was emitted.
    pub created: Timestamp,
    /// The body that is signed and sent, JSON.
    pub body: String,
}

/// Some messages of a webhook, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<StoredMessage>,
    /// The number of the webhook's newest message, 0 before the first.
    pub last_sequence: u64,
    /// The oldest number that is still kept; smaller ones were removed by retention. `None` when nothing
    /// is kept.
    pub oldest_kept: Option<u64>,
}

/// A message about one slot, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMessage {
    /// Identifier.
    pub id: MessageId,
    /// The webhook it is for.
    pub webhook: WebhookId,
    /// Position among the webhook's messages.
    pub sequence: u64,
    /// Its kind.
    pub kind: MessageKind,
    /// What must stay in order.
    pub order_key: Option<String>,
}
