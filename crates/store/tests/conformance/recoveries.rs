//! Recoveries: endpoints that pause, are tried again, and are then sent what waits.

use std::time::Duration;

use sluice_store::{
    AttemptResult, Breaker, DeliveryState, EndpointChange, EndpointState, LeasedDelivery, Outcome,
};

use crate::{fixture::*, on_both};

on_both!(
    a_paused_endpoint_is_left_alone_and_then_tried_with_one_delivery,
    an_endpoint_that_recovers_is_sent_at_once_what_waits_for_a_retry,
    however_much_waits_for_an_endpoint_that_recovers_is_made_due_in_rounds,
    what_failed_too_seldom_to_open_the_breaker_is_sent_at_once_too_after_an_outage,
);

async fn a_paused_endpoint_is_left_alone_and_then_tried_with_one_delivery(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 5).await;
    let leased = lease(store, NOW).await;
    let until = NOW.after(Duration::from_secs(60));
    let failures: Vec<_> = leased
        .iter()
        .map(|each| result(each, 500, Outcome::Retry { at: NOW }))
        .collect();
    let open = |state: EndpointState, each: &AttemptResult| {
        assert_eq!(each.attempt.status, Some(500));
        let failures = state.failures + 1;
        EndpointState {
            failures,
            breaker: if failures < 5 {
                Breaker::Closed
            } else {
                Breaker::Open
            },
            paused_until: (failures == 5).then_some(until),
            trips: state.trips + u32::from(failures == 5),
            ..state
        }
    };
    store.record(&failures, &open).await.expect("records");
    let state = store.endpoint(&id).await.expect("reads").expect("exists");
    assert_eq!(
        (state.breaker, state.failures, state.trips),
        (Breaker::Open, 5, 1)
    );
    assert!(lease(store, NOW).await.is_empty());
    assert_eq!(store.next_due().await.expect("reads"), Some(until));

    let probe = lease(store, until).await;
    assert_eq!((probe.len(), probe[0].probe), (1, true));
    assert!(
        lease(store, until).await.is_empty(),
        "one probe at a time, for every process"
    );
    let close = |_: EndpointState, _: &AttemptResult| EndpointState::default();
    let accepted = [result(&probe[0], 200, Outcome::Delivered)];
    let recorded = store.record(&accepted, &close).await.expect("records");
    let change = EndpointChange {
        webhook: id,
        before: state,
        after: EndpointState::default(),
    };
    assert_eq!(recorded.endpoints, [change]);
    assert_eq!(lease(store, until).await.len(), 4);
}

async fn what_failed_too_seldom_to_open_the_breaker_is_sent_at_once_too_after_an_outage(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = owing(store, 3).await;
    let hours = NOW.after(Duration::from_secs(3 * 60 * 60));
    let leased = lease(store, NOW).await;
    let counting = |state: EndpointState, result: &AttemptResult| EndpointState {
        failures: if result.attempt.accepted() {
            0
        } else {
            state.failures + 1
        },
        ..state
    };
    let at = |delivery: &LeasedDelivery, status, outcome, started| {
        let mut result = result(delivery, status, outcome);
        result.attempt.started = started;
        result.attempt.error = (status != 200).then(|| "answered 500".to_owned());
        result
    };
    let later = NOW.after(Duration::from_secs(5));
    // Accepted just before: the third is one that fails among others.
    let results = [
        at(&leased[0], 200, Outcome::Delivered, NOW),
        at(&leased[2], 500, Outcome::Retry { at: hours }, later),
        at(&leased[1], 200, Outcome::Delivered, later),
    ];
    store.record(&results, &counting).await.expect("records");
    assert!(lease(store, later.after(LEASE)).await.is_empty());

    store_messages(store, &[message(&id, 4), message(&id, 5)]).await;
    let leased = lease(store, later).await;
    let failed = [at(&leased[0], 500, Outcome::Retry { at: hours }, later)];
    store.record(&failed, &counting).await.expect("records");
    let after_outage = later.after(Duration::from_secs(61));
    let accepted = [at(&leased[1], 200, Outcome::Delivered, after_outage)];
    store.record(&accepted, &counting).await.expect("records");
    let soon = after_outage.after(Duration::from_secs(1));
    let mut pulled = lease(store, soon).await;
    pulled.sort_by_key(|each| each.lease.sequence);
    assert_eq!(
        sequences(&pulled),
        [3, 4],
        "it accepted nothing for a minute"
    );
}

