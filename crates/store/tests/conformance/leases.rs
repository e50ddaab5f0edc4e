//! Leases, recorded attempts, and the state of deliveries and endpoints after them.

use std::time::Duration;

use sluice_store::{
    Access, BodyTemplate, DeliveryOptions, DeliveryState, EndpointState, LeaseLimits,
    LeasedDelivery, MAX_RESPONSE_BYTES, NewMessage, Outcome, Revision, WebhookDefinition,
};

use crate::{fixture::*, on_both};

on_both!(
    a_lease_keeps_others_away_until_it_ends,
    a_late_result_cannot_overwrite_but_an_acceptance_counts,
    a_released_delivery_is_due_again_at_once,
    results_of_attempts_are_kept,
    a_delivery_past_its_schedule_is_kept_as_failed,
    an_endpoint_that_is_gone_switches_its_webhook_off_and_nothing_is_lost,
    an_answer_from_the_old_url_does_not_switch_off_the_new_one,
    one_webhook_cannot_use_the_lease_quota_of_another,
    bodies_are_leased_up_to_a_number_of_bytes,
    a_concurrency_limit_is_honoured,
    what_an_owner_asks_for_is_leased_and_no_more,
    the_queue_is_counted,
);

async fn a_lease_keeps_others_away_until_it_ends(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let first = lease(store, NOW).await;
    assert_eq!(first.len(), 1);
    assert_eq!(
        first[0].body, "{\"sequence\":1,\"data\":\"\\u0000é\\\"\"}",
        "byte for byte"
    );
    assert!(lease(store, NOW).await.is_empty());
    let nearly = NOW.after(LEASE).before(Duration::from_millis(1));
    assert!(lease(store, nearly).await.is_empty());

    let second = lease(store, NOW.after(LEASE)).await;
    assert_eq!(second[0].body, first[0].body, "the same bytes again");
    let late = Outcome::Retry { at: NOW };
    assert!(
        !record(store, &first[0], 500, late).await,
        "the lease had passed on"
    );
    assert!(record(store, &second[0], 200, Outcome::Delivered).await);
    let after = deliveries(store, &id).await;
    assert_eq!(
        (after[0].state, after[0].attempts),
        (DeliveryState::Delivered, 1)
    );
    assert_eq!(after[0].next_attempt_at, None);
}

async fn a_late_result_cannot_overwrite_but_an_acceptance_counts(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 2).await;
    let first = lease(store, NOW).await;
    let second = lease(store, NOW.after(LEASE)).await;
    assert!(!record(store, &first[0], 500, Outcome::Failed).await);
    assert!(record(store, &first[1], 200, Outcome::Delivered).await);
    assert!(!record(store, &second[1], 500, Outcome::Retry { at: NOW }).await);
    let states: Vec<_> = deliveries(store, &id)
        .await
        .iter()
        .map(|each| each.state)
        .collect();
    assert_eq!(states, [DeliveryState::Pending, DeliveryState::Delivered]);
}

async fn a_released_delivery_is_due_again_at_once(fixture: &Fixture) {
    let store = &fixture.store;
    owing(store, 1).await;
    let leased = lease(store, NOW).await;
    store
        .release(&[leased[0].lease.clone()], NOW)
        .await
        .expect("releases");
    let again = lease(store, NOW).await;
    assert_eq!((again.len(), again[0].retry_index), (1, 0));
    // The lease that was released proves nothing any more.
    store
        .release(&[leased[0].lease.clone()], NOW)
        .await
        .expect("answers");
    assert!(lease(store, NOW).await.is_empty());
}

