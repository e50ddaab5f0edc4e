//! Batches: what is leased together, and that a lane stays in order whatever becomes of its batches.

use std::{sync::Arc, time::Duration};

use sluice_store::{
    Access, AttemptResult, Batch, BodyTemplate, Commit, Commitment, DeliveryOrder, DeliveryState,
    LeaseLimits, LeasedDelivery, NewMessage, Outcome, Skipped, Store, Timestamp, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_message_waits_for_others_and_takes_along_what_came_meanwhile,
    messages_that_fill_a_batch_do_not_wait,
    messages_that_fill_a_batch_by_and_by_do_not_wait,
    what_is_left_of_filled_batches_is_due_and_follows_in_order,
    a_lane_that_fills_a_batch_by_and_by_does_not_wait,
    what_is_due_is_leased_once_whether_its_numbers_follow_one_another_or_not,
    the_bodies_of_a_batch_are_no_longer_than_its_owner_allows_but_for_one_alone,
    a_lane_is_leased_in_order_and_none_overtakes_a_refused_batch,
    an_unused_or_lost_batch_of_a_lane_is_leased_again_whole,
    what_goes_with_a_skipped_head_is_delivered_by_its_batch_and_by_no_other,
    what_goes_with_a_skipped_head_is_retried_when_its_batch_is_refused,
    what_goes_with_skipped_heads_is_leased_again_when_their_lease_is_over,
    what_a_lost_lease_left_behind_a_skipped_head_is_due_at_once,
);

const BATCH: Batch = Batch {
    max_messages: 4,
    max_bytes: 1024 * 1024,
    max_wait: Duration::from_secs(1),
};

async fn batched(store: &Store, order: DeliveryOrder) -> WebhookId {
    batched_by(store, order, BATCH).await
}

async fn batched_by(store: &Store, order: DeliveryOrder, batch: Batch) -> WebhookId {
    let mut new = webhook(1);
    new.definition.order = order;
    new.definition.batch = Some(batch);
    let created = store.create_webhook(&new, 10).await.expect("created");
    assert_eq!(created.definition.batch, Some(batch));
    created.id
}

/// The end of a body that has so many bytes with a sequence of one digit.
fn end_of(bytes: usize) -> Arc<str> {
    let end = |data: usize| format!(",\"data\":\"{}\"}}", "x".repeat(data));
    let without = with_end(end(0).into()).with_sequence(1).len();
    end(bytes - without).into()
}

fn with_end(end: Arc<str>) -> BodyTemplate {
    BodyTemplate::new("{\"sequence\":".to_owned(), end)
}

fn numbered(webhook: &WebhookId, numbers: std::ops::RangeInclusive<u8>) -> Vec<NewMessage> {
    numbers.map(|number| message(webhook, number)).collect()
}

/// Records one outcome for all of a batch, as a dispatcher does.
async fn finish(store: &Store, batch: &[LeasedDelivery], status: u16, outcome: &Outcome) {
    let results: Vec<AttemptResult> = batch
        .iter()
        .map(|each| result(each, status, outcome.clone()))
        .collect();
    let recorded = store.record(&results, &unchanged).await.expect("records");
    assert!(recorded.counted.iter().all(|counted| *counted));
}

async fn a_message_waits_for_others_and_takes_along_what_came_meanwhile(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    store_messages(store, &numbered(&id, 1..=1)).await;
    assert!(lease(store, NOW).await.is_empty(), "it waits for others");
    let later = NOW.after(BATCH.max_wait / 2);
    let second = [message(&id, 2)];
    let commit = Commit::slot(Commitment::Confirmed, 8, &second, later);
    store.commit(&commit).await.expect("commits");
    let leased = lease(store, NOW.after(BATCH.max_wait)).await;
    assert_eq!(
        sequences(&leased),
        [1, 2],
        "the second has not waited for long"
    );
    assert!(leased.iter().all(|each| each.batch == Some(BATCH)));
    // What is refused waits for its own time, though it is within the wait of a batch.
    let due = NOW.after(BATCH.max_wait * 2);
    let at = due.after(BATCH.max_wait / 2);
    finish(store, &leased, 500, &Outcome::Retry { at }).await;
    let third = [message(&id, 3)];
    let commit = Commit::slot(Commitment::Confirmed, 9, &third, due.before(BATCH.max_wait));
    store.commit(&commit).await.expect("commits");
    assert_eq!(sequences(&lease(store, due).await), [3]);
    assert_eq!(sequences(&lease(store, at).await), [1, 2]);
}

