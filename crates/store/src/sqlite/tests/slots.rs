//! What one slot commits: messages, sequences, checkpoint, and the filter in force.

use super::*;

#[tokio::test]
async fn sequences_are_contiguous_per_webhook_and_replay_changes_nothing() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let (first, second) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let slot_7 = [message(&first, 1), message(&second, 1), message(&first, 2)];
    assert_eq!(
        store
            .commit_slot(7, &slot_7, NOW)
            .await
            .expect("commits")
            .inserted,
        3
    );
    let before = claim(store, NOW).await;

    // A replay that overlaps: one known message, one new.
    let slot_8 = [message(&first, 2), message(&first, 3)];
    assert_eq!(
        store
            .commit_slot(8, &slot_8, NOW)
            .await
            .expect("commits")
            .inserted,
        1
    );
    assert_eq!(
        store
            .commit_slot(8, &slot_8, NOW)
            .await
            .expect("commits")
            .inserted,
        0
    );

    let numbers =
        |of: Vec<crate::Delivery>| of.iter().map(|each| each.sequence).collect::<Vec<_>>();
    assert_eq!(
        numbers(store.deliveries_of(&first, 0, 10).await.expect("read")),
        [1, 2, 3]
    );
    assert_eq!(
        numbers(store.deliveries_of(&first, 2, 10).await.expect("read")),
        [3]
    );
    assert_eq!(
        numbers(store.deliveries_of(&second, 0, 10).await.expect("read")),
        [1]
    );
    let bodies: Vec<_> = before
        .iter()
        .filter(|each| each.webhook == first)
        .map(|each| each.body.as_str())
        .collect();
    assert_eq!(
        bodies,
        [
            "{\"sequence\":1,\"data\":{}}",
            "{\"sequence\":2,\"data\":{}}"
        ]
    );
}

#[tokio::test]
async fn messages_of_a_deleted_webhook_are_skipped_and_do_not_block_the_slot() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let (gone, stays) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    store
        .commit_slot(6, &[message(&gone, 9)], NOW)
        .await
        .expect("commits");
    store.delete_webhook(&gone).await.expect("deletes");
    assert_eq!(
        store.pending_deliveries().await.expect("counts"),
        0,
        "what it was owed goes with it"
    );
    let committed = store
        .commit_slot(7, &[message(&gone, 1), message(&stays, 1)], NOW)
        .await
        .expect("commits");
    assert_eq!((committed.inserted, committed.checkpoint), (1, 7));
}

#[tokio::test]
async fn the_checkpoint_never_moves_back() {
    let fixture = fixture().await;
    let store = &fixture.store;
    assert_eq!(store.checkpoint().await.expect("read"), None);
    store.commit_slot(10, &[], NOW).await.expect("commits");
    let late = store
        .commit_slot(9, &[], NOW)
        .await
        .expect("a late slot is stored all the same");
    assert_eq!(late.checkpoint, 10);
    assert_eq!(store.checkpoint().await.expect("read"), Some(10));

    let mut write = store.write(Durability::Durable).await.expect("begins");
    let forced = sqlx::query("UPDATE checkpoint SET slot = 9")
        .execute(&mut *write)
        .await;
    assert!(
        forced
            .expect_err("refused")
            .to_string()
            .contains("never moves back")
    );
}

#[tokio::test]
async fn a_slot_that_cannot_be_stored_leaves_no_trace() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let mut too_large = message(&id, 2);
    too_large.slot = u64::MAX;
    let failed = store
        .commit_slot(7, &[message(&id, 1), too_large], NOW)
        .await;
    assert!(matches!(failed, Err(StoreError::OutOfRange { .. })));
    assert_eq!(store.checkpoint().await.expect("read"), None);
    assert_eq!(store.pending_deliveries().await.expect("counts"), 0);
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("the number 1 is still free");
    assert_eq!(
        store.deliveries_of(&id, 0, 9).await.expect("read")[0].sequence,
        1
    );
}

#[tokio::test]
async fn a_proof_of_the_same_filter_keeps_its_first_slot() {
    let fixture = fixture().await;
    let store = &fixture.store;
    assert_eq!(store.filter_state().await.expect("read"), None);
    let state = |revision, since_slot| FilterState {
        revision: Revision(revision),
        since_slot,
    };
    store
        .record_filter_state(state(1, 10))
        .await
        .expect("records");
    store
        .record_filter_state(state(1, 20))
        .await
        .expect("records");
    assert_eq!(
        store.filter_state().await.expect("read"),
        Some(state(1, 10))
    );
    store
        .record_filter_state(state(2, 30))
        .await
        .expect("records");
    assert_eq!(
        store.filter_state().await.expect("read"),
        Some(state(2, 30))
    );
}
