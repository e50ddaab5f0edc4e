//! Lost: what a gap has no events of (pure).

use std::collections::HashMap;

use sluice_store::{Commitment, EventKinds, WebhookId};
use solana_pubkey::Pubkey;

use super::{subscriber::Subscriber, subscription_index::Subscriptions};

/// What is missing of the slots of a gap.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    kinds: EventKinds,
    /// The programs, by the webhooks that watch them, whose accounts do not follow as they are after the gap.
    states_omitted: HashMap<WebhookId, Vec<Pubkey>>,
}

impl Lost {
    /// Events of these kinds.
    #[must_use]
    pub fn of(kinds: EventKinds) -> Self {
        Self {
            kinds,
            ..Self::default()
        }
    }

    /// The same, where of these programs no account is sent as it is after the gap to those who watch them at a commitment.
    #[must_use]
    pub fn without_states_of(
        self,
        programs: &[Pubkey],
        subscriptions: &Subscriptions,
        commitment: Commitment,
    ) -> Self {
        let mut states_omitted: HashMap<WebhookId, Vec<Pubkey>> = HashMap::new();
        let mut watchers = Vec::new();
        for program in programs {
            let index = subscriptions.at(commitment);
            index.watchers_of_program(program, &mut watchers);
            for webhook in watchers
                .iter()
                .filter_map(|each| subscriptions.webhook(*each))
            {
                let of_webhook = states_omitted.entry(webhook.id.clone()).or_default();
                of_webhook.push(*program);
            }
        }
        Self {
            states_omitted,
            ..self
        }
    }

    /// The kinds of events that are missing.
    #[must_use]
    pub const fn kinds(&self) -> EventKinds {
        self.kinds
    }

    /// Those of them that a webhook wants; `None` where nothing of what it wants is missing.
    #[must_use]
    pub fn kinds_of(&self, webhook: &Subscriber) -> Option<EventKinds> {
        let kinds = webhook.wanted_of(self.kinds);
        (!kinds.is_empty()).then_some(kinds)
    }

    /// The programs that a webhook watches whose accounts do not follow.
    #[must_use]
    pub fn states_omitted_of(&self, webhook: &Subscriber) -> &[Pubkey] {
        let programs = self.states_omitted.get(&webhook.id);
        programs.map_or(&[], Vec::as_slice)
    }
}
