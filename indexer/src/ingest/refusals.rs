//! Refusals: the webhooks whose filters the server refuses, left out of what is asked for, and informed.

use std::{collections::HashSet, sync::Arc};

use sluice_store::{Commit, Commitment, StoreError, Timestamp, WebhookId};
use solana_pubkey::Pubkey;

use super::{
    filter_probe::{Probed, refusal},
    outbox::Outbox,
    session_end::SessionEnd,
};
use crate::events::{compose, subscriber::Subscriber, subscription_index::Subscriptions};

/// The webhooks that are known to be refused.
#[derive(Debug)]
pub(super) struct Refusals {
    outbox: Outbox,
    refused: Vec<Subscriber>,
    /// Programs whose accounts are shown, and whose transactions are refused.
    without_takings: HashSet<Pubkey>,
    /// A session's own request was refused, so that no webhook is served: the webhooks to blame must be found first.
    suspected: bool,
    /// What an earlier process recorded is not checked yet.
    unchecked: bool,
}

impl Refusals {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self {
            outbox,
            refused: Vec::new(),
            without_takings: HashSet::new(),
            suspected: false,
            unchecked: true,
        }
    }

    /// What is asked for when `all` are to be served: a webhook that is refused is left out until it changes.
    pub(super) fn wanted(&self, all: &Arc<Subscriptions>) -> Arc<Subscriptions> {
        let served = all.without(&self.refused);
        let served = served.map_or_else(|| Arc::clone(all), Arc::new);
        if self.without_takings.is_empty() {
            served
        } else {
            Arc::new(served.without_takings_of(&self.without_takings))
        }
    }

    /// Whether the webhooks to blame must be found before a session is opened.
    pub(super) const fn are_suspected(&self) -> bool {
        self.suspected
    }

    /// Takes note of the end of a session.
    pub(super) fn ended(&mut self, end: &SessionEnd) {
        if let SessionEnd::Stream(error) = end {
            self.suspected = refusal(error).is_some();
        }
    }

    /// Records what a probe has found, and informs the webhooks that are refused. `tried` is what was probed.
    pub(super) async fn record(
        &mut self,
        tried: &Subscriptions,
        probed: &Probed,
    ) -> Result<(), StoreError> {
        self.suspected = false;
        for program in probed.without_takings.difference(&self.without_takings) {
            tracing::warn!(
                %program,
                "the server refuses the transactions of a watched program: an account that it gives away with its lamports is \
                 noticed when it is closed or comes back"
            );
        }
        self.without_takings.extend(&probed.without_takings);
        let store = &self.outbox.store;
        let last_slot = store.checkpoint(Commitment::Confirmed).await?.unwrap_or(0);
        let now = Timestamp::from(self.outbox.clock.now());
        for (id, words) in &probed.refused {
            tracing::error!(webhook = %id, reason = %words, "the server refuses the filter of a webhook");
            let mut webhooks = tried.webhooks().iter();
            let Some(webhook) = webhooks.find(|webhook| webhook.id == *id) else {
                continue;
            };
            self.refused.retain(|refused| refused.id != *id);
            self.refused.push(webhook.clone());
            if store.record_refusal(id, tried.revision(), words).await? {
                let revision = tried.revision();
                let message = compose::filter_refused(webhook, revision, words, last_slot, now);
                let committed = store.commit(&Commit::messages(&[message], now)).await?;
                self.outbox.stored.tell(&committed.unleased);
            }
        }
        Ok(())
    }

    /// Records that all others are served, once a session shows that.
    pub(super) async fn others_are_served(&mut self) -> Result<(), StoreError> {
        if self.unchecked {
            let refused: Vec<WebhookId> = self.refused.iter().map(|each| each.id.clone()).collect();
            self.outbox.store.clear_refusals_but(&refused).await?;
            self.unchecked = false;
        }
        Ok(())
    }
}