async fn messages_that_fill_a_batch_do_not_wait(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    store_messages(store, &numbered(&id, 1..=4)).await;
    assert_eq!(sequences(&lease(store, NOW).await), [1, 2, 3, 4]);
}

/// Stores messages in commits of their own, of which none fills a batch.
async fn store_all_but_one_of_a_batch(store: &Store, id: &WebhookId) {
    for number in 1..=3 {
        store_messages(store, &numbered(id, number..=number)).await;
        assert!(lease(store, NOW).await.is_empty(), "it waits for others");
    }
}

async fn messages_that_fill_a_batch_by_and_by_do_not_wait(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    store_all_but_one_of_a_batch(store, &id).await;
    store_messages(store, &numbered(&id, 4..=5)).await;
    assert_eq!(sequences(&lease(store, NOW).await), [1, 2, 3, 4, 5]);
}

async fn what_is_left_of_filled_batches_is_due_and_follows_in_order(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    for number in 1..=10 {
        store_messages(store, &numbered(&id, number..=number)).await;
    }
    // Less is free than waits.
    let limits = LeaseLimits { total: 3, ..PLENTY };
    for expected in [[1, 2, 3], [4, 5, 6], [7, 8, 9]] {
        let leased = lease_some(store, NOW, limits).await;
        assert_eq!(sequences(&leased), expected);
    }
    assert!(lease(store, NOW).await.is_empty(), "the tenth fills none");
    let leased = lease(store, NOW.after(BATCH.max_wait)).await;
    assert_eq!(sequences(&leased), [10]);
}

async fn a_lane_that_fills_a_batch_by_and_by_does_not_wait(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_all_but_one_of_a_batch(store, &id).await;
    store_messages(store, &numbered(&id, 4..=9)).await;
    let leased = lease(store, NOW).await;
    assert_eq!(sequences(&leased), [1, 2, 3, 4]);
    assert!(
        store.next_due().await.expect("reads") > Some(NOW),
        "one batch at a time"
    );
    let at = NOW.after(Duration::from_secs(5));
    finish(store, &leased, 500, &Outcome::Retry { at }).await;
    assert_eq!(
        store.next_due().await.expect("reads"),
        Some(at),
        "nothing overtakes it"
    );
}

async fn what_is_due_is_leased_once_whether_its_numbers_follow_one_another_or_not(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::None).await;
    store_messages(store, &numbered(&id, 1..=60)).await;
    let numbers = |leased: &[LeasedDelivery]| {
        let mut numbers = sequences(leased);
        numbers.sort_unstable();
        numbers
    };
    let limits = |total| LeaseLimits { total, ..PLENTY };
    let first = lease_some(store, NOW, limits(20)).await;
    assert_eq!(numbers(&first), (1..=20).collect::<Vec<_>>());
    // The odd ones of these wait for their next attempt, all others of them are due again at once.
    let (odd, even): (Vec<_>, Vec<_>) = first
        .into_iter()
        .partition(|each| each.lease.sequence % 2 == 1);
    let at = NOW.after(LEASE / 2);
    finish(store, &odd, 500, &Outcome::Retry { at }).await;
    let even: Vec<_> = even.into_iter().map(|each| each.lease).collect();
    store.release(&even, NOW).await.expect("releases");
    let expected: Vec<u64> = (1..=20)
        .filter(|number| number % 2 == 0)
        .chain(21..=60)
        .collect();
    assert_eq!(numbers(&lease(store, NOW).await), expected);
    assert!(lease(store, NOW).await.is_empty());
    let expected: Vec<u64> = (1..=20).filter(|number| number % 2 == 1).collect();
    assert_eq!(numbers(&lease(store, at).await), expected);
}

