//! Endpoints: the state of circuit breaker and concurrency limit, one per webhook.

use super::{id::WebhookId, timestamp::Timestamp};

/// Whether an endpoint is believed to work.
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

/// The circuit breaker and the limits of an endpoint. The store keeps them and honours them when it leases;
/// the recorder of attempts decides how they change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointState {
    /// Circuit breaker. Unless it is closed, one delivery at a time is leased.
    pub breaker: Breaker,
    /// Failed attempts in a row.
    pub failures: u32,
    /// When the first of them ended, where it is known.
    pub failing_since: Option<Timestamp>,
    /// How often in a row the circuit breaker tripped.
    pub trips: u32,
    /// No delivery is leased before.
    pub paused_until: Option<Timestamp>,
    /// Most deliveries that may be in flight at once, if fewer than the lease quota allows.
    pub concurrency_limit: Option<u32>,
}

/// The state of an endpoint before and after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointChange {
    /// Webhook of the endpoint.
    pub webhook: WebhookId,
    /// State before the attempt.
    pub before: EndpointState,
    /// State after it.
    pub after: EndpointState,
}
