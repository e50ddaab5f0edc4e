//! Batches that are accepted: recorded together, and as if each message had been recorded by itself.

use sluice_store::{
    Access, AttemptResult, Batch, DeliveryOrder, DeliveryState, LeasedDelivery, Outcome, Redeliver,
    Retention, Store, WebhookDefinition, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    each_message_of_an_accepted_batch_has_its_attempt,
    a_batch_with_a_message_that_was_attempted_before_is_recorded_all_the_same,
    a_batch_whose_leases_were_lost_is_delivered_without_doing_another_result_any_harm,
    the_attempt_of_a_batch_goes_with_its_last_message,
    accepted_batches_of_a_lane_wake_what_follows,
    an_accepted_batch_wakes_what_follows_in_a_lane_that_was_made_meanwhile,
);

/// More than are recorded one by one.
const SIZE: u8 = 40;

async fn batched(store: &Store, order: DeliveryOrder) -> WebhookId {
    let mut new = webhook(1);
    new.definition.order = order;
    new.definition.batch = Some(Batch {
        max_messages: SIZE.into(),
        ..Batch::default()
    });
    let id = store.create_webhook(&new, 10).await.expect("created").id;
    let messages: Vec<_> = (1..=SIZE).map(|number| message(&id, number)).collect();
    store_messages(store, &messages).await;
    id
}

/// The results of one attempt at all of these, as a dispatcher gives them.
fn results(batch: &[LeasedDelivery]) -> Vec<AttemptResult> {
    let mut results: Vec<_> = batch
        .iter()
        .map(|each| result(each, 200, Outcome::Delivered))
        .collect();
    for other in results.iter_mut().skip(1) {
        other.observation = None;
    }
    results
}

async fn counted(store: &Store, results: &[AttemptResult]) -> usize {
    let recorded = store.record(results, &unchanged).await.expect("records");
    recorded.counted.iter().filter(|counted| **counted).count()
}

async fn each_message_of_an_accepted_batch_has_its_attempt(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    let leased = lease(store, NOW).await;
    assert_eq!(leased.len(), usize::from(SIZE));
    let results = results(&leased);
    assert_eq!(counted(store, &results).await, usize::from(SIZE));
    assert_eq!(pending(store).await, 0);
    for log in logs(store, &id).await {
        let delivery = &log.delivery;
        assert_eq!(
            (delivery.state, delivery.attempts),
            (DeliveryState::Delivered, 1)
        );
        assert_eq!(delivery.next_attempt_at, None);
        let [attempt] = &log.attempts[..] else {
            panic!("{} attempts of {}", log.attempts.len(), delivery.sequence);
        };
        assert_eq!((attempt.number, attempt.status), (1, Some(200)));
        assert_eq!(attempt.request_headers, results[0].attempt.request_headers);
    }
    // A second result for the same messages changes nothing.
    assert_eq!(counted(store, &results).await, 0);

    // What is delivered once more has an attempt of its own beside the one of its batch.
    let again = Redeliver::Range(1, 1);
    let redelivered = store.redeliver(&Access::All, &id, &again, NOW).await;
    assert_eq!(redelivered.expect("writes"), Some(1));
    accept(store, &lease(store, NOW).await).await;
    let numbers = |log: &sluice_store::DeliveryLog| -> Vec<u32> {
        log.attempts.iter().map(|attempt| attempt.number).collect()
    };
    let logs = logs(store, &id).await;
    assert_eq!(numbers(&logs[0]), [1, 2]);
    assert_eq!(numbers(&logs[1]), [1]);
}

async fn a_batch_with_a_message_that_was_attempted_before_is_recorded_all_the_same(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    accept(store, &lease(store, NOW).await).await;
    let again = Redeliver::Range(1, SIZE.into());
    let redelivered = store.redeliver(&Access::All, &id, &again, NOW).await;
    assert_eq!(redelivered.expect("writes"), Some(SIZE.into()));
    let leased = lease(store, NOW).await;
    assert_eq!(counted(store, &results(&leased)).await, usize::from(SIZE));
    for log in logs(store, &id).await {
        assert_eq!(log.delivery.state, DeliveryState::Delivered);
        assert_eq!((log.delivery.attempts, log.attempts.len()), (2, 2));
    }
}

