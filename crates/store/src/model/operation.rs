//! Operational messages: what becomes of an owner's webhooks, told to those of them that ask for it.

use super::{endpoint::Breaker, filter_state::Revision, id::WebhookId, timestamp::Timestamp};

/// What an operational message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// The service switched a webhook off.
    EndpointDisabled,
    /// The circuit breaker of an endpoint is open.
    EndpointFailing,
    /// Slots were not read for a webhook.
    Gap,
    /// A quota of the owner is used up.
    Quota,
    /// The stream's server refuses the filter of a webhook.
    FilterRefused,
}

impl OperationKind {
    /// Every one, in the order in which lists show them.
    pub const ALL: [Self; 5] = [
        Self::EndpointDisabled,
        Self::EndpointFailing,
        Self::Gap,
        Self::Quota,
        Self::FilterRefused,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndpointDisabled => "endpoint.disabled",
            Self::EndpointFailing => "endpoint.failing",
            Self::Gap => "gap",
            Self::Quota => "quota",
            Self::FilterRefused => "filter.refused",
        }
    }

    /// The kind of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An active webhook that is told of another one of its owner's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecipient {
    /// Who is told.
    pub webhook: WebhookId,
    /// Of which webhook.
    pub subject: WebhookId,
}

/// A webhook that is not served as its owner means it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledWebhook {
    /// Identifier.
    pub id: WebhookId,
    /// Counts the owner's writes, and the service's switching it off.
    pub version: u64,
    /// Why the service switched it off, when it did.
    pub disabled_reason: Option<String>,
    /// Why the stream's server refuses its filter, when it does.
    pub refused: Option<String>,
    /// The revision at which what is matched last changed.
    pub matched_revision: Revision,
    /// Digest of its filter.
    pub filter_digest: String,
    /// The circuit breaker of its endpoint.
    pub breaker: Breaker,
    /// When the first of the failed attempts in a row ended, where that is known.
    pub failing_since: Option<Timestamp>,
}

/// A quota of which nothing is left, and a webhook of its owner that is told so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedUpQuota {
    /// Who is told.
    pub webhook: WebhookId,
    /// `webhooks`, `addresses`, `storedBytes`, `messagesPerSecond` or `deliverySlots`.
    pub quota: &'static str,
    /// What is used; of delivery slots perhaps fewer than are allowed, where one webhook waits because of what it must leave to the
    /// others.
    pub used: u64,
    /// What is allowed.
    pub limit: u64,
}
