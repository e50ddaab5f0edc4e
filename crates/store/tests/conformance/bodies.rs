//! Bodies whose end several messages share: stored once, read as before, and gone with the last message.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use sluice_store::{
    Access, BodyTemplate, LeaseLimits, LeasedDelivery, NewMessage, Outcome, Redeliver, Retention,
    Store, WebhookId,
};
use sqlx::{Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{fixture::*, lease_on_insert::insert_leased, on_both};

on_both!(
    an_event_of_a_hundred_webhooks_has_its_body_stored_once,
    a_body_of_one_webhook_or_of_few_bytes_stays_with_its_message,
    limits_and_quotas_count_the_whole_body_of_each_message,
    a_dead_letter_is_delivered_again_with_the_whole_body,
    a_shared_body_goes_with_its_last_message,
    nothing_is_left_of_webhooks_that_are_deleted_at_once,
    messages_that_are_sent_once_more_leave_no_body_of_their_own,
);

/// Webhooks of one event.
const WEBHOOKS: u8 = 100;

async fn webhooks(store: &Store, count: u8) -> Vec<WebhookId> {
    let mut ids = Vec::new();
    for number in 1..=count {
        ids.push(with_webhook(store, number).await);
    }
    ids
}

/// The messages of an event for these webhooks, whose bodies have one end of some 1,000 characters.
fn event(webhooks: &[WebhookId], number: u8) -> Vec<NewMessage> {
    let data = format!("{number}é").repeat(400);
    event_of(
        webhooks,
        number,
        &Arc::from(format!(",\"data\":\"{data}\"}}")),
    )
}

fn event_of(webhooks: &[WebhookId], number: u8, end: &Arc<str>) -> Vec<NewMessage> {
    let of_webhook = |webhook: &WebhookId| {
        let beginning = format!("{{\"webhookId\":\"{}\",\"sequence\":", webhook.as_str());
        let mut message = message(webhook, number);
        message.body = BodyTemplate::new(beginning, Arc::clone(end));
        message
    };
    webhooks.iter().map(of_webhook).collect()
}

/// The bodies of an event that is the webhooks' message of this number.
fn bodies(messages: &[NewMessage], sequence: u64) -> BTreeMap<String, String> {
    let body = |message: &NewMessage| {
        let webhook = message.webhook.as_str().to_owned();
        (webhook, message.body.with_sequence(sequence))
    };
    messages.iter().map(body).collect()
}

fn delivered(leased: &[LeasedDelivery]) -> BTreeMap<String, String> {
    let body = |each: &LeasedDelivery| {
        let webhook = each.lease.webhook.as_str().to_owned();
        (webhook, each.body.clone())
    };
    leased.iter().map(body).collect()
}

fn bytes(bodies: &BTreeMap<String, String>) -> u64 {
    let lengths = bodies.values().map(String::len);
    u64::try_from(lengths.sum::<usize>()).expect("small")
}

/// What a store holds on its disk: ends of bodies, and the bytes of all bodies.
async fn kept(store: &Store) -> (i64, i64) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("backup");
    store.back_up(&path).await.expect("backs up");
    kept_in(&path).await
}

async fn kept_in(backup: &Path) -> (i64, i64) {
    let options = SqliteConnectOptions::new().filename(backup).read_only(true);
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("opens");
    let row = sqlx::query(
        "SELECT (SELECT count(*) FROM bodies),
            (SELECT coalesce(sum(octet_length(body)), 0) FROM messages)
                + (SELECT coalesce(sum(octet_length(rest)), 0) FROM bodies)",
    );
    let row = row.fetch_one(&mut connection).await.expect("reads");
    connection.close().await.expect("closes");
    (row.get(0), row.get(1))
}

async fn pulled(store: &Store, webhook: &WebhookId) -> Vec<String> {
    let page = store.messages_after(&Access::All, webhook, 0, 1000).await;
    let messages = page.expect("reads").expect("exists").messages;
    messages.into_iter().map(|each| each.body).collect()
}

/// Everything that is finished may go.
fn finished() -> Retention {
    Retention {
        now: NOW,
        finished_before: NOW.after(LEASE),
        undelivered_before: None,
        max_bytes: None,
    }
}

