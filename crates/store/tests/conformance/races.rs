//! Several processes at once, on connections of their own.

use std::{collections::HashSet, sync::Arc, time::Duration};

use sluice_store::{DeliveryOrder, LeaseLimits, Outcome};

use crate::{fixture::*, on_both};

on_both!(
    no_two_dispatchers_lease_the_same_delivery,
    two_indexers_store_each_message_once,
    a_lane_never_falls_asleep,
);

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
                let limits = LeaseLimits { total: 7, quota: 5 };
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
    assert_eq!(store.pending_deliveries().await.expect("counts"), 0);
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
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while order.len() < 200 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "asleep after {} messages",
            order.len()
        );
        let leased = lease(store, NOW.after(LEASE)).await;
        for each in &leased {
            assert!(record(store, each, 200, Outcome::Delivered).await);
            order.push(each.lease.sequence);
        }
    }
    indexer.await.expect("no panic");
    assert_eq!(order, (1..=200).collect::<Vec<_>>());
}
