//! Messages that are staged: leased as they are inserted, or held back beside such, and written to where they belong later. Nobody can tell them from others.

use std::{sync::Arc, time::Duration};

use sluice_store::{
    Access, Batch, BodyTemplate, Commit, Commitment, DeliveryOrder, DeliveryState, EndpointState,
    LeaseLimits, LeasedDelivery, NewMessage, Outcome, PackedMessages, Store, Timestamp,
    WebhookDefinition, WebhookId,
};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{
    fixture::*,
    lease_on_insert::{commit_leased, commit_leased_as, insert_leased, leases_at},
    on_both,
};

on_both!(
    what_is_staged_is_read_like_the_rest,
    what_is_staged_is_recorded_like_the_rest,
    what_is_staged_counts_against_the_lease_quota,
    what_is_staged_is_known,
    what_comes_after_it_has_the_next_number,
    of_a_webhook_that_is_deleted_meanwhile_nothing_is_left,
    what_a_process_staged_that_died_is_due_when_its_leases_end,
    what_is_packed_before_its_commit_is_stored_as_it_is,
);

/// A connection to a fixture's file.
async fn file_of(fixture: &Fixture) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(fixture.folder().join("sluice.db"));
    let file = SqliteConnection::connect_with(&options);
    file.await.expect("opens")
}

/// How many batches are staged in a fixture's file.
async fn staged(fixture: &Fixture) -> i64 {
    let mut file = file_of(fixture).await;
    let staged = sqlx::query_scalar("SELECT count(*) FROM staged_batches");
    let staged = staged.fetch_one(&mut file).await.expect("counts");
    file.close().await.expect("closes");
    staged
}

/// Stages messages of a webhook, by their numbers.
async fn stage(store: &Store, webhook: &WebhookId, numbers: &[u8]) -> Vec<LeasedDelivery> {
    let messages: Vec<_> = numbers
        .iter()
        .map(|number| message(webhook, *number))
        .collect();
    let (inserted, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!(inserted, u64::try_from(numbers.len()).expect("few"));
    leased
}

/// Has a webhook's endpoint pause; returns until when.
async fn pause(store: &Store, webhook: &WebhookId) -> Timestamp {
    let over = NOW.after(LEASE);
    let state = EndpointState {
        paused_until: Some(over),
        ..EndpointState::default()
    };
    assert!(store.set_endpoint(webhook, &state).await.expect("writes"));
    over
}

async fn sequences_of(store: &Store, webhook: &WebhookId) -> Vec<u64> {
    let deliveries = deliveries(store, webhook).await;
    deliveries.iter().map(|each| each.sequence).collect()
}

async fn what_is_staged_is_read_like_the_rest(fixture: &Fixture) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let id = with_webhook(store, 1).await;
    let first = stage(store, &id, &[1]).await;
    assert_eq!(pending(another).await, 1);
    let found = deliveries(another, &id).await;
    let only = &found[0];
    assert_eq!((only.sequence, only.state), (1, DeliveryState::Pending));
    assert_eq!(only.next_attempt_at, Some(NOW.after(LEASE)));
    assert_eq!((&only.id, only.created), (&first[0].lease.id, NOW));

    let second = stage(store, &id, &[2]).await;
    let read = another
        .message(&Access::All, &id, &second[0].lease.id)
        .await;
    let read = read.expect("reads").expect("is stored");
    assert_eq!(
        (read.body, read.sequence, read.slot),
        (second[0].body.clone(), 2, 7)
    );
    stage(store, &id, &[3]).await;
    let stats = another.queue_stats().await.expect("counts");
    assert_eq!((stats.pending, stats.leased, stats.kept), (3, 3, 3));
    stage(store, &id, &[4]).await;
    let of_slot = another.messages_of_slot(7, Commitment::Confirmed).await;
    assert_eq!(of_slot.expect("reads").len(), 4);
    stage(store, &id, &[5]).await;
    let page = another.messages_after(&Access::All, &id, 4, 10).await;
    let page = page.expect("reads").expect("exists");
    assert_eq!((page.messages.len(), page.last_sequence), (1, 5));
    stage(store, &id, &[6]).await;
    assert_eq!(
        another.next_due().await.expect("looks"),
        Some(NOW.after(LEASE))
    );
}