async fn results_of_attempts_are_kept(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let at = NOW.after(Duration::from_secs(5));
    let leased = lease(store, NOW).await;
    let mut failed = result(&leased[0], 500, Outcome::Retry { at });
    failed.attempt.status = None;
    failed.attempt.error = Some("x".repeat(600));
    failed.attempt.response = Some("é".repeat(MAX_RESPONSE_BYTES));
    store.record(&[failed], &unchanged).await.expect("records");
    let read = store.webhook(&Access::All, &id).await.expect("reads");
    assert_eq!(read.expect("exists").last_triggered, None);
    let nearly = at.before(Duration::from_millis(1));
    assert!(lease(store, nearly).await.is_empty(), "not due yet");
    assert_eq!(store.next_due().await.expect("reads"), Some(at));

    let leased = lease(store, at).await;
    assert_eq!(leased[0].retry_index, 1);
    accept(store, &leased).await;
    let read = store.webhook(&Access::All, &id).await.expect("reads");
    assert_eq!(
        read.expect("exists").last_triggered,
        Some(NOW.after(Duration::from_millis(12)))
    );
    let attempts = logs(store, &id).await.remove(0).attempts;
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0].error.as_ref().map(String::len), Some(500));
    assert_eq!(
        attempts[0].response.as_ref().map(String::len),
        Some(MAX_RESPONSE_BYTES)
    );
    assert!(attempts[0].response_cut);
    let mut expected = attempt(200);
    expected.number = 2;
    expected.response = Some("ok\u{fffd}".to_owned());
    assert_eq!(attempts[1], expected);
    assert_eq!(pending(store).await, 0);
    assert_eq!(store.next_due().await.expect("reads"), None);
}

async fn a_delivery_past_its_schedule_is_kept_as_failed(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let leased = lease(store, NOW).await;
    record(store, &leased[0], 500, Outcome::Failed).await;
    assert_eq!(deliveries(store, &id).await[0].state, DeliveryState::Failed);
    assert!(lease(store, NOW.after(LEASE * 100)).await.is_empty());
}

async fn an_endpoint_that_is_gone_switches_its_webhook_off_and_nothing_is_lost(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 2).await;
    let on = store.webhook(&Access::All, &id).await.expect("reads");
    let leased = lease(store, NOW).await;
    let gone = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    record(store, &leased[0], 410, gone).await;
    store
        .release(&[leased[1].lease.clone()], NOW)
        .await
        .expect("releases");

    let off = store.webhook(&Access::All, &id).await.expect("reads");
    let off = off.expect("exists");
    assert!(!off.definition.active);
    assert_eq!(off.disabled_reason.as_deref(), Some("answered 410"));
    assert!(
        off.version > on.expect("exists").version,
        "a reader of the version before must read it again"
    );
    assert_eq!(store.webhook_revision().await.expect("reads"), Revision(2));
    assert!(
        lease(store, NOW).await.is_empty(),
        "nothing is sent while it is off"
    );

    let on = store
        .update_webhook(&Access::All, &id, &definition(), None)
        .await
        .expect("updates")
        .expect("exists");
    assert_eq!((on.definition.active, on.disabled_reason), (true, None));
    assert_eq!(lease(store, NOW).await.len(), 2, "both are still pending");
}

async fn an_answer_from_the_old_url_does_not_switch_off_the_new_one(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let leased = lease(store, NOW).await;
    let moved = WebhookDefinition {
        url: "https://example.com/new".to_owned(),
        ..definition()
    };
    store
        .update_webhook(&Access::All, &id, &moved, None)
        .await
        .expect("updates");
    let gone = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    record(store, &leased[0], 410, gone).await;
    let read = store.webhook(&Access::All, &id).await.expect("reads");
    assert!(read.expect("exists").definition.active);
    assert_eq!(lease(store, NOW).await[0].url, moved.url);
}

async fn one_webhook_cannot_use_the_lease_quota_of_another(fixture: &Fixture) {
    let store = &fixture.store;
    let (busy, quiet) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let mut slot: Vec<_> = (1..=20).map(|number| message(&busy, number)).collect();
    slot.push(message(&quiet, 1));
    store_messages(store, &slot).await;
    let limits = LeaseLimits {
        bytes: u64::MAX,
        oversized: false,
        total: 10,
        quota: 3,
    };
    let leased = lease_some(store, NOW, limits).await;
    let of = |id| {
        leased
            .iter()
            .filter(|each| &each.lease.webhook == id)
            .count()
    };
    assert_eq!((of(&busy), of(&quiet)), (3, 1));
    assert!(
        lease_some(store, NOW, limits).await.is_empty(),
        "the busy one's quota is leased, the quiet one has no more"
    );
    accept(store, &leased[..1]).await;
    assert_eq!(lease_some(store, NOW, limits).await.len(), 1);

    let total = LeaseLimits {
        bytes: u64::MAX,
        oversized: false,
        total: 2,
        quota: 100,
    };
    let later = NOW.after(LEASE);
    assert_eq!(lease_some(store, later, total).await.len(), 2);
}

