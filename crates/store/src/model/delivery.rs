//! Deliveries: messages owed to webhooks, with their states and attempts.

use super::{attempt::Attempt, id::MessageId, message::MessageKind, timestamp::Timestamp};

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Waits for its next attempt, or for an earlier delivery of its lane.
    Pending,
    /// Accepted by the endpoint.
    Delivered,
    /// Every attempt of the schedule failed.
    Failed,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// One message owed to one webhook, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Identifier of the message.
    pub id: MessageId,
    /// Position among the webhook's messages, from 1.
    pub sequence: u64,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Slot of the event.
    pub slot: u64,
    /// Its state.
    pub state: DeliveryState,
    /// Finished attempts, those before a redelivery included.
    pub attempts: u32,
    /// While pending, when it is due; while it is leased, when the lease ends. `None` when finished, and while
    /// it waits for an earlier delivery of its lane.
    pub next_attempt_at: Option<Timestamp>,
    /// When the message was stored.
    pub created: Timestamp,
}

/// Selects deliveries of a webhook.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryQuery {
    /// Only those with a smaller number: the smallest of the page before.
    pub before: Option<u64>,
    /// Only those in this state.
    pub state: Option<DeliveryState>,
    /// Only the one of this number.
    pub sequence: Option<u64>,
}

/// A delivery with all its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryLog {
    /// The delivery.
    pub delivery: Delivery,
    /// Its finished attempts, in order.
    pub attempts: Vec<Attempt>,
}

/// The effect of skipping a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// It was pending, and is given up.
    Skipped,
    /// It was delivered or given up before.
    Finished,
    /// The webhook has no such message.
    Unknown,
}

/// Selects deliveries of a webhook that are to be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeliver {
    /// One message.
    Message(MessageId),
    /// Those with numbers from the first to the second, both included.
    Range(u64, u64),
    /// All that failed.
    Failed,
}