async fn an_event_of_a_hundred_webhooks_has_its_body_stored_once(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, WEBHOOKS).await;
    let (first, second) = (event(&ids, 1), event(&ids, 2));
    assert_eq!(store_messages(store, &first).await, u64::from(WEBHOOKS));
    let expected = bodies(&first, 1);
    let all = i64::try_from(bytes(&expected)).expect("small");
    let (ends, on_disk) = kept(store).await;
    assert_eq!(ends, 1);
    assert!(on_disk * 10 < all, "{on_disk} bytes for {all}");

    let leased = lease(store, NOW).await;
    assert_eq!(delivered(&leased), expected);
    accept(store, &leased).await;
    let (_, leased) = insert_leased(store, &second, NOW, PLENTY).await;
    assert_eq!(delivered(&leased), bodies(&second, 2), "leased on insert");
    store.settle().await.expect("settles");
    assert_eq!(kept(store).await.0, 2);
    for (at, id) in ids.iter().enumerate() {
        let wanted = [&first[at], &second[at]];
        let whole =
            [1, 2].map(|number| wanted[usize::from(number == 2)].body.with_sequence(number));
        assert_eq!(pulled(store, id).await, whole);
        let one = store.message(&Access::All, id, &first[at].id).await;
        assert_eq!(one.expect("reads").expect("is kept").body, whole[0]);
    }
}

async fn a_body_of_one_webhook_or_of_few_bytes_stays_with_its_message(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, 3).await;
    let alone = event(&ids[..1], 1);
    let short = event_of(&ids, 2, &Arc::from(",\"data\":{}}"));
    let messages = [alone.clone(), short.clone()].concat();
    store_messages(store, &messages).await;
    assert_eq!(kept(store).await.0, 0);
    let expected = [
        alone[0].body.with_sequence(1),
        short[0].body.with_sequence(2),
    ];
    assert_eq!(pulled(store, &ids[0]).await, expected);
    assert_eq!(
        pulled(store, &ids[2]).await,
        [short[2].body.with_sequence(1)]
    );
}

async fn limits_and_quotas_count_the_whole_body_of_each_message(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, 3).await;
    let (first, second) = (event(&ids, 1), event(&ids, 2));
    store_messages(store, &[first.clone(), second.clone()].concat()).await;
    assert_eq!(kept(store).await.0, 2);
    let all = bytes(&bodies(&first, 1)) + bytes(&bodies(&second, 2));
    assert_eq!(store.queue_stats().await.expect("counts").bytes, all);
    let usage = store.usage(&Access::All, NOW).await.expect("reads");
    assert_eq!(usage.stored_bytes, all);

    let one = u64::try_from(first[0].body.with_sequence(1).len()).expect("small");
    let page = store
        .messages_within(&Access::All, &ids[0], 0, (9, one))
        .await;
    let page = page.expect("reads").expect("exists");
    assert_eq!(page.messages.len(), 1, "the second would be too much");
    let limits = LeaseLimits {
        bytes: one,
        ..PLENTY
    };
    assert_eq!(lease_some(store, NOW, limits).await.len(), 1);
    let too_few = LeaseLimits {
        bytes: one - 1,
        ..PLENTY
    };
    assert!(lease_some(store, NOW, too_few).await.is_empty());
}

async fn a_dead_letter_is_delivered_again_with_the_whole_body(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, 2).await;
    let messages = event(&ids, 1);
    store_messages(store, &messages).await;
    for each in &lease(store, NOW).await {
        assert!(record(store, each, 500, Outcome::Failed).await);
    }
    let again = store.redeliver(&Access::All, &ids[1], &Redeliver::Failed, NOW);
    assert_eq!(again.await.expect("redelivers"), Some(1));
    let leased = lease(store, NOW).await;
    assert_eq!(delivered(&leased), bodies(&messages[1..], 1));
    assert_eq!(kept(store).await.0, 1);
}