async fn what_is_staged_is_recorded_like_the_rest(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let leased = stage(store, &id, &[1, 2, 3]).await;
    assert!(record(store, &leased[0], 200, Outcome::Delivered).await);
    let retried = Outcome::Retry {
        at: NOW.after(2 * LEASE),
    };
    assert!(record(store, &leased[1], 500, retried).await);
    store
        .release(&[leased[2].lease.clone()], NOW)
        .await
        .expect("releases");
    let states: Vec<_> = deliveries(store, &id)
        .await
        .iter()
        .map(|each| (each.state, each.next_attempt_at))
        .collect();
    let expected = [
        (DeliveryState::Delivered, None),
        (DeliveryState::Pending, Some(NOW.after(2 * LEASE))),
        (DeliveryState::Pending, Some(NOW)),
    ];
    assert_eq!(states, expected);
}

async fn what_is_staged_counts_against_the_lease_quota(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let limits = LeaseLimits { quota: 3, ..PLENTY };
    let messages: Vec<_> = (1..=4).map(|number| message(&id, number)).collect();
    let (_, first) = insert_leased(store, &messages[..2], NOW, limits).await;
    let (_, second) = insert_leased(store, &messages[2..], NOW, limits).await;
    assert_eq!(
        (sequences(&first), sequences(&second)),
        (vec![1, 2], vec![3])
    );
    let (_, none) = insert_leased(store, &[message(&id, 5)], NOW, limits).await;
    assert!(
        none.is_empty(),
        "all that may be leased is, and the fourth is due"
    );
}

async fn what_is_staged_is_known(fixture: &Fixture) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let id = with_webhook(store, 1).await;
    stage(store, &id, &[1, 2]).await;
    let again = [message(&id, 2), message(&id, 3)];
    let (inserted, leased) = insert_leased(store, &again, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&leased)), (1, vec![3]));
    stage(store, &id, &[4]).await;
    let twice = [message(&id, 5), message(&id, 5)];
    assert_eq!(insert_leased(store, &twice, NOW, PLENTY).await.0, 1);
    // Settled by then.
    assert_eq!(insert_leased(store, &twice, NOW, PLENTY).await.0, 0);
    stage(store, &id, &[6]).await;
    // By one that has staged nothing.
    let again = [message(&id, 6), message(&id, 7)];
    assert_eq!(store_messages(another, &again).await, 1);
    assert_eq!(sequences_of(store, &id).await, [1, 2, 3, 4, 5, 6, 7]);
}

async fn what_comes_after_it_has_the_next_number(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    stage(store, &id, &[1, 2]).await;
    assert_eq!(store_messages(store, &[message(&id, 3)]).await, 1);
    assert_eq!(sequences_of(store, &id).await, [1, 2, 3]);
    let due = lease(store, NOW).await;
    assert_eq!(sequences(&due), [3], "the others are leased");
}

