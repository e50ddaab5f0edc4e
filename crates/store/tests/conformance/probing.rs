//! Probing: endpoints whose breaker is not closed are tried with what waits, ahead of its time, and that takes no part of its retries.

use std::time::Duration;

use sluice_store::{
    Access, AttemptResult, Breaker, DeliveryOrder, EndpointState, LeasedDelivery, Outcome,
    Redeliver, Store, Timestamp, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    what_waits_for_hours_is_due_when_the_pause_of_its_endpoint_is_over,
    after_an_accepted_probe_the_next_that_waits_is_due_at_once,
    what_is_redelivered_is_no_probe,
    what_waits_for_an_endpoint_that_is_another_one_now_is_due_at_once,
);

fn hours() -> Timestamp {
    NOW.after(Duration::from_secs(6 * 60 * 60))
}

fn minutes(count: u64) -> Timestamp {
    NOW.after(Duration::from_secs(60 * count))
}

/// Failed: its breaker is open until then.
fn opened(until: Timestamp) -> impl Fn(EndpointState, &AttemptResult) -> EndpointState {
    move |state, _| EndpointState {
        breaker: Breaker::Open,
        failures: state.failures + 1,
        paused_until: Some(until),
        ..state
    }
}

/// These failed, their own retries are hours away, and the breaker is open until `pause`.
async fn fail(store: &Store, leased: &[LeasedDelivery], pause: Timestamp) {
    let failed = leased
        .iter()
        .map(|each| result(each, 500, Outcome::Retry { at: hours() }));
    let failed: Vec<_> = failed.collect();
    let recorded = store.record(&failed, &opened(pause)).await;
    recorded.expect("records");
}

async fn what_waits_for_hours_is_due_when_the_pause_of_its_endpoint_is_over(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::Strict).await;
    store_messages(store, &[message(&id, 1), message(&id, 2)]).await;
    let first = lease(store, NOW).await;
    fail(store, &first, minutes(1)).await;
    assert!(
        lease(store, minutes(1).before(Duration::from_millis(1)))
            .await
            .is_empty()
    );
    for pause in 2..6 {
        let probe = lease(store, minutes(pause - 1)).await;
        assert_eq!(sequences(&probe), [1], "of the lane the first alone");
        let probe = &probe[0];
        assert!(probe.probe);
        assert_eq!((probe.retry_index, probe.ahead_of), (1, Some(hours())));
        let again = [result(probe, 500, Outcome::Early { at: hours() })];
        let recorded = store.record(&again, &opened(minutes(pause))).await;
        recorded.expect("records");
    }
    // Later than its own retry: that one is the probe.
    let probe = lease(store, minutes(5)).await;
    let late = [result(&probe[0], 500, Outcome::Early { at: hours() })];
    let pause = hours().after(Duration::from_secs(60));
    store.record(&late, &opened(pause)).await.expect("records");
    let own = lease(store, pause).await;
    assert_eq!((own[0].retry_index, own[0].ahead_of), (1, None));
    assert_eq!(own[0].lease.sequence, 1);
}

async fn after_an_accepted_probe_the_next_that_waits_is_due_at_once(fixture: &Fixture) {
    let store = &fixture.store;
    owing(store, 3).await;
    fail(store, &lease(store, NOW).await, minutes(1)).await;
    let probe = lease(store, minutes(1)).await;
    assert_eq!(probe.len(), 1);
    let half_open = |state, _: &AttemptResult| EndpointState {
        breaker: Breaker::HalfOpen,
        failures: 0,
        paused_until: None,
        ..state
    };
    let accepted = [result(&probe[0], 200, Outcome::Delivered)];
    store.record(&accepted, &half_open).await.expect("records");
    let second = lease(store, minutes(1)).await;
    assert_eq!(second.len(), 1, "one at a time");
    assert_eq!(second[0].ahead_of, Some(hours()));
    let closed = |_: EndpointState, _: &AttemptResult| EndpointState::default();
    let accepted = [result(&second[0], 200, Outcome::Delivered)];
    store.record(&accepted, &closed).await.expect("records");
    assert_eq!(lease(store, minutes(1)).await.len(), 1, "all that is left");
}

async fn what_is_redelivered_is_no_probe(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let first = lease(store, NOW).await;
    fail(store, &first, minutes(1)).await;
    let message = Redeliver::Message(first[0].lease.id.clone());
    let redelivered = store.redeliver(&Access::All, &id, &message, NOW).await;
    assert_eq!(redelivered.expect("redelivers"), Some(1));
    let again = lease(store, minutes(1)).await;
    assert_eq!((again[0].retry_index, again[0].ahead_of), (0, None));
}

async fn what_waits_for_an_endpoint_that_is_another_one_now_is_due_at_once(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 3).await;
    fail(store, &lease(store, NOW).await, minutes(1)).await;
    assert!(store.restart_endpoint(&id, NOW).await.expect("restarts"));
    let state = store.endpoint(&id).await.expect("reads").expect("exists");
    assert_eq!(state, EndpointState::default());
    let again = lease(store, NOW).await;
    let places: Vec<_> = again.iter().map(|each| each.retry_index).collect();
    assert_eq!(places, [1, 1, 1], "at the same place of the schedule");
    let unknown = WebhookId::from_random([9; 16]);
    assert!(!store.restart_endpoint(&unknown, NOW).await.expect("looks"));
}
