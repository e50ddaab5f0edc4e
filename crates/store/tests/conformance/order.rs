//! Lanes: deliveries that must be made one after the other.

use std::time::Duration;

use sluice_store::{
    Access, DeliveryOrder, DeliveryState, Outcome, Redeliver, Retention, Skipped, WebhookDefinition,
};

use crate::{fixture::*, on_both};

on_both!(
    strict_order_has_one_message_under_way,
    order_per_key_holds_back_that_key_only,
    a_failure_gives_way_to_the_next,
    a_skipped_message_gives_way_and_can_be_redelivered,
    a_change_of_order_concerns_what_is_owed,
    removing_what_held_back_a_lane_wakes_it,
);

async fn a_skipped_message_gives_way_and_can_be_redelivered(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    let messages = [message(&id, 1), message(&id, 2)];
    store_messages(store, &messages).await;
    let head = lease(store, NOW).await;
    assert_eq!(sequences(&head), [1]);
    let skip = async |access: &Access, message| {
        let skipped = store.skip(access, &id, message, NOW).await;
        skipped.expect("answers")
    };
    let (key, _) = with_key(store, 7, "stranger").await;
    assert_eq!(skip(&Access::Key(key), &messages[0].id).await, None);
    let skipped = skip(&Access::All, &messages[0].id).await;
    assert_eq!(skipped, Some(Skipped::Skipped), "though it is leased");
    let again = skip(&Access::All, &messages[0].id).await;
    assert_eq!(again, Some(Skipped::Finished), "and no other in its place");
    let other = message(&id, 9).id;
    assert_eq!(skip(&Access::All, &other).await, Some(Skipped::Unknown));

    let next = lease(store, NOW).await;
    assert_eq!(sequences(&next), [2]);
    let late = Outcome::Retry { at: NOW };
    assert!(!record(store, &head[0], 500, late).await, "counts no more");
    accept(store, &next).await;
    let failed = deliveries(store, &id).await[0].state;
    assert_eq!(failed, DeliveryState::Failed);
    let all = store.redeliver(&Access::All, &id, &Redeliver::Failed, NOW);
    assert_eq!(all.await.expect("redelivers"), Some(1));
    assert_eq!(sequences(&lease(store, NOW).await), [1]);
}

async fn strict_order_has_one_message_under_way(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    store_messages(store, &[message(&id, 1), message(&id, 2)]).await;
    store_messages(store, &[message(&id, 3)]).await;
    for expected in 1..=3 {
        let leased = lease(store, NOW.after(Duration::from_secs(1))).await;
        assert_eq!(sequences(&leased), [expected]);
        assert!(
            lease(store, NOW.after(Duration::from_secs(1)))
                .await
                .is_empty()
        );
        accept(store, &leased).await;
    }
    assert!(lease(store, NOW.after(LEASE)).await.is_empty());
}

async fn order_per_key_holds_back_that_key_only(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::PerKey).await;
    let messages = [
        keyed(&id, 1, Some("a")),
        keyed(&id, 2, Some("a")),
        keyed(&id, 3, Some("b")),
        keyed(&id, 4, None),
        keyed(&id, 5, None),
    ];
    store_messages(store, &messages).await;
    let first = lease(store, NOW).await;
    assert_eq!(sequences(&first), [1, 3, 4, 5]);
    // The key waits for its retry, however long that takes; the others go on.
    let at = NOW.after(Duration::from_secs(300));
    record(store, &first[0], 500, Outcome::Retry { at }).await;
    accept(store, &first[1..]).await;
    store_messages(store, &[keyed(&id, 6, Some("b")), keyed(&id, 7, Some("a"))]).await;
    let later = NOW.after(Duration::from_secs(1));
    let second = lease(store, later).await;
    assert_eq!(sequences(&second), [6]);
    accept(store, &second).await;
    for expected in [1, 2, 7] {
        let leased = lease(store, at).await;
        assert_eq!(sequences(&leased), [expected]);
        accept(store, &leased).await;
    }
}

async fn a_failure_gives_way_to_the_next(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    store_messages(store, &[message(&id, 1), message(&id, 2)]).await;
    let leased = lease(store, NOW).await;
    record(store, &leased[0], 500, Outcome::Failed).await;
    let later = NOW.after(Duration::from_secs(1));
    assert_eq!(sequences(&lease(store, later).await), [2]);
}

async fn a_change_of_order_concerns_what_is_owed(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::None).await;
    let messages: Vec<_> = (1..=4)
        .map(|number| {
            keyed(
                &id,
                number,
                Some(if number % 2 == 0 { "even" } else { "odd" }),
            )
        })
        .collect();
    store_messages(store, &messages).await;
    let change = async |order| {
        let definition = WebhookDefinition {
            order,
            ..definition()
        };
        store
            .update_webhook(&Access::All, &id, &definition, None)
            .await
            .expect("updates")
            .expect("exists");
    };
    let leasable = async || {
        let leased = lease(store, NOW).await;
        let leases: Vec<_> = leased.iter().map(|each| each.lease.clone()).collect();
        store.release(&leases, NOW).await.expect("releases");
        sequences(&leased)
    };
    assert_eq!(leasable().await, [1, 2, 3, 4]);
    change(DeliveryOrder::Strict).await;
    assert_eq!(leasable().await, [1]);
    change(DeliveryOrder::PerKey).await;
    assert_eq!(leasable().await, [1, 2]);
    change(DeliveryOrder::None).await;
    assert_eq!(leasable().await, [1, 2, 3, 4]);

    // What is leased when order begins is pending again behind what is before it.
    let leased = lease(store, NOW).await;
    change(DeliveryOrder::Strict).await;
    record(store, &leased[2], 500, Outcome::Retry { at: NOW }).await;
    record(store, &leased[3], 500, Outcome::Retry { at: NOW }).await;
    assert!(lease(store, NOW).await.is_empty());
    accept(store, &leased[..2]).await;
    let later = NOW.after(Duration::from_secs(1));
    assert_eq!(sequences(&lease(store, later).await), [3]);
}

async fn removing_what_held_back_a_lane_wakes_it(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    store_messages(store, &[message(&id, 1)]).await;
    let later = NOW.after(Duration::from_secs(60));
    let second = [message(&id, 2)];
    let commit = sluice_store::Commit::slot(sluice_store::Commitment::Confirmed, 8, &second, later);
    store.commit(&commit).await.expect("commits");
    let removed = store
        .prune(&Retention {
            now: later,
            finished_before: NOW,
            undelivered_before: Some(later),
            max_bytes: None,
        })
        .await
        .expect("prunes");
    assert_eq!(removed.undelivered, [(id, 1)]);
    assert_eq!(sequences(&lease(store, later).await), [2]);
}
