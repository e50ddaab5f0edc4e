//! History of messages and deliveries, and redelivery.

use sluice_store::{
    Access, DeliveryQuery, DeliveryState, MessageId, Outcome, Redeliver, Store, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    messages_are_pulled_after_a_number,
    messages_are_pulled_until_they_are_long_enough,
    deliveries_are_listed_by_state_the_newest_first,
    what_is_finished_is_delivered_again_on_request,
);

async fn messages_are_pulled_after_a_number(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 5).await;
    let pull = async |after, limit| {
        let page = store.messages_after(&Access::All, &id, after, limit).await;
        let page = page.expect("reads").expect("exists");
        assert_eq!((page.last_sequence, page.oldest_kept), (5, Some(1)));
        page.messages
            .iter()
            .map(|each| each.sequence)
            .collect::<Vec<_>>()
    };
    assert_eq!(pull(0, 2).await, [1, 2]);
    assert_eq!(pull(3, 9).await, [4, 5]);
    assert!(pull(u64::MAX, 9).await.is_empty());
}

async fn messages_are_pulled_until_they_are_long_enough(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 5).await;
    let pull = async |limit, bytes| {
        let page = store
            .messages_within(&Access::All, &id, 1, (limit, bytes))
            .await;
        page.expect("reads").expect("exists").messages
    };
    let all = pull(9, 1 << 20).await;
    assert_eq!(all.len(), 4);
    let length = u64::try_from(all[0].body.len()).expect("short");
    for (limit, bytes, expected) in [
        (9, 0, 0),
        (9, 1, 1),
        (9, length, 1),
        (9, length + 1, 2),
        (9, 3 * length, 3),
        (2, 3 * length, 2),
    ] {
        let pulled = pull(limit, bytes).await;
        assert_eq!(pulled, all[..expected], "{limit} messages, {bytes} bytes");
    }
}

/// Webhook 1 with a delivered, a failed and a pending message.
async fn one_of_each(store: &Store) -> WebhookId {
    let id = owing(store, 3).await;
    let leased = lease(store, NOW).await;
    accept(store, &leased[..1]).await;
    record(store, &leased[1], 500, Outcome::Failed).await;
    store
        .release(&[leased[2].lease.clone()], NOW.after(LEASE))
        .await
        .expect("releases");
    id
}

async fn deliveries_are_listed_by_state_the_newest_first(fixture: &Fixture) {
    let store = &fixture.store;
    let id = one_of_each(store).await;
    let list = async |query| {
        let logs = store.deliveries(&Access::All, &id, query, 2).await;
        logs.expect("reads")
            .expect("exists")
            .iter()
            .map(|log| (log.delivery.sequence, log.attempts.len()))
            .collect::<Vec<_>>()
    };
    let all = DeliveryQuery::default();
    assert_eq!(list(all).await, [(3, 0), (2, 1)]);
    let next = DeliveryQuery {
        before: Some(2),
        ..all
    };
    assert_eq!(list(next).await, [(1, 1)]);
    for (state, sequence) in [
        (DeliveryState::Delivered, 1),
        (DeliveryState::Failed, 2),
        (DeliveryState::Pending, 3),
    ] {
        let query = DeliveryQuery {
            state: Some(state),
            ..all
        };
        let found: Vec<_> = list(query).await.iter().map(|each| each.0).collect();
        assert_eq!(found, [sequence], "{state:?}");
    }
    let one = DeliveryQuery {
        sequence: Some(2),
        ..all
    };
    assert_eq!(list(one).await, [(2, 1)]);
}

async fn what_is_finished_is_delivered_again_on_request(fixture: &Fixture) {
    let store = &fixture.store;
    let id = one_of_each(store).await;
    let redeliver = async |which| {
        let count = store.redeliver(&Access::All, &id, &which, NOW).await;
        count.expect("redelivers").expect("exists")
    };
    assert_eq!(redeliver(Redeliver::Failed).await, 1);
    let leased = lease(store, NOW).await;
    assert_eq!(sequences(&leased), [2]);
    assert_eq!(leased[0].retry_index, 0, "the schedule starts anew");
    accept(store, &leased).await;
    let log = logs(store, &id).await.remove(1);
    assert_eq!((log.delivery.attempts, log.attempts.len()), (2, 2));

    let first = logs(store, &id).await.remove(0).delivery.id;
    assert_eq!(redeliver(Redeliver::Message(first)).await, 1);
    assert_eq!(sequences(&lease(store, NOW).await), [1]);
    assert_eq!(
        redeliver(Redeliver::Range(1, 9)).await,
        2,
        "one is leased, one is pending and comes sooner"
    );
    assert_eq!(sequences(&lease(store, NOW).await), [2, 3]);
    let unknown = Redeliver::Message(MessageId::from_bytes([99; 32]));
    assert_eq!(redeliver(unknown).await, 0);
}
