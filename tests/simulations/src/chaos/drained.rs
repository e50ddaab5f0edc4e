//! Drained: whether no delivery of the slots up to a given one is pending in the database any more.

use sluice_store::{Commitment, Store, StoreError};

/// Whether the newest webhooks' filter is in force. Until it is, a side stream may still be replaying what they are owed, and
/// neither a checkpoint nor a delivery shows that.
///
/// # Errors
/// A failure of the database.
pub async fn all_in_force(store: &Store) -> Result<bool, StoreError> {
    let wanted = store.webhook_revision().await?;
    let in_force = store.filter_state().await?;
    Ok(in_force.is_some_and(|state| state.revision >= wanted))
}

/// Whether everything of the slots up to `end` is stored for every webhook, and delivered.
///
/// # Errors
/// A failure of the database.
pub async fn is_drained(store: &Store, end: u64) -> Result<bool, StoreError> {
    if !all_in_force(store).await? {
        return Ok(false);
    }
    for commitment in [Commitment::Confirmed, Commitment::Finalized] {
        if store.checkpoint(commitment).await? < Some(end) {
            return Ok(false);
        }
    }
    // Last: what is written for slots is pending before they count as stored.
    Ok(store.readiness().await?.pending_deliveries == 0)
}

#[cfg(test)]
mod tests {
    use sluice_store::{
        Access, Commit, FilterState, NewWebhook, Revision, Secret, Timestamp, WebhookDefinition,
        WebhookId,
    };

    use super::{super::subscriber::latecomers, *};

    const END: u64 = 20;
    const NOW: Timestamp = Timestamp::from_unix_millis(0);

    async fn subscribe(store: &Store, number: u8) -> Revision {
        let subscriber = latecomers().remove(0);
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Access::All,
            definition: WebhookDefinition::new(
                "http://127.0.0.1:1/".to_owned(),
                subscriber.kinds.into_iter().collect(),
                subscriber.filters,
            ),
            secret: Secret::from_random([number; 32]),
            created: NOW,
            relay_until: None,
        };
        let webhook = store.create_webhook(&new, 9).await.expect("is written");
        webhook.matched_revision
    }

    async fn pass(store: &Store, commitment: Commitment, slot: u64) {
        let read = Commit::slot(commitment, slot, &[], NOW);
        store.commit(&read).await.expect("is stored");
    }

    async fn put_in_force(store: &Store, revision: Revision) {
        let state = FilterState {
            revision,
            in_force_slot: 5,
        };
        store.record_filter_state(state).await.expect("is recorded");
    }

    #[tokio::test]
    async fn a_webhook_whose_slots_are_still_replayed_is_owed_them_behind_every_checkpoint() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sluice.db");
        let store = Store::open(&path).await.expect("opens");
        let drained = async || is_drained(&store, END).await.expect("reads");

        let first = subscribe(&store, 1).await;
        put_in_force(&store, first).await;
        pass(&store, Commitment::Confirmed, END).await;
        assert!(!drained().await, "not final yet");
        pass(&store, Commitment::Finalized, END).await;
        assert!(drained().await);

        let late = subscribe(&store, 2).await;
        assert!(!drained().await, "its filter is not in force");
        put_in_force(&store, late).await;
        assert!(drained().await);
    }
}