async fn of_a_webhook_that_is_deleted_meanwhile_nothing_is_left(fixture: &Fixture) {
    let store = &fixture.store;
    let (gone, kept) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let messages = [message(&gone, 1), message(&kept, 1)];
    let (_, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    let deleted = store.delete_webhook(&Access::All, &gone).await;
    assert!(deleted.expect("deletes"));
    assert!(!record(store, &leased[0], 200, Outcome::Delivered).await);
    assert!(record(store, &leased[1], 200, Outcome::Delivered).await);
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!(stats.pending, 0);
}

async fn what_a_process_staged_that_died_is_due_when_its_leases_end(fixture: &Fixture) {
    let id = with_webhook(&fixture.store, 1).await;
    let leader = fixture.store.try_acquire_leadership().await;
    let leader = leader.expect("works").expect("nobody leads");
    let bodies = |leased: &[LeasedDelivery]| -> Vec<_> {
        leased.iter().map(|each| each.body.clone()).collect()
    };
    let before = bodies(&stage(leader.store(), &id, &[1, 2]).await);
    drop(leader);

    let next = fixture.another().await;
    let leadership = next.try_acquire_leadership().await;
    let leadership = leadership.expect("works").expect("nobody leads");
    // Found by who only looks for what is due.
    assert_eq!(
        next.next_due().await.expect("looks"),
        Some(NOW.after(LEASE))
    );
    let due = lease(&next, NOW.after(LEASE)).await;
    assert_eq!((sequences(&due), bodies(&due)), (vec![1, 2], before));
    drop(leadership);
}

async fn what_is_packed_before_its_commit_is_stored_as_it_is(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let mut messages: Vec<_> = (1..=4).map(|number| message(&id, number)).collect();
    messages[1].body = BodyTemplate::new("{\"other\":".to_owned(), Arc::from("}"));
    let commit = async |messages: &[_], packed: &[_]| {
        let packed = PackedMessages::pack(packed);
        let commit = Commit {
            packed: packed.as_ref(),
            ..Commit::slot(Commitment::Confirmed, 7, messages, NOW)
        };
        commit_leased_as(store, &commit, PLENTY).await.1
    };
    let (first, rest) = messages.split_at(2);
    let mut leased = commit(first, first).await;
    store.settle().await.expect("settles");
    // What was packed is a part of them.
    leased.extend(commit(rest, &rest[..1]).await);
    store.settle().await.expect("settles");
    for (number, message) in (1..).zip(&messages) {
        let read = store.message(&Access::All, &id, &message.id).await;
        let read = read.expect("reads").expect("is stored");
        let body = message.body.with_sequence(number);
        assert_eq!((read.sequence, read.body), (number, body));
    }
    assert_eq!(sequences(&leased), [1, 2, 3, 4]);
}

#[tokio::test]
async fn rows_that_an_earlier_release_staged_are_settled() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages = [1, 2].map(|number| message(&id, number));
    let bodies = [1, 2].map(|number| messages[0].body.with_sequence(number));
    let mut file = file_of(&fixture).await;
    let webhook: i64 = sqlx::query_scalar("SELECT ordinal FROM webhooks")
        .fetch_one(&mut file)
        .await
        .expect("is stored");
    let row = |(message, sequence): (&NewMessage, usize)| {
        serde_json::json!({
            "webhook": webhook, "sequence": sequence, "id": message.id.as_str(), "kind": "transaction",
            "commitment": "confirmed", "slot": 7, "order_key": null, "shared_body": null, "shared_bytes": 0,
            "due_at": NOW.after(LEASE).unix_millis(), "lease_token": 1, "created_at": NOW.unix_millis(),
            "body_bytes": bodies[sequence - 1].len(),
        })
    };
    let rows: Vec<_> = messages.iter().zip(1..).map(row).collect();
    let pack = |text: String| zstd::encode_all(text.as_bytes(), 1).expect("packs");
    let rows = serde_json::to_string(&rows).expect("serializes");
    sqlx::query("INSERT INTO staged_batches (pending, messages, bodies) VALUES (2, $1, $2)")
        .bind(pack(rows))
        .bind(pack(bodies.concat()))
        .execute(&mut file)
        .await
        .expect("stages");
    file.close().await.expect("closes");
    assert_eq!(sequences_of(store, &id).await, [1, 2]);
    assert_eq!(staged(&fixture).await, 0);
    let due = lease(store, NOW.after(LEASE)).await;
    let read: Vec<_> = due.iter().map(|each| each.body.clone()).collect();
    assert_eq!(read, bodies);
}

#[tokio::test]
async fn what_is_leased_is_staged_until_something_else_is_written() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let (committed, _) = commit_leased(store, &[message(&id, 1)], NOW, PLENTY).await;
    assert!(committed.is_staged);
    stage(store, &id, &[2]).await;
    assert_eq!(staged(&fixture).await, 2);
    store.settle().await.expect("settles");
    assert_eq!(staged(&fixture).await, 0);
    stage(store, &id, &[3]).await;
    with_webhook(store, 2).await;
    assert_eq!(staged(&fixture).await, 0);
    assert_eq!(sequences_of(store, &id).await, [1, 2, 3]);
}

