//! Webhooks: the definition that an owner writes, and the webhook as it is stored.

use std::{collections::BTreeSet, time::Duration};

use sluice_chain_types::Commitment;

use super::{
    api_keys::{Access, ApiKeyId},
    batch::Batch,
    conditions::Conditions,
    delivery_options::DeliveryOptions,
    event_kind::EventKinds,
    filter_state::Revision,
    filters::Filters,
    id::WebhookId,
    operation::OperationKind,
    secret::Secret,
    timestamp::Timestamp,
};

/// In which order a webhook's messages are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryOrder {
    /// In any order, several at once.
    #[default]
    None,
    /// Those of one [order key](crate::NewMessage::order_key) one after the other.
    PerKey,
    /// All of them one after the other.
    Strict,
}

impl DeliveryOrder {
    /// Every order, in the sequence lists show them.
    pub const ALL: [Self; 3] = [Self::None, Self::PerKey, Self::Strict];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PerKey => "perKey",
            Self::Strict => "strict",
        }
    }

    /// The order of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// The part of a webhook that its owner writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDefinition {
    /// Callback URL.
    pub url: String,
    /// Kinds subscribed to; empty where it is told of operations alone.
    pub events: EventKinds,
    /// Addresses subscribed to; none where there are no kinds.
    pub filters: Filters,
    /// What else its events must be.
    pub conditions: Conditions,
    /// Of what becomes of its owner's other webhooks it is told.
    pub operations: BTreeSet<OperationKind>,
    /// Whether it matches and delivers. Deliveries that are pending when it is switched off are kept, and
    /// made when it is switched on again.
    pub active: bool,
    /// Commitment at which its events are emitted.
    pub commitment: Commitment,
    /// Order of deliveries. A change applies to pending ones, too.
    pub order: DeliveryOrder,
    /// A note of the owner.
    pub description: Option<String>,
    /// Name and value of headers sent with every delivery.
    pub headers: Vec<(String, String)>,
    /// Whether large bodies may be sent compressed.
    pub gzip: bool,
    /// Interval of heartbeats, whole seconds; `None` for none.
    pub heartbeat: Option<Duration>,
    /// How its messages are put together; `None` where each is posted alone.
    pub batch: Option<Batch>,
    /// How fast, how patiently and how often it is delivered to.
    pub delivery: DeliveryOptions,
}

impl WebhookDefinition {
    /// Commitment of a webhook that names none.
    pub const DEFAULT_COMMITMENT: Commitment = Commitment::Confirmed;

    /// An active webhook with the default for everything that is optional.
    #[must_use]
    pub fn new(url: String, events: EventKinds, filters: Filters) -> Self {
        Self {
            url,
            events,
            filters,
            conditions: Conditions::default(),
            operations: BTreeSet::new(),
            active: true,
            commitment: Self::DEFAULT_COMMITMENT,
            order: DeliveryOrder::default(),
            description: None,
            headers: Vec::new(),
            gzip: false,
            heartbeat: None,
            batch: None,
            delivery: DeliveryOptions::default(),
        }
    }

    /// Whether no message can ever come of it: its filters match nothing, unless it has none and is told of operations.
    #[must_use]
    pub fn asks_for_nothing(&self) -> bool {
        if self.watches_nothing() {
            return self.operations.is_empty();
        }
        self.filters.match_nothing(self.events)
    }

    /// Whether it subscribes to no events of the chain.
    #[must_use]
    pub const fn watches_nothing(&self) -> bool {
        self.events.is_empty() && self.filters.count() == 0
    }
}

/// A webhook to be created.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Fresh identifier.
    pub id: WebhookId,
    /// Its owner.
    pub owner: Access,
    /// What its owner asks for.
    pub definition: WebhookDefinition,
    /// Signing secret.
    pub secret: Secret,
    /// Time of creation.
    pub created: Timestamp,
    /// For a temporary webhook, whose messages are not posted but go down its relay stream, leased with
    /// [`Store::lease_relayed`](crate::Store::lease_relayed): when it ends, unless extended.
    pub relay_until: Option<Timestamp>,
}

/// A stored webhook, without its secrets but for the one of which a public key is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Identifier.
    pub id: WebhookId,
    /// The API key it belongs to; `None` for one created while no API keys were in use.
    pub api_key: Option<ApiKeyId>,
    /// What the owner wrote, except that `active` may have been cleared by the service since.
    pub definition: WebhookDefinition,
    /// Counts the owner's writes, from 1.
    pub version: u64,
    /// The webhook revision at which what is matched last changed; see
    /// [`Store::filter_change`](crate::Store::filter_change).
    pub matched_revision: Revision,
    /// [`Filters::digest`] of its filters.
    pub filter_digest: String,
    /// Why the service switched it off, when it did.
    pub disabled_reason: Option<String>,
    /// Why the stream's server refuses its filter, in its own words, when it does: nothing is matched for it then.
    pub refused: Option<String>,
    /// Time of creation.
    pub created: Timestamp,
    /// When its endpoint last accepted a delivery.
    pub last_triggered: Option<Timestamp>,
    /// The current secret, where its deliveries carry asymmetric signatures: their public key follows from it.
    pub asymmetric_secret: Option<Secret>,
    /// Until when a secret before the current one signs as well.
    pub previous_secrets_until: Option<Timestamp>,
    /// When a temporary webhook ends.
    pub relay_until: Option<Timestamp>,
}

/// Some webhooks in order of creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookPage {
    /// The webhooks.
    pub webhooks: Vec<Webhook>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<i64>,
}

/// The effect of a [`FilterEdit`](crate::FilterEdit).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterEdited {
    /// The webhook afterwards.
    pub webhook: Webhook,
    /// What was not there before.
    pub added: Filters,
    /// What is not there any more.
    pub removed: Filters,
}
