//! Attempts: one HTTP exchange each, the outcome for the delivery and the observation of the endpoint.

use std::time::Duration;

use super::{endpoint::EndpointChange, lease::Lease, timestamp::Timestamp};

/// Most bytes kept of the answer to an attempt: enough for a page of error, and no endpoint can fill the
/// disk with it.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// How long the parts of an attempt took: each the time since the attempt began, `None` when it did not
/// come so far or a connection was reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The name was resolved.
    pub resolved: Option<Duration>,
    /// The connection was established.
    pub connected: Option<Duration>,
    /// Its TLS handshake was over.
    pub secured: Option<Duration>,
    /// The first byte of the answer came.
    pub first_byte: Option<Duration>,
}

/// One HTTP exchange with an endpoint, complete or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the attempt, from 1. The store gives it; the value in a result to be recorded is ignored.
    pub number: u32,
    /// URL that was called.
    pub url: String,
    /// When it began.
    pub started: Timestamp,
    /// How long it took, from name resolution to the last byte of the answer.
    pub duration: Duration,
    /// How long its parts took.
    pub timings: Timings,
    /// Status of the answer, if one came.
    pub status: Option<u16>,
    /// Why it was not accepted, in words; `None` when it was. Cut to 500 characters.
    pub error: Option<String>,
    /// Pause that the endpoint asks for with Retry-After. Not stored: `None` in an attempt that is read.
    pub retry_after: Option<Duration>,
    /// Name and value of the headers that were sent, in order.
    pub request_headers: Vec<(String, String)>,
    /// Body of an answer that did not accept, as text, cut to [`MAX_RESPONSE_BYTES`].
    pub response: Option<String>,
    /// Whether the answer was longer than the part of it that is kept.
    pub response_cut: bool,
}

impl Attempt {
    /// Whether the endpoint accepted the message: its answer is complete, and of the 200s.
    #[must_use]
    pub const fn accepted(&self) -> bool {
        self.error.is_none()
    }

    /// When it ended.
    #[must_use]
    pub fn ended(&self) -> Timestamp {
        self.started.after(self.duration)
    }
}

/// The meaning of an attempt for its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The endpoint accepted the message.
    Delivered,
    /// The delivery stays pending.
    Retry {
        /// When it is due again.
        at: Timestamp,
    },
    /// The delivery stays pending, at the same place of its schedule: it was tried ahead of its time.
    Early {
        /// When its own retry is due.
        at: Timestamp,
    },
    /// The retry schedule is over.
    Failed,
    /// The endpoint wants no more messages: the webhook is switched off with this reason, and the delivery
    /// stays pending, in case the webhook is switched on again.
    Gone {
        /// Reason shown to the owner.
        reason: String,
        /// When the delivery is due once the webhook is on again.
        retry_at: Timestamp,
    },
}

/// The meaning of an attempt for its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It accepted the message.
    Accepted,
    /// It has too much, and asks for this pause.
    Overloaded(Option<Duration>),
    /// It failed.
    Failed,
}

impl Observation {
    /// The observation that `attempt` makes.
    #[must_use]
    pub const fn of(attempt: &Attempt) -> Self {
        match (attempt.status, attempt.retry_after) {
            _ if attempt.accepted() => Self::Accepted,
            (Some(429 | 502 | 504), asked) => Self::Overloaded(asked),
            (_, asked @ Some(_)) => Self::Overloaded(asked),
            _ => Self::Failed,
        }
    }
}

/// An attempt under a lease, and its meaning for the delivery and for the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    /// The lease under which it was made.
    pub lease: Lease,
    /// The exchange.
    pub attempt: Attempt,
    /// Its meaning for the delivery.
    pub outcome: Outcome,
    /// Its meaning for the endpoint; `None` when another message of its batch says it.
    pub observation: Option<Observation>,
    /// A uniformly drawn number that spreads the pauses of endpoints.
    pub jitter: u32,
}

impl AttemptResult {
    /// The result of `attempt`, with the observation that it makes.
    #[must_use]
    pub const fn new(lease: Lease, attempt: Attempt, outcome: Outcome, jitter: u32) -> Self {
        let observation = Some(Observation::of(&attempt));
        Self {
            lease,
            attempt,
            outcome,
            observation,
            jitter,
        }
    }
}

/// The effect of recording results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Which results counted, in the order given. One does not when its lease was lost to another one.
    pub counted: Vec<bool>,
    /// For each result that counted, in order, its endpoint before and after it.
    pub endpoints: Vec<EndpointChange>,
    /// Endpoints that accept again, of which more waits for a retry than was made due with the results:
    /// [`Store::pull_forward`](crate::Store::pull_forward) goes on.
    pub recovering: Vec<Recovering>,
}

/// Deliveries of one webhook that one transaction makes due when its endpoint accepts again: few enough that others who write wait
/// no longer for it than for one that stores a full slot.
pub const MOST_PULLED: u32 = 10_000;

/// An endpoint that accepts again, and how far what waits for it was made due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovering {
    pub(crate) webhook: i64,
    /// When it accepted.
    pub(crate) now: Timestamp,
    /// What would have been due then or later is due now, by time and sequence.
    pub(crate) before: (Timestamp, i64),
}
