//! A disk that fails to write: nothing is called durable that may not be on it.

use std::{path::Path, sync::Arc};

use sluice_store::{
    Access, BodyTemplate, Checkpoints, Commit, Commitment, EventKind, Filters, MessageId,
    MessageKind, NewMessage, NewWebhook, Secret, Store, StoreError, Timestamp, WebhookDefinition,
    WebhookId,
};
use solana_pubkey::Pubkey;

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

async fn webhook(store: &Store) -> WebhookId {
    let kinds = EventKind::ALL.into_iter().collect();
    let filters = Filters {
        accounts: vec![Pubkey::new_from_array([1; 32])],
        programs: Vec::new(),
        ..Filters::default()
    };
    let new = NewWebhook {
        id: WebhookId::from_random([1; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new("https://example.com/".to_owned(), kinds, filters),
        secret: Secret::from_random([1; 32]),
        created: NOW,
        relay_until: None,
    };
    store.create_webhook(&new, 1).await.expect("created").id
}

async fn commit(store: &Store, webhook: &WebhookId, slot: u64) -> Result<u64, StoreError> {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&slot.to_be_bytes());
    let messages = [NewMessage {
        id: MessageId::from_bytes(id),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot,
        order_key: None,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
    }];
    let commit = Commit::slot(Commitment::Confirmed, slot, &messages, NOW);
    Ok(store.commit(&commit).await?.inserted())
}

/// A database at `path` with a webhook, and a slot of it.
async fn with_a_slot(path: &Path) -> (Store, WebhookId) {
    let store = Store::open(path).await.expect("opens");
    let webhook = webhook(&store).await;
    commit(&store, &webhook, 1).await.expect("commits");
    (store, webhook)
}

/// The checkpoint that is left of the database where the disk has nothing of its log.
async fn without_the_log(database: &Path) -> Option<u64> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("sluice.db");
    std::fs::copy(database, &copy).expect("copies");
    let store = Store::open(&copy).await.expect("opens");
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    store.close().await;
    checkpoint.expect("reads")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_sync_nothing_is_durable_that_the_disk_may_lack() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    let (store, webhook) = with_a_slot(&path).await;

    store.fail_syncs(3);
    for _ in 0..3 {
        let failed = commit(&store, &webhook, 2).await;
        assert!(matches!(failed, Err(StoreError::Database(_))), "{failed:?}");
    }
    // The kernel says nothing of the pages that it dropped when the disk failed, and the message is known.
    let known = commit(&store, &webhook, 2).await.expect("commits");
    assert_eq!(known, 0);
    let left = without_the_log(&path).await;
    assert_eq!(left, Some(2), "the lost pages are of the log alone");
    assert_eq!(commit(&store, &webhook, 3).await.expect("commits"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_fails_when_messages_are_settled_is_not_forgotten() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    let (store, webhook) = with_a_slot(&path).await;
    store.fail_syncs(1);
    store.settle().await.expect("nothing waits for the disk");
    commit(&store, &webhook, 2).await.expect("commits");
    assert_eq!(without_the_log(&path).await, Some(1), "it was folded first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_the_disk_fails_with_what_was_written_before_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Store::open(&folder.path().join("sluice.db")).await;
    let store = store.expect("opens");
    let slot = |slot| Commit::slot(Commitment::Confirmed, slot, &[], NOW);
    store.fail_syncs(1);
    let (first, second) = (slot(1), slot(2));
    let first = store.commit_pending(&first, None).await.expect("commits");
    let second = store.commit_pending(&second, None).await;
    let failed = first.durable().await.expect_err("fails");
    assert!(failed.to_string().contains("a test lets"), "{failed}");
    // Whether it was written before the failure was known, or behind a log that was folded for it.
    if let Ok((committed, _)) = match second {
        Ok(second) => second.durable().await,
        Err(error) => Err(error),
    } {
        assert_eq!(
            committed.checkpoints,
            Checkpoints::at(Commitment::Confirmed, 2)
        );
        let left = without_the_log(&folder.path().join("sluice.db")).await;
        assert_eq!(left, Some(1), "the log was folded before");
    }
    store.commit(&slot(3)).await.expect("goes on");
}
