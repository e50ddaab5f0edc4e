//! Several processes at once, on connections of their own.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sluice_store::{
    Access, ApiKeyId, Commit, Commitment, DeliveryOrder, LeaseLimits, MessageId, NewMessage,
    Outcome, Store, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    no_two_dispatchers_lease_the_same_delivery,
    two_indexers_store_each_message_once,
    a_lane_never_falls_asleep,
    owners_and_dispatchers_write_the_same_webhooks_at_once,
    a_webhook_is_told_of_slots_from_the_one_that_its_change_asks_for,
    a_process_writes_beside_one_that_never_pauses,
);

/// No message waits longer for the one before it unless its lane has fallen asleep.
const PATIENCE: Duration = Duration::from_secs(60);

async fn no_two_dispatchers_lease_the_same_delivery(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = [with_webhook(store, 1).await, with_webhook(store, 2).await];
    let messages: Vec<_> = ids
        .iter()
        .flat_map(|id| (0..100).map(|number| message(id, number)))
        .collect();
    store_messages(store, &messages).await;
    let mut dispatchers = Vec::new();
    for _ in 0..4 {
        let store = fixture.another().await;
        dispatchers.push(tokio::spawn(async move {
            let mut ids_leased = Vec::new();
            let mut idle = 0;
            while idle < 20 {
                let limits = LeaseLimits {
                    bytes: u64::MAX,
                    oversized: false,
                    total: 7,
                    quota: 5,
                };
                let leased = lease_some(&store, NOW, limits).await;
                idle = if leased.is_empty() { idle + 1 } else { 0 };
                accept(&store, &leased).await;
                ids_leased.extend(leased.into_iter().map(|each| each.lease.id));
            }
            ids_leased
        }));
    }
    let mut ids_leased = Vec::new();
    for dispatcher in dispatchers {
        ids_leased.extend(dispatcher.await.expect("no panic"));
    }
    assert_eq!(ids_leased.len(), 200);
    assert_eq!(ids_leased.iter().collect::<HashSet<_>>().len(), 200);
    assert_eq!(pending(store).await, 0);
}

async fn two_indexers_store_each_message_once(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages: Arc<Vec<_>> = Arc::new((0..200).map(|number| message(&id, number)).collect());
    let mut indexers = Vec::new();
    for _ in 0..2 {
        let (store, messages) = (fixture.another().await, Arc::clone(&messages));
        indexers.push(tokio::spawn(async move {
            let mut inserted = 0;
            for slot in messages.chunks(10) {
                inserted += store_messages(&store, slot).await;
            }
            inserted
        }));
    }
    let mut inserted = 0;
    for indexer in indexers {
        inserted += indexer.await.expect("no panic");
    }
    assert_eq!(inserted, 200);
    let numbers: Vec<_> = deliveries(store, &id)
        .await
        .iter()
        .map(|each| each.sequence)
        .collect();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>(), "no holes");
}

/// Messages arrive in a lane while its last one finishes: the later transaction must see the other.
async fn a_lane_never_falls_asleep(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    let indexer = {
        let (store, id) = (fixture.another().await, id.clone());
        tokio::spawn(async move {
            for number in 0..200 {
                store_messages(&store, &[message(&id, number)]).await;
            }
        })
    };
    let mut order = Vec::new();
    let mut last = Instant::now();
    while order.len() < 200 {
        assert!(
            last.elapsed() < PATIENCE,
            "asleep after {} messages",
            order.len()
        );
        let leased = lease(store, NOW.after(LEASE)).await;
        for each in &leased {
            assert!(record(store, each, 200, Outcome::Delivered).await);
            order.push(each.lease.sequence);
            last = Instant::now();
        }
    }
    indexer.await.expect("no panic");
    assert_eq!(order, (1..=200).collect::<Vec<_>>());
}