#[tokio::test]
async fn what_an_endpoint_that_pauses_is_owed_is_staged_with_what_others_are() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    let (works, pauses) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    pause(store, &pauses).await;
    let (committed, _) = commit_leased(store, &[message(&pauses, 1)], NOW, PLENTY).await;
    assert!(!committed.is_staged, "nothing waits for it");
    let both = [message(&pauses, 2), message(&works, 1)];
    let (committed, leased) = commit_leased(store, &both, NOW, PLENTY).await;
    assert!(committed.is_staged);
    assert!(committed.unleased.is_empty());
    assert_eq!(leased[0].lease.webhook, works);
    let found = deliveries(&fixture.another().await, &pauses).await;
    let due: Vec<_> = found.iter().map(|each| each.next_attempt_at).collect();
    assert_eq!(due, [Some(NOW), Some(NOW)]);

    // So is what waits for a batch, until then.
    let batched = Batch {
        max_messages: 10,
        max_bytes: 1 << 20,
        max_wait: Duration::from_secs(5),
    };
    let definition = WebhookDefinition {
        batch: Some(batched),
        ..definition()
    };
    let updated = store.update_webhook(&Access::All, &pauses, &definition, None);
    assert!(updated.await.expect("writes").is_some());
    pause(store, &pauses).await;
    let both = [message(&pauses, 5), message(&works, 5)];
    let (committed, leased) = commit_leased(store, &both, NOW, PLENTY).await;
    assert!(committed.is_staged);
    accept(store, &leased).await;
    let newest = &deliveries(store, &pauses).await[2];
    assert_eq!(newest.next_attempt_at, Some(NOW.after(batched.max_wait)));
}

#[tokio::test]
async fn what_was_staged_during_a_pause_goes_first_when_it_is_over() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    let (works, pauses) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let over = pause(store, &pauses).await;
    let both = [message(&pauses, 1), message(&works, 1)];
    let (committed, _) = commit_leased(store, &both, NOW, PLENTY).await;
    assert!(committed.is_staged);
    let (committed, leased) = commit_leased(store, &[message(&pauses, 2)], over, PLENTY).await;
    assert_eq!((committed.is_staged, leased.len()), (false, 0));
    let request = leases_at(over);
    let due = store.lease_due_pending(Some(&committed.unleased), &request);
    let due = due.await.expect("leases").deliveries().await;
    assert_eq!(sequences(&due.expect("loads")), [1, 2]);
}

#[tokio::test]
async fn what_is_in_a_lane_or_not_leased_or_more_than_fits_is_not_staged() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    let (ordered, free) = (
        with_order(store, 1, DeliveryOrder::Strict).await,
        with_webhook(store, 2).await,
    );
    let is_staged = async |messages: &[_], limits| {
        commit_leased(store, messages, NOW, limits)
            .await
            .0
            .is_staged
    };
    assert!(!is_staged(&[message(&ordered, 1)], PLENTY).await);
    let nothing = LeaseLimits { total: 0, ..PLENTY };
    assert!(!is_staged(&[message(&free, 1)], nothing).await);
    store.settle().await.expect("settles");
    let due = lease(store, NOW).await;
    accept(store, &due).await;
    let mut many = Vec::new();
    for number in 3..=9 {
        let webhook = with_webhook(store, number).await;
        many.extend((1..=100).map(|number| message(&webhook, number)));
    }
    let limits = LeaseLimits {
        total: 1_000,
        ..PLENTY
    };
    assert!(!is_staged(&many, limits).await, "700 at once");
}

#[tokio::test]
async fn what_is_staged_is_in_a_backup_for_either_database() {
    let fixture = Fixture::sqlite().await;
    let id = with_webhook(&fixture.store, 1).await;
    let leased = stage(&fixture.store, &id, &[1, 2]).await;
    let folder = tempfile::tempdir().expect("temporary folder");
    let backup = folder.path().join("backup");
    fixture.store.back_up(&backup).await.expect("backs up");
    assert_eq!(staged(&fixture).await, 1, "a backup writes nothing");
    for restored in [Fixture::sqlite().await, Fixture::postgres("staged").await] {
        let store = &restored.store;
        store.restore(&backup).await.expect("restores");
        assert_eq!(sequences_of(store, &id).await, [1, 2]);
        let due = lease(store, NOW.after(LEASE)).await;
        assert_eq!(due.len(), 2);
        assert_eq!(due[1].body, leased[1].body);
    }
}