async fn a_batch_whose_leases_were_lost_is_delivered_without_doing_another_result_any_harm(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    let lost = lease(store, NOW).await;
    let later = NOW.after(LEASE);
    let held = lease(store, later).await;
    assert_eq!(sequences(&lost), sequences(&held));
    // One of them was refused meanwhile, and waits for its retry.
    let at = later.after(LEASE);
    let refused = record(store, &held[3], 500, Outcome::Retry { at }).await;
    assert!(refused);
    // Accepted is delivered, whatever the lease.
    assert_eq!(counted(store, &results(&lost)).await, usize::from(SIZE));
    let logs = logs(store, &id).await;
    let delivered =
        |log: &sluice_store::DeliveryLog| log.delivery.state == DeliveryState::Delivered;
    assert!(logs.iter().all(delivered));
    assert_eq!(logs[3].delivery.attempts, 2);
    assert_eq!(counted(store, &results(&held)).await, 0);
}

async fn the_attempt_of_a_batch_goes_with_its_last_message(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    let leased = lease(store, NOW).await;
    let results = results(&leased);
    counted(store, &results).await;
    let bytes = async || store.queue_stats().await.expect("counts").bytes;
    let kept = bytes().await;
    let texts = |result: &AttemptResult| -> usize {
        let headers = &result.attempt.request_headers;
        headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum()
    };
    let bodies: usize = leased.iter().map(|each| each.body.len()).sum();
    let bodies = u64::try_from(bodies).expect("few");
    let once = u64::try_from(texts(&results[0])).expect("few");
    assert!(kept >= bodies + once, "{kept}");
    assert!(
        kept < bodies + 2 * once + 256,
        "the headers are kept once: {kept}"
    );
    let retention = Retention {
        finished_before: results[0].attempt.ended().after(LEASE),
        now: NOW.after(LEASE),
        undelivered_before: None,
        max_bytes: None,
    };
    let removed = store.prune(&retention).await.expect("removes");
    assert_eq!(removed.finished, u64::from(SIZE));
    assert_eq!((bytes().await, logs(store, &id).await.len()), (0, 0));
}

async fn accepted_batches_of_a_lane_wake_what_follows(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    let next = SIZE + 1;
    store_messages(store, &[message(&id, next)]).await;
    let leased = lease(store, NOW).await;
    assert_eq!(leased.len(), usize::from(SIZE));
    assert_eq!(counted(store, &results(&leased)).await, usize::from(SIZE));
    let later = NOW.after(LEASE);
    assert_eq!(sequences(&lease(store, later).await), [u64::from(next)]);
    let attempts = logs(store, &id).await;
    let one_each = attempts
        .iter()
        .take(SIZE.into())
        .all(|log| log.attempts.len() == 1);
    assert!(one_each);
}

async fn an_accepted_batch_wakes_what_follows_in_a_lane_that_was_made_meanwhile(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    let leased = lease(store, NOW).await;
    let next = SIZE + 1;
    store_messages(store, &[message(&id, next)]).await;
    let ordered = WebhookDefinition {
        order: DeliveryOrder::Strict,
        ..definition()
    };
    let updated = store
        .update_webhook(&Access::All, &id, &ordered, None)
        .await;
    assert!(updated.expect("writes").is_some());
    let later = NOW.after(LEASE / 2);
    assert!(
        lease(store, later).await.is_empty(),
        "it waits for those before it"
    );
    assert_eq!(counted(store, &results(&leased)).await, usize::from(SIZE));
    assert_eq!(sequences(&lease(store, later).await), [u64::from(next)]);
}