/// A webhook is switched off by what its receiver answered, by its key's end and by its owner, who edits and deletes it
/// meanwhile: each has its way, in some order.
async fn owners_and_dispatchers_write_the_same_webhooks_at_once(fixture: &Fixture) {
    const ROUNDS: u8 = 25;
    let dispatcher = fixture.another().await;
    let (owner, other) = (fixture.another().await, fixture.another().await);
    for round in 0..ROUNDS {
        let (key, ids) = owned(&fixture.store, round).await;
        let leased = lease(&dispatcher, NOW).await;
        assert_eq!(leased.len(), ids.len());
        let gone: Vec<_> = leased
            .iter()
            .map(|each| {
                let reason = "answered 410".to_owned();
                let retry_at = NOW.after(LEASE);
                result(each, 410, Outcome::Gone { reason, retry_at })
            })
            .collect();
        let disabling = dispatcher.record(&gone, &unchanged);
        let revoking = fixture.store.revoke_api_key(key.as_str(), NOW);
        let editing = async {
            for id in &ids {
                let mut edited = definition();
                edited.order = DeliveryOrder::Strict;
                edited.filters.accounts.push(address(100));
                let written = owner.update_webhook(&Access::All, id, &edited, None).await;
                written.expect("edits");
            }
        };
        let deleting = other.delete_webhook(&Access::All, &ids[1]);
        let (disabled, revoked, (), deleted) = tokio::join!(disabling, revoking, editing, deleting);
        disabled.expect("records");
        assert!(revoked.expect("revokes").is_some());
        assert!(deleted.expect("deletes"));
    }
    // Not even one that was carried out again: they take their locks in one order.
    for store in [&dispatcher, &owner, &other, &fixture.store] {
        store.close().await;
    }
    assert_eq!(fixture.deadlocks().await, 0);
}

/// A key with four webhooks, each of which is owed a message.
async fn owned(store: &Store, round: u8) -> (ApiKeyId, Vec<WebhookId>) {
    let (key, _) = with_key(store, round, &format!("key {round}")).await;
    let (mut ids, mut messages) = (Vec::new(), Vec::new());
    for number in 4 * round..4 * round + 4 {
        let mut new = webhook(number);
        new.owner = Access::Key(key.clone());
        let id = store.create_webhook(&new, 100).await.expect("created").id;
        messages.push(message(&id, 1));
        ids.push(id);
    }
    store_messages(store, &messages).await;
    (key, ids)
}

/// Although the checkpoint moves on while the webhook is written.
async fn a_webhook_is_told_of_slots_from_the_one_that_its_change_asks_for(fixture: &Fixture) {
    let (store, indexer) = (&fixture.store, fixture.another().await);
    let moves = async |slot| {
        let commit = Commit::slot(Commitment::Confirmed, slot, &[], NOW);
        indexer.commit(&commit).await.expect("moves");
    };
    moves(10).await;
    let created = async {
        for number in 1..=40 {
            with_webhook(store, number).await;
        }
    };
    let moving = async {
        for slot in 11.. {
            moves(slot).await;
        }
    };
    tokio::select! {
        () = created => {}
        () = moving => {}
    }
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!(active.webhooks.len(), 40);
    for webhook in active.webhooks {
        let written = store.webhook(&Access::All, &webhook.id).await;
        let revision = written.expect("reads").expect("exists").matched_revision;
        let change = store.filter_change(revision).await.expect("reads");
        let requested = change.expect("is noted").requested_slot;
        assert_eq!(webhook.first_slot, requested, "{}", webhook.id);
    }
}

async fn a_process_writes_beside_one_that_never_pauses(fixture: &Fixture) {
    const WRITES: u8 = 100;
    let id = with_webhook(&fixture.store, 1).await;
    let slots = Arc::new(AtomicU64::new(0));
    let writers = (0..2).map(|_| {
        let (busy, id, slots) = (fixture.store.clone(), id.clone(), Arc::clone(&slots));
        tokio::spawn(async move {
            loop {
                let slot = slots.fetch_add(1, Ordering::Relaxed);
                let messages: Vec<_> = (0..200).map(|n| of_slot(&id, slot, n)).collect();
                store_messages(&busy, &messages).await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let other = fixture.another().await;
    let before = slots.load(Ordering::Relaxed);
    for number in 0..WRITES {
        with_key(&other, number, &number.to_string()).await;
    }
    let written = slots.load(Ordering::Relaxed) - before;
    for writer in &writers {
        writer.abort();
    }
    // One after each of the others', where they take turns.
    println!("{written} slots beside {WRITES} writes");
    assert!(written <= 2 * u64::from(WRITES), "{written} slots");
}

/// A message like no other of any slot.
fn of_slot(webhook: &WebhookId, slot: u64, number: u8) -> NewMessage {
    let mut digest = [number; 32];
    digest[..8].copy_from_slice(&slot.to_le_bytes());
    NewMessage {
        id: MessageId::from_bytes(digest),
        ..message(webhook, number)
    }
}