async fn an_endpoint_that_recovers_is_sent_at_once_what_waits_for_a_retry(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 4).await;
    let hours = NOW.after(Duration::from_secs(3 * 60 * 60));
    let leased = lease(store, NOW).await;
    // Three of four wait for hours, and the first one is the probe.
    let retries = [NOW, hours, hours, hours];
    let failures: Vec<_> = leased
        .iter()
        .zip(retries)
        .map(|(each, at)| result(each, 500, Outcome::Retry { at }))
        .collect();
    let open = |state: EndpointState, _: &AttemptResult| EndpointState {
        breaker: Breaker::Open,
        ..state
    };
    store.record(&failures, &open).await.expect("records");
    let probe = lease(store, NOW).await;
    assert_eq!(sequences(&probe), [1]);
    let close = |_: EndpointState, _: &AttemptResult| EndpointState::default();
    let accepted = [result(&probe[0], 200, Outcome::Delivered)];
    store.record(&accepted, &close).await.expect("records");
    let soon = NOW.after(Duration::from_secs(1));
    let mut pulled = lease(store, soon).await;
    pulled.sort_by_key(|each| each.lease.sequence);
    assert_eq!(sequences(&pulled), [2, 3, 4]);
    assert!(
        pulled.iter().all(|each| each.retry_index == 1),
        "each keeps its place in the schedule"
    );

    // One that fails while others are accepted keeps its pause.
    let again = [
        result(&pulled[0], 500, Outcome::Retry { at: hours }),
        result(&pulled[1], 200, Outcome::Delivered),
        result(&pulled[2], 200, Outcome::Delivered),
    ];
    store.record(&again, &unchanged).await.expect("records");
    assert!(lease(store, soon).await.is_empty());
    let pending = deliveries(store, &id).await;
    assert_eq!(pending[1].state, DeliveryState::Pending);
}

async fn however_much_waits_for_an_endpoint_that_recovers_is_made_due_in_rounds(fixture: &Fixture) {
    const MOST: u32 = 2;
    let store = &fixture.store;
    let id = owing(store, 8).await;
    let leased = lease(store, NOW).await;
    // All but the probe wait for hours, half of them for the same time.
    let failures: Vec<_> = leased
        .iter()
        .map(|each| {
            let hours = match each.lease.sequence {
                1 => 0,
                sequence => 3 + sequence / 5,
            };
            let at = NOW.after(Duration::from_secs(hours * 60 * 60));
            result(each, 500, Outcome::Retry { at })
        })
        .collect();
    let breaker =
        |breaker| move |state: EndpointState, _: &AttemptResult| EndpointState { breaker, ..state };
    let opened = store.record(&failures, &breaker(Breaker::Open)).await;
    assert_eq!(opened.expect("records").recovering, []);
    let probe = lease(store, NOW).await;
    let accepted = [result(&probe[0], 200, Outcome::Delivered)];
    let close = breaker(Breaker::Closed);
    let recorded = store.record_pulling(&accepted, &close, MOST).await;
    let recorded = recorded.expect("records");
    let [mut rest] = <[_; 1]>::try_from(recorded.recovering).expect("one, of which more waits");
    let soon = NOW.after(Duration::from_secs(1));
    let pulled = async || {
        let mut sequences = sequences(&lease(store, soon).await);
        sequences.sort_unstable();
        sequences
    };
    assert_eq!(pulled().await, [7, 8], "those that would be due last first");
    for expected in [[5, 6], [3, 4]] {
        let round = store.pull_forward(&rest, MOST).await;
        rest = round.expect("pulls").expect("there is more");
        assert_eq!(pulled().await, expected);
    }
    // One that fails again is left to its next recovery.
    let state = |breaker| EndpointState {
        breaker,
        ..EndpointState::default()
    };
    let set = store.set_endpoint(&id, &state(Breaker::HalfOpen)).await;
    assert!(set.expect("sets"));
    let round = store.pull_forward(&rest, MOST).await;
    assert_eq!(round.expect("asks"), None);
    let set = store.set_endpoint(&id, &state(Breaker::Closed)).await;
    assert!(set.expect("sets"));
    assert_eq!(pulled().await, [0; 0]);
    let round = store.pull_forward(&rest, MOST).await;
    assert_eq!(round.expect("pulls"), None, "nothing is left");
    assert_eq!(pulled().await, [2]);
}
