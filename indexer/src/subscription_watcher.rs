//! Subscription watcher: rebuilds the subscription index when the active webhooks change.

use std::{collections::HashMap, sync::Arc, time::Duration};

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{ActiveChanges, ActiveWebhook, ActiveWebhooks, Store, StoreError, WebhookId};
use tokio::{sync::watch, time::sleep};

use crate::events::subscription_index::Subscriptions;

/// How often the webhooks' revision is read, wall time: one row, from memory. A change is noticed within this time, an eighth of
/// a slot of 400 ms: one that is noticed when the next slot has begun is in force a slot later.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The task that keeps what is matched up to date.
#[derive(Debug)]
pub struct SubscriptionWatcher {
    store: Store,
    active: ActiveWebhooks,
    published: watch::Sender<Arc<Subscriptions>>,
}

impl SubscriptionWatcher {
    /// Reads every active webhook. What the receiver holds changes while [`SubscriptionWatcher::run`] runs.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn start(
        store: Store,
    ) -> Result<(Self, watch::Receiver<Arc<Subscriptions>>), StoreError> {
        let active = store.active_webhooks().await?;
        let (published, subscriptions) = watch::channel(Arc::new(Subscriptions::new(&active)));
        let watcher = Self {
            store,
            active,
            published,
        };
        Ok((watcher, subscriptions))
    }

    /// Publishes the active webhooks whenever they change, until `shutdown`. The API may be another process,
    /// so there is nothing but the database to learn it from.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("reading the webhooks");
        while !shutdown.is_cancelled() {
            match self.refresh().await {
                Ok(()) => outage.recovered(),
                Err(error) => outage.failed(error.outage(), &error),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(POLL_INTERVAL) => {}
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), StoreError> {
        if self.store.webhook_revision().await? == self.active.revision {
            return Ok(());
        }
        let changes = self.store.active_changes(self.active.revision).await?;
        let active = change(std::mem::take(&mut self.active), changes);
        // A second for ten million addresses, which the other tasks need not wait for.
        let indexing = tokio::task::spawn_blocking(move || (Subscriptions::new(&active), active));
        match indexing.await {
            Ok((subscriptions, active)) => {
                self.active = active;
                self.published.send_replace(Arc::new(subscriptions));
                tracing::info!(revision = self.active.revision.0, "the webhooks changed");
            }
            // Only when the process ends. Nothing is known now, so everything is read again.
            Err(error) => tracing::error!(%error, "indexing the webhooks broke off"),
        }
        Ok(())
    }
}

/// The webhooks after some changes, in order of creation.
fn change(before: ActiveWebhooks, changes: ActiveChanges) -> ActiveWebhooks {
    let mut known: HashMap<WebhookId, ActiveWebhook> = before
        .webhooks
        .into_iter()
        .chain(changes.changed)
        .map(|webhook| (webhook.id.clone(), webhook))
        .collect();
    ActiveWebhooks {
        revision: changes.revision,
        webhooks: changes
            .active
            .iter()
            .filter_map(|id| known.remove(id))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::{Commitment, Filters, Revision};
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::events::subscriber::fixtures::active_webhook;

    fn webhook(number: u8, account: u8) -> ActiveWebhook {
        let filters = Filters {
            accounts: vec![Pubkey::new_from_array([account; 32])],
            ..Filters::default()
        };
        active_webhook(number, Commitment::Confirmed, filters)
    }

    #[test]
    fn changes_replace_add_and_remove() {
        let before = ActiveWebhooks {
            revision: Revision(1),
            webhooks: vec![webhook(1, 10), webhook(2, 20), webhook(3, 30)],
        };
        let changes = ActiveChanges {
            revision: Revision(5),
            active: [1, 3, 4].map(|number| webhook(number, 0).id).to_vec(),
            changed: vec![webhook(3, 31), webhook(4, 40)],
        };
        let after = ActiveWebhooks {
            revision: Revision(5),
            webhooks: vec![webhook(1, 10), webhook(3, 31), webhook(4, 40)],
        };
        assert_eq!(change(before, changes), after);
    }
}