async fn a_shared_body_goes_with_its_last_message(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, 3).await;
    let messages = event(&ids, 1);
    store_messages(store, &messages).await;
    let leased = lease(store, NOW).await;
    let (last, others) = leased.split_last().expect("three");
    accept(store, others).await;
    let removed = store.prune(&finished()).await.expect("prunes");
    assert_eq!(removed.finished, 2);
    assert_eq!(kept(store).await.0, 1, "one message has it still");
    let at = ids.iter().position(|id| *id == last.lease.webhook);
    let at = at.expect("one of them");
    let whole = [messages[at].body.with_sequence(1)];
    assert_eq!(pulled(store, &ids[at]).await, whole);

    accept(store, std::slice::from_ref(last)).await;
    let removed = store.prune(&finished()).await.expect("prunes");
    assert_eq!(removed.finished, 1);
    assert_eq!(kept(store).await, (0, 0));
    assert_eq!(store.queue_stats().await.expect("counts").bytes, 0);
}

async fn nothing_is_left_of_webhooks_that_are_deleted_at_once(fixture: &Fixture) {
    let (store, other) = (&fixture.store, fixture.another().await);
    let ids = webhooks(store, 20).await;
    for (number, pair) in (1..).zip(ids.chunks(2)) {
        let events: Vec<_> = (0..20)
            .flat_map(|each| event(pair, number + each * 10))
            .collect();
        store_messages(store, &events).await;
    }
    for pair in ids.chunks(2) {
        let (first, second) = tokio::join!(
            store.delete_webhook(&Access::All, &pair[0]),
            other.delete_webhook(&Access::All, &pair[1]),
        );
        assert!(first.expect("deletes") && second.expect("deletes"));
    }
    let finished = finished();
    let (first, second) = tokio::join!(store.prune(&finished), other.prune(&finished));
    first.expect("prunes");
    second.expect("prunes");
    assert_eq!(kept(store).await, (0, 0));
    other.close().await;
}

async fn messages_that_are_sent_once_more_leave_no_body_of_their_own(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = webhooks(store, 4).await;
    let messages = event(&ids, 1);
    assert_eq!(store_messages(store, &messages[..2]).await, 2);
    assert_eq!(store_messages(store, &messages[..2]).await, 0);
    assert_eq!(kept(store).await.0, 1);
    // A process that died between two pieces of a slot is sent all of it again.
    assert_eq!(store_messages(store, &messages).await, 2);
    assert_eq!(kept(store).await.0, 2);
    assert!(
        store
            .delete_webhook(&Access::All, &ids[0])
            .await
            .expect("deletes")
    );
    store_messages(store, &event(&ids[..2], 2)).await;
    assert_eq!(
        kept(store).await.0,
        2,
        "of two one is gone, so nothing is shared"
    );
    accept(store, &lease(store, NOW).await).await;
    store.prune(&finished()).await.expect("prunes");
    assert_eq!(kept(store).await, (0, 0));
}

async fn survives(from: &Fixture, to: &Fixture) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let backup = folder.path().join("backup");
    let ids = webhooks(&from.store, 3).await;
    let (first, second) = (event(&ids, 1), event(&ids, 2));
    store_messages(&from.store, &first).await;
    from.store.back_up(&backup).await.expect("backs up");
    to.store.restore(&backup).await.expect("restores");
    assert_eq!(kept(&to.store).await, kept_in(&backup).await);

    store_messages(&to.store, &second).await;
    assert_eq!(kept(&to.store).await.0, 2, "numbers go on");
    let leased = lease(&to.store, NOW).await;
    let of = |sequence| {
        let leased = leased.iter().filter(|each| each.lease.sequence == sequence);
        delivered(&leased.cloned().collect::<Vec<_>>())
    };
    assert_eq!(of(1), bodies(&first, 1));
    assert_eq!(of(2), bodies(&second, 2));
    accept(&to.store, &leased).await;
    to.store.prune(&finished()).await.expect("prunes");
    assert_eq!(kept(&to.store).await, (0, 0));
}

#[tokio::test]
async fn shared_bodies_survive_the_way_to_postgresql_and_back() {
    let sqlite = Fixture::sqlite().await;
    let postgres = Fixture::postgres("shared_bodies_to").await;
    survives(&sqlite, &postgres).await;
    let sqlite = Fixture::sqlite().await;
    let postgres = Fixture::postgres("shared_bodies_from").await;
    survives(&postgres, &sqlite).await;
}
