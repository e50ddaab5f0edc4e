//! Following the set of live webhooks.

use std::{sync::Arc, time::Duration};

use service_kit::CancellationToken;
use sluice_store::{Store, StoreError};
use tokio::{sync::watch, time::sleep};

use super::match_event::Subscriptions;
use crate::incident::Incident;

/// How often the webhooks' revision is read: one row, from memory. A new webhook is noticed within this
/// time, half a slot.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Reads every live webhook.
///
/// # Errors
/// A failure of the database.
pub async fn load(store: &Store) -> Result<Arc<Subscriptions>, StoreError> {
    Ok(Arc::new(Subscriptions::new(store.live_webhooks().await?)))
}

/// Publishes the live webhooks whenever they change, until `shutdown`. The API may be another process,
/// so there is nothing but the database to learn it from.
pub async fn run(
    store: Store,
    published: watch::Sender<Arc<Subscriptions>>,
    shutdown: CancellationToken,
) {
    let mut incident = Incident::new("reading the webhooks");
    while !shutdown.is_cancelled() {
        let known = published.borrow().revision();
        match refresh(&store, known).await {
            Ok(Some(subscriptions)) => {
                tracing::info!(
                    revision = subscriptions.revision().0,
                    "the webhooks changed"
                );
                published.send_replace(subscriptions);
                incident.recovered();
            }
            Ok(None) => incident.recovered(),
            Err(error) => incident.failed("the database does not answer", &error),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

async fn refresh(
    store: &Store,
    known: sluice_store::Revision,
) -> Result<Option<Arc<Subscriptions>>, StoreError> {
    if store.webhook_revision().await? == known {
        return Ok(None);
    }
    load(store).await.map(Some)
}