async fn bodies_are_leased_up_to_a_number_of_bytes(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, other) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let long = |number| NewMessage {
        body: BodyTemplate::new(
            "{\"n\":".to_owned(),
            format!(",\"d\":\"{}\"}}", "é".repeat(500)).into(),
        ),
        ..message(&one, number)
    };
    let mut slot: Vec<_> = (1..=4).map(long).collect();
    slot.push(message(&other, 1));
    store_messages(store, &slot).await;
    let limits = |bytes, oversized| LeaseLimits {
        bytes,
        oversized,
        ..PLENTY
    };
    let of_one = |leased: &[LeasedDelivery]| -> Vec<_> {
        let of_one = leased.iter().filter(|each| each.lease.webhook == one);
        of_one.map(|each| each.lease.sequence).collect()
    };

    let first = lease_some(store, NOW, limits(2_500, false)).await;
    assert_eq!(of_one(&first), [1, 2], "in order, as far as there is room");
    assert_eq!(first.len(), 3, "and what is short of another webhook");
    assert!(lease_some(store, NOW, limits(900, false)).await.is_empty());
    let oversized = lease_some(store, NOW, limits(900, true)).await;
    assert_eq!(of_one(&oversized), [3], "the first whatever its length");
    let rest = lease_some(store, NOW, limits(u64::MAX, false)).await;
    assert_eq!(of_one(&rest), [4], "what was left was due still");
}

async fn a_concurrency_limit_is_honoured(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 5).await;
    let slow = EndpointState {
        concurrency_limit: Some(2),
        ..EndpointState::default()
    };
    assert!(store.set_endpoint(&id, &slow).await.expect("sets"));
    assert_eq!(lease(store, NOW).await.len(), 2);
    assert!(lease(store, NOW).await.is_empty());
    assert_eq!(store.endpoint(&id).await.expect("reads"), Some(slow));
}

async fn what_an_owner_asks_for_is_leased_and_no_more(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 9).await;
    let ask = async |delivery: DeliveryOptions| {
        let definition = WebhookDefinition {
            delivery,
            ..definition()
        };
        let written = store
            .update_webhook(&Access::All, &id, &definition, None)
            .await;
        assert_eq!(
            written.expect("writes").expect("exists").definition,
            definition
        );
    };
    let gentle = DeliveryOptions {
        concurrency: Some(2),
        timeout_ms: Some(2000),
        retry_pauses_seconds: Some(vec![7]),
        ..DeliveryOptions::default()
    };
    ask(gentle.clone()).await;
    let leased = lease(store, NOW).await;
    assert_eq!(leased.len(), 2);
    assert!(leased.iter().all(|each| *each.options == gentle));
    assert!(lease(store, NOW).await.is_empty());
    let slow = EndpointState {
        concurrency_limit: Some(1),
        ..EndpointState::default()
    };
    assert!(store.set_endpoint(&id, &slow).await.expect("sets"));
    accept(store, &leased).await;
    assert_eq!(lease(store, NOW).await.len(), 1, "what it bears is less");
    let fast = EndpointState::default();
    assert!(store.set_endpoint(&id, &fast).await.expect("sets"));
    ask(DeliveryOptions {
        max_per_second: Some(2),
        ..DeliveryOptions::default()
    })
    .await;
    assert_eq!(lease(store, NOW).await.len(), 2, "a second's worth");
    ask(DeliveryOptions::default()).await;
    assert_eq!(lease(store, NOW).await.len(), 4, "all the others");
}

async fn the_queue_is_counted(fixture: &Fixture) {
    let store = &fixture.store;
    owing(store, 3).await;
    let leased = lease_some(store, NOW, LeaseLimits::deliveries(2)).await;
    record(store, &leased[0], 500, Outcome::Failed).await;
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!(
        (stats.pending, stats.leased, stats.failed, stats.kept),
        (2, 1, 1, 3)
    );
    assert_eq!(stats.oldest_pending, Some(NOW));
    assert!(stats.bytes > 0);
}
