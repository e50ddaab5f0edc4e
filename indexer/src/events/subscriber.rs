//! Subscriber: an active webhook as events are matched with it and composed for it (pure).

use std::{sync::Arc, time::Duration};

use sluice_store::{ActiveWebhook, Commitment, Conditions, EventKinds, Tenant, WebhookId};

/// An active webhook, without its endpoint and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Identifier.
    pub id: WebhookId,
    /// Its owner.
    pub owner: Tenant,
    /// The commitment at which events are emitted to it.
    pub commitment: Commitment,
    /// Interval between heartbeats; `None` for none.
    pub heartbeat: Option<Duration>,
    /// Digest of what it watches.
    pub filter_digest: String,
    /// How many accounts it watches.
    pub accounts: usize,
    /// How many programs it watches.
    pub programs: usize,
    /// How many owners of token accounts it watches.
    pub token_owners: usize,
    events: EventKinds,
    /// What an event must be; `None` where touching an address is enough.
    conditions: Option<Arc<Conditions>>,
    /// The first slot whose events it is told; `None` for every slot.
    first_slot: Option<u64>,
}

impl Subscriber {
    /// Whether there is an event that it may match.
    pub(super) const fn watches_something(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the same events match both.
    pub(super) fn matches_like(&self, other: &Self) -> bool {
        (self.commitment, self.events, &self.filter_digest)
            == (other.commitment, other.events, &other.filter_digest)
            && self.conditions == other.conditions
    }

    /// Whether an event of an address that both watch is sent to both, and at the same commitment.
    pub(super) fn judges_like(&self, other: &Self) -> bool {
        (self.commitment, self.first_slot) == (other.commitment, other.first_slot)
            && self.conditions == other.conditions
    }

    /// Whether it is told of the events of a slot. It is not of those from before it was created or switched on, which are read
    /// again for the finality of others: they would be numbered after what it was told already.
    pub(super) fn is_told_of(&self, slot: u64) -> bool {
        self.first_slot.is_none_or(|first| slot >= first)
    }

    /// The same, told of every slot.
    pub(super) fn for_every_slot(self) -> Self {
        let first_slot = None;
        Self { first_slot, ..self }
    }

    /// Whether an event is what it asks for, where `met` judges its conditions.
    pub(super) fn wants(&self, met: impl FnOnce(&Conditions) -> bool) -> bool {
        self.conditions.as_deref().is_none_or(met)
    }

    /// Those of these kinds of events that it wants.
    pub(crate) fn wanted_of(&self, kinds: EventKinds) -> EventKinds {
        kinds
            .iter()
            .filter(|kind| self.events.contains(*kind))
            .collect()
    }
}

impl From<&ActiveWebhook> for Subscriber {
    fn from(webhook: &ActiveWebhook) -> Self {
        Self {
            id: webhook.id.clone(),
            owner: webhook.owner,
            commitment: webhook.commitment,
            heartbeat: webhook.heartbeat,
            filter_digest: webhook.filter_digest.clone(),
            accounts: webhook.filters.accounts.len(),
            programs: webhook.filters.programs.len(),
            token_owners: webhook.filters.token_owners.len(),
            events: webhook.events,
            conditions: (!webhook.conditions.is_empty())
                .then(|| Arc::new(webhook.conditions.clone())),
            first_slot: webhook.first_slot,
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Webhooks as the store gives them.

    use sluice_store::{EventKind, Filters};

    use super::*;

    /// An active webhook that wants every kind of event, without conditions, in every slot.
    pub(crate) fn active_webhook(
        number: u8,
        commitment: Commitment,
        filters: Filters,
    ) -> ActiveWebhook {
        ActiveWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Tenant::default(),
            events: EventKind::ALL.into_iter().collect(),
            filter_digest: filters.digest(),
            filters,
            conditions: Conditions::default(),
            commitment,
            heartbeat: None,
            first_slot: None,
        }
    }
}
