//! Messages on their way out of the store.

use std::time::Duration;

use super::{
    id::{MessageId, WebhookId},
    message::MessageKind,
    secret::Secrets,
    timestamp::Timestamp,
};

/// Most bytes kept of the answer to an attempt: enough for a page of error, and no receiver can fill the
/// disk with it.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Waits for its next attempt, or for an earlier message that must arrive first.
    Pending,
    /// Accepted by the receiver.
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

/// The state of a stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Identifier.
    pub id: MessageId,
    /// Position among the webhook's messages, from 1.
    pub sequence: u64,
    /// What it is about.
    pub kind: MessageKind,
    /// Slot of the event.
    pub slot: u64,
    /// How far it has come.
    pub state: DeliveryState,
    /// Finished attempts, those before a redelivery included.
    pub attempts: u32,
    /// While pending, when it is due; for one that is being delivered, when that would be noticed to have
    /// failed. `None` when finished, and while it waits for an earlier message.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was stored.
    pub created: Timestamp,
}

/// Which messages of a webhook are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryQuery {
    /// Only those with a smaller number: the smallest of the page before.
    pub before: Option<u64>,
    /// Only those in this state.
    pub state: Option<DeliveryState>,
    /// Only the message of this number.
    pub sequence: Option<u64>,
}

/// A message with all its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryLog {
    /// The message.
    pub delivery: Delivery,
    /// Its finished attempts, in order.
    pub attempts: Vec<Attempt>,
}

/// Which messages of a webhook are to be delivered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeliver {
    /// One message.
    Message(MessageId),
    /// Those with numbers from the first to the second, both included.
    Range(u64, u64),
    /// All that were given up.
    Failed,
}

/// Proves who claimed a message. A random number, so that no two claims share one, whoever made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease(pub(crate) i64);

impl Lease {
    /// A lease from a random number, to be used for one claim only.
    #[must_use]
    pub const fn from_random(random: u64) -> Self {
        Self(random.cast_signed())
    }
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

/// A request for due messages.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The time.
    pub now: Timestamp,
    /// End of the lease. It must lie beyond the deadline of a delivery.
    pub until: Timestamp,
    /// Proves the claim.
    pub lease: Lease,
    /// How much it may take.
    pub limits: ClaimLimits,
}

/// A message that the claimer alone may deliver until the lease ends.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    /// What recording its result takes.
    pub ticket: Ticket,
    /// What it is about.
    pub kind: MessageKind,
    /// Signing secrets that are valid now.
    pub secrets: Secrets,
    /// The webhook's own headers.
    pub headers: Vec<(String, String)>,
    /// Whether a large body may be sent compressed.
    pub gzip: bool,
    /// Body to be signed and sent as it is.
    pub body: String,
    /// When it was stored.
    pub created: Timestamp,
    /// Attempts of this run of the schedule that are finished.
    pub attempts_before: u32,
    /// Whether it is the one message by which a receiver that was given up for a while is tried.
    pub probe: bool,
}

/// A claimed message, as far as its result is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Identifier, sent as `webhook-id`.
    pub id: MessageId,
    /// Receiver.
    pub webhook: WebhookId,
    /// Position among the webhook's messages.
    pub sequence: u64,
    /// Callback URL at the time of the claim.
    pub url: String,
    /// Whether later messages wait until its result is recorded.
    pub in_order: bool,
    pub(crate) ordinal: i64,
    pub(crate) lease: Lease,
}

/// How long the parts of an attempt took: each the time since the attempt began, `None` when it did not
/// come so far or a connection was reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The name was resolved.
    pub resolved: Option<Duration>,
    /// The connection stood.
    pub connected: Option<Duration>,
    /// It was encrypted.
    pub secured: Option<Duration>,
    /// The first byte of the answer came.
    pub first_byte: Option<Duration>,
}

/// One finished attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the attempt, from 1. The store gives it; what a recorder writes here is not looked at.
    pub number: u32,
    /// Where it went.
    pub url: String,
    /// When it began.
    pub started: Timestamp,
    /// How long it took, from name resolution to the last byte of the answer.
    pub duration: Duration,
    /// How long its parts took.
    pub timings: Timings,
    /// Status of the answer, if one came.
    pub status: Option<u16>,
    /// What went wrong, for a person; cut to 500 characters.
    pub error: Option<String>,
    /// Name and value of the headers that were sent, in order.
    pub request_headers: Vec<(String, String)>,
    /// Body of the answer as text, cut to [`MAX_RESPONSE_BYTES`].
    pub response: Option<String>,
    /// Whether the answer was longer than what is kept of it.
    pub response_cut: bool,
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

/// An attempt and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The message.
    pub ticket: Ticket,
    /// What happened.
    pub attempt: Attempt,
    /// What it means.
    pub outcome: Outcome,
}

/// Whether a receiver is believed to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Breaker {
    /// It is.
    #[default]
    Closed,
    /// It failed too often: nothing is sent before the pause is over, and one message then.
    Open,
    /// That one message was accepted: one more at a time until it is believed again.
    HalfOpen,
}

impl Breaker {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "halfOpen",
        }
    }
}

/// How a webhook's receiver does. The store keeps it and honours it when messages are claimed; whoever
/// records attempts decides how it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointState {
    /// Whether it is believed to work. Unless closed, one message at a time is claimed.
    pub breaker: Breaker,
    /// Failed attempts in a row.
    pub failures: u32,
    /// How often in a row the breaker opened.
    pub trips: u32,
    /// Nothing is claimed before.
    pub paused_until: Option<Timestamp>,
    /// Messages that may be under way at once, if fewer than the claimer would allow.
    pub concurrency_limit: Option<u32>,
}

/// The queue, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Messages not finished, those of switched-off webhooks included.
    pub pending: u64,
    /// Messages that are being delivered.
    pub leased: u64,
    /// When the oldest unfinished message of an active webhook was stored.
    pub oldest_pending: Option<Timestamp>,
    /// Messages given up and still kept.
    pub failed: u64,
    /// Messages kept, finished or not.
    pub kept: u64,
    /// Bytes of bodies and of what attempts brought back.
    pub bytes: u64,
    /// Webhooks whose breaker is not closed.
    pub breakers_open: u64,
}

/// What may be forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// The time.
    pub now: Timestamp,
    /// Messages finished before are removed. It must lie further back than any replay of the stream
    /// reaches, since a removed message is no longer known.
    pub finished_before: Timestamp,
    /// Messages stored before and still not delivered are removed: a receiver that is never coming back.
    /// `None` keeps them for ever.
    pub undelivered_before: Option<Timestamp>,
    /// When more bytes are kept, finished messages are removed, the oldest first, however young. What is
    /// not delivered never is removed for its size.
    pub max_bytes: Option<u64>,
}

/// What was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Finished messages that were old enough.
    pub finished: u64,
    /// Finished messages that were young, for want of room.
    pub for_room: u64,
    /// Messages nobody accepted in time, and whose they were.
    pub undelivered: Vec<(WebhookId, u64)>,
    /// Whether more is kept than allowed, because it is not delivered yet.
    pub too_large: bool,
}