async fn the_bodies_of_a_batch_are_no_longer_than_its_owner_allows_but_for_one_alone(
    fixture: &Fixture,
) {
    const BYTES: usize = 2000;
    let store = &fixture.store;
    let batch = Batch {
        max_bytes: u32::try_from(BYTES).expect("few"),
        ..BATCH
    };
    let id = batched_by(store, DeliveryOrder::Strict, batch).await;
    // The first four are stored with one end for all of them, which counts for each.
    let shared = end_of(BYTES / 2);
    let alone = [BYTES + 1, BYTES / 2, BYTES / 2 + 1, BYTES / 2 - 1].map(end_of);
    let ends = std::iter::repeat_n(shared, 4).chain(alone);
    let messages: Vec<_> = (1..)
        .zip(ends)
        .map(|(number, end)| NewMessage {
            body: with_end(end),
            ..message(&id, number)
        })
        .collect();
    store_messages(store, &messages).await;
    let due = NOW.after(BATCH.max_wait * 2);
    let expected: [&[u64]; 5] = [&[1, 2], &[3, 4], &[5], &[6], &[7, 8]];
    for expected in expected {
        let leased = lease(store, due).await;
        assert_eq!(sequences(&leased), expected);
        let bytes: usize = leased.iter().map(|each| each.body.len()).sum();
        assert!(bytes <= BYTES || leased.len() == 1, "{bytes}");
        finish(store, &leased, 200, &Outcome::Delivered).await;
    }
    assert!(lease(store, due).await.is_empty());
}

async fn a_lane_is_leased_in_order_and_none_overtakes_a_refused_batch(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=10)).await;
    let first = lease(store, NOW).await;
    assert_eq!(sequences(&first), [1, 2, 3, 4]);
    assert!(
        first
            .iter()
            .all(|each| each.head == 1 && each.lease.in_order)
    );
    assert!(lease(store, NOW).await.is_empty(), "one batch at a time");
    let at = NOW.after(Duration::from_secs(5));
    finish(store, &first, 500, &Outcome::Retry { at }).await;
    assert!(lease(store, NOW).await.is_empty(), "nothing overtakes it");
    let half = lease(store, at).await;
    assert_eq!(sequences(&half), [1, 2], "half as many, of the same");
    finish(store, &half, 200, &Outcome::Delivered).await;
    let rest = lease(store, at).await;
    assert_eq!(
        sequences(&rest),
        [3, 4],
        "the others of the refused ones, and no new one"
    );
    finish(store, &rest, 200, &Outcome::Delivered).await;
    let next = lease(store, at).await;
    assert_eq!(sequences(&next), [5, 6, 7, 8]);
    finish(store, &next, 200, &Outcome::Delivered).await;
    let last = lease(store, at).await;
    assert_eq!(sequences(&last), [9, 10]);
    finish(store, &last, 200, &Outcome::Delivered).await;
    let states = deliveries(store, &id).await;
    assert!(
        states
            .iter()
            .all(|each| each.state == DeliveryState::Delivered)
    );
    let log = logs(store, &id).await;
    let statuses =
        |nth: usize| -> Vec<_> { log[nth].attempts.iter().map(|each| each.status).collect() };
    assert_eq!(
        (statuses(3), statuses(4)),
        (vec![Some(500), Some(200)], vec![Some(200)])
    );
}

async fn an_unused_or_lost_batch_of_a_lane_is_leased_again_whole(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=6)).await;
    let unused: Vec<_> = lease(store, NOW)
        .await
        .into_iter()
        .map(|each| each.lease)
        .collect();
    store.release(&unused, NOW).await.expect("releases");
    let lost = lease(store, NOW).await;
    assert_eq!(sequences(&lost), [1, 2, 3, 4]);
    // Its process dies.
    let over = NOW.after(LEASE);
    let again = lease(&fixture.another().await, over).await;
    assert_eq!(sequences(&again), [1, 2, 3, 4]);
    let late = store
        .record(&[result(&lost[1], 500, Outcome::Failed)], &unchanged)
        .await;
    assert_eq!(
        late.expect("records").counted,
        [false],
        "its lease is another's"
    );
    finish(store, &again, 200, &Outcome::Delivered).await;
    assert_eq!(sequences(&lease(store, over).await), [5, 6]);
}

