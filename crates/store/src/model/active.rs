//! Active webhooks, as far as matching needs them, and what changed among them.

use std::time::Duration;

use sluice_chain_types::Commitment;

use super::{
    conditions::Conditions, event_kind::EventKinds, filter_state::Revision, filters::Filters,
    id::WebhookId, tenant::Tenant,
};

/// An active webhook, as far as matching needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveWebhook {
    /// Identifier.
    pub id: WebhookId,
    /// Its owner.
    pub owner: Tenant,
    /// Kinds subscribed to.
    pub events: EventKinds,
    /// Addresses subscribed to.
    pub filters: Filters,
    /// What else its events must be.
    pub conditions: Conditions,
    /// Commitment at which its events are emitted.
    pub commitment: Commitment,
    /// Interval of heartbeats; `None` for none.
    pub heartbeat: Option<Duration>,
    /// [`Filters::digest`] of its filters.
    pub filter_digest: String,
    /// The first slot whose events it is told: the one after the confirmed checkpoint at which it was created or switched on
    /// last. `None` for every slot.
    pub first_slot: Option<u64>,
}

/// Every active webhook, and the revision at which this is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveWebhooks {
    /// The revision.
    pub revision: Revision,
    /// The webhooks, in order of creation.
    pub webhooks: Vec<ActiveWebhook>,
}

/// Changes among the active webhooks after some revision. The new set is what `active` names of the old
/// one, with the webhooks of `changed` replaced or added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveChanges {
    /// The revision at which this is true.
    pub revision: Revision,
    /// Every active webhook, in order of creation.
    pub active: Vec<WebhookId>,
    /// Those of them that are new or changed.
    pub changed: Vec<ActiveWebhook>,
}
