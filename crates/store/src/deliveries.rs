//! Messages on their way out of the store.

use std::time::Duration;

use crate::models::{MessageId, Secret, Timestamp, WebhookId};

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Waits for its next attempt.
    Pending,
    /// Accepted by the receiver.
    Delivered,
    /// Every attempt of the schedule failed.
    Failed,
}

/// A stored message, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Identifier.
    pub id: MessageId,
    /// Position among the webhook's messages, from 1.
    pub sequence: u64,
    /// How far it has come.
    pub state: DeliveryState,
    /// Finished attempts.
    pub attempts: u32,
    /// When it is due, while pending.
    pub next_attempt_at: Timestamp,
}

/// How much one claim may take.
#[derive(Clone, Copy, Debug)]
pub struct ClaimLimits {
    /// Messages in total.
    pub total: u32,
    /// Messages of one webhook that may be under lease at once, those claimed earlier and by other
    /// workers included: a receiver that hangs holds no more than this.
    pub per_webhook: u32,
}

/// A message that the claimer alone may deliver until the lease ends.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    /// Identifier, sent as `webhook-id`.
    pub id: MessageId,
    /// Receiver.
    pub webhook: WebhookId,
    /// Callback URL at the time of the claim.
    pub url: String,
    /// Signing secret.
    pub secret: Secret,
    /// Body to be signed and sent as it is.
    pub body: String,
    /// Attempts finished before this one.
    pub attempts_before: u32,
    /// End of the lease. It also proves ownership: a later claim of the same message has a later one.
    pub lease_until: Timestamp,
}

/// One finished attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub started: Timestamp,
    /// How long it took, from name resolution to the last byte of the answer.
    pub duration: Duration,
    /// Status of the answer, if one came.
    pub status: Option<u16>,
    /// What went wrong, for a person; cut to 500 characters.
    pub error: Option<String>,
}

/// What an attempt means for its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Accepted,
    /// Try again then.
    Retry {
        /// When.
        at: Timestamp,
    },
    /// The schedule is over.
    Exhausted,
    /// The receiver wants nothing any more: the webhook is switched off with this reason and the
    /// message stays owed, in case it is switched on again.
    Gone {
        /// Reason shown to the owner.
        reason: String,
        /// When the message is due once the webhook is on again.
        retry_at: Timestamp,
    },
}