/// Gives up a pending message.
async fn skip(store: &Store, id: &WebhookId, number: u8, now: Timestamp) {
    let message = message(id, number).id;
    let skipped = store.skip(&Access::All, id, &message, now).await;
    assert_eq!(skipped.expect("answers"), Some(Skipped::Skipped));
}

async fn what_goes_with_a_skipped_head_is_delivered_by_its_batch_and_by_no_other(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=6)).await;
    let batch = lease(store, NOW).await;
    assert_eq!(sequences(&batch), [1, 2, 3, 4]);
    skip(store, &id, 1, NOW).await;
    let late = NOW.after(LEASE - Duration::from_millis(1));
    assert!(lease(store, late).await.is_empty(), "it is under way");
    let next = store.next_due().await.expect("reads");
    assert_eq!(next, Some(NOW.after(LEASE)));

    let results: Vec<_> = batch
        .iter()
        .map(|each| result(each, 200, Outcome::Delivered))
        .collect();
    let recorded = store.record(&results, &unchanged).await.expect("records");
    assert_eq!(recorded.counted, [false, true, true, true]);
    let states = deliveries(store, &id).await;
    let states: Vec<_> = states[..4].iter().map(|each| each.state).collect();
    let (failed, delivered) = (DeliveryState::Failed, DeliveryState::Delivered);
    assert_eq!(states, [failed, delivered, delivered, delivered]);
    let later = NOW.after(Duration::from_secs(1));
    assert_eq!(sequences(&lease(store, later).await), [5, 6]);
}

async fn what_goes_with_a_skipped_head_is_retried_when_its_batch_is_refused(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=6)).await;
    let batch = lease(store, NOW).await;
    skip(store, &id, 1, NOW).await;
    let at = NOW.after(Duration::from_secs(5));
    finish(store, &batch[1..], 500, &Outcome::Retry { at }).await;
    assert!(lease(store, NOW).await.is_empty(), "nothing overtakes it");
    let half = lease(store, at).await;
    assert_eq!(sequences(&half), [2, 3]);

    // What was not attempted is due at once.
    skip(store, &id, 2, at).await;
    let unused: Vec<_> = half.into_iter().map(|each| each.lease).collect();
    store.release(&unused, at).await.expect("releases");
    assert_eq!(sequences(&lease(store, at).await), [3, 4]);
}

async fn what_goes_with_skipped_heads_is_leased_again_when_their_lease_is_over(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=7)).await;
    assert_eq!(sequences(&lease(store, NOW).await), [1, 2, 3, 4]);
    for number in [1, 2] {
        skip(store, &id, number, NOW).await;
        assert!(lease(store, NOW).await.is_empty(), "the rest is under way");
    }
    // Its process dies.
    let over = NOW.after(LEASE);
    let again = lease(&fixture.another().await, over).await;
    assert_eq!(sequences(&again), [3, 4, 5, 6]);
    finish(store, &again, 200, &Outcome::Delivered).await;
    assert_eq!(sequences(&lease(store, over).await), [7]);
}

async fn what_a_lost_lease_left_behind_a_skipped_head_is_due_at_once(fixture: &Fixture) {
    let store = &fixture.store;
    let id = batched(store, DeliveryOrder::Strict).await;
    store_messages(store, &numbered(&id, 1..=6)).await;
    assert_eq!(sequences(&lease(store, NOW).await), [1, 2, 3, 4]);
    let over = NOW.after(LEASE);
    let first_alone = LeaseLimits { total: 1, ..PLENTY };
    assert_eq!(
        sequences(&lease_some(store, over, first_alone).await),
        [1],
        "and none goes with it now"
    );
    skip(store, &id, 1, over).await;
    let next = lease(store, over).await;
    assert_eq!(sequences(&next), [2, 3, 4, 5]);
}
