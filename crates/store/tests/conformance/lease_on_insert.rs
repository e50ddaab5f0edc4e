//! Deliveries that are inserted already leased.

use sluice_store::{
    Access, Breaker, Commit, Commitment, Committed, DeliveryOrder, EndpointState, Held, Holder,
    LeaseLimits, LeaseRequest, LeasedDelivery, Load, NewMessage, Store, Tenant, TenantShares,
    Timestamp, WebhookDefinition, WebhookSet,
};
use tokio::{sync::mpsc, try_join};

use crate::{fixture::*, on_both};

on_both!(
    what_is_leased_on_insert_is_not_leased_again,
    what_is_due_already_goes_first,
    nothing_is_leased_for_an_endpoint_that_does_not_work,
    no_more_than_the_lease_quota_is_leased,
    no_more_than_an_owner_asks_for_is_leased,
    of_a_lane_only_the_first_is_leased,
    known_messages_are_not_leased_again,
    storing_and_recording_do_not_stop_each_other,
    the_webhooks_of_what_must_be_looked_for_are_named,
    what_waits_for_the_end_of_a_pause_need_not_be_looked_for,
    what_waits_for_a_result_need_not_be_looked_for_before,
    a_result_that_was_recorded_since_the_leases_were_asked_for_makes_room,
    what_is_due_and_cannot_be_leased_is_told,
);

pub async fn insert_leased(
    store: &Store,
    messages: &[NewMessage],
    now: Timestamp,
    limits: LeaseLimits,
) -> (u64, Vec<LeasedDelivery>) {
    let (committed, leased) = commit_leased(store, messages, now, limits).await;
    (committed.inserted(), leased)
}

pub async fn commit_leased(
    store: &Store,
    messages: &[NewMessage],
    now: Timestamp,
    limits: LeaseLimits,
) -> (Committed, Vec<LeasedDelivery>) {
    let commit = Commit::slot(Commitment::Confirmed, 7, messages, now);
    commit_leased_as(store, &commit, limits).await
}

pub async fn commit_leased_as(
    store: &Store,
    commit: &Commit<'_>,
    limits: LeaseLimits,
) -> (Committed, Vec<LeasedDelivery>) {
    let request = LeaseRequest {
        limits,
        ..leases_at(commit.now)
    };
    commit_asking(store, commit, &request).await
}

async fn commit_asking(
    store: &Store,
    commit: &Commit<'_>,
    request: &LeaseRequest,
) -> (Committed, Vec<LeasedDelivery>) {
    let pending = store.commit_pending(commit, Some(request)).await;
    let pending = pending.expect("stores");
    pending.durable().await.expect("on the disk")
}

/// Leases on plenty, where the process holds nothing.
pub fn leases_at(now: Timestamp) -> LeaseRequest {
    LeaseRequest {
        now,
        until: now.after(LEASE),
        token: token(),
        limits: PLENTY,
        shares: TenantShares::unlimited(),
    }
}

/// The same, where it holds this.
fn leases_beside(holds: &[(Holder, Load)]) -> LeaseRequest {
    let mut held = Held::default();
    for (holder, load) in holds {
        held.add(*holder, *load);
    }
    let request = leases_at(NOW);
    let free = request.shares.left(Tenant::default());
    LeaseRequest {
        shares: TenantShares::new(free, held.into()),
        ..request
    }
}

async fn no_more_than_an_owner_asks_for_is_leased(fixture: &Fixture) {
    let store = &fixture.store;
    let mut new = webhook(1);
    new.definition.delivery.concurrency = Some(2);
    let id = store.create_webhook(&new, 1).await.expect("creates").id;
    let messages: Vec<_> = (1..=3).map(|number| message(&id, number)).collect();
    let (inserted, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&leased)), (3, vec![1, 2]));
    assert_eq!(leased[0].options.concurrency, Some(2));
}

async fn what_is_leased_on_insert_is_not_leased_again(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages = [message(&id, 1), message(&id, 2)];
    let (inserted, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&leased)), (2, vec![1, 2]));
    assert!(lease(store, NOW).await.is_empty());

    // It dies with the first; then both are due again, as they were.
    let again = lease(store, NOW.after(LEASE)).await;
    assert_eq!(sequences(&again), [1, 2]);
    for (first, second) in leased.iter().zip(&again) {
        assert_eq!(first.lease.id, second.lease.id);
        assert_eq!(first.url, second.url);
        assert_eq!(first.body, second.body);
        assert_eq!(first.kind, second.kind);
        assert_eq!(first.created, second.created);
        assert_eq!(
            first.secrets.current.expose(),
            second.secrets.current.expose()
        );
        assert_eq!((first.retry_index, first.probe), (0, false));
    }
    accept(store, &again).await;
    assert!(lease(store, NOW.after(LEASE).after(LEASE)).await.is_empty());
}

async fn what_is_due_already_goes_first(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let other = with_webhook(store, 2).await;
    let messages = [message(&id, 2), message(&other, 1)];
    let (_, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].lease.webhook, other, "it waits for nothing");
    assert_eq!(sequences(&lease(store, NOW).await), [1, 2], "in order");
    // What is under lease is not due.
    let (_, leased) = insert_leased(store, &[message(&id, 3)], NOW, PLENTY).await;
    assert_eq!(sequences(&leased), [3]);
}

async fn nothing_is_leased_for_an_endpoint_that_does_not_work(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let paused = Some(NOW.after(LEASE));
    let states = [
        EndpointState {
            breaker: Breaker::Open,
            ..EndpointState::default()
        },
        EndpointState {
            breaker: Breaker::HalfOpen,
            ..EndpointState::default()
        },
        EndpointState {
            paused_until: paused,
            ..EndpointState::default()
        },
    ];
    let mut number = 0;
    for state in states {
        number += 1;
        assert!(store.set_endpoint(&id, &state).await.expect("writes"));
        let (inserted, leased) = insert_leased(store, &[message(&id, number)], NOW, PLENTY).await;
        assert_eq!((inserted, leased.len()), (1, 0), "{state:?}");
        let works = EndpointState::default();
        assert!(store.set_endpoint(&id, &works).await.expect("writes"));
        accept(store, &lease(store, NOW).await).await;
    }
    let off = WebhookDefinition {
        active: false,
        ..definition()
    };
    let replaced = store.update_webhook(&Access::All, &id, &off, None).await;
    assert!(replaced.expect("writes").is_some());
    let (_, leased) = insert_leased(store, &[message(&id, 9)], NOW, PLENTY).await;
    assert!(leased.is_empty(), "it is switched off");
}

async fn no_more_than_the_lease_quota_is_leased(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, two) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let limits = LeaseLimits {
        bytes: u64::MAX,
        oversized: false,
        total: 4,
        quota: 3,
    };
    let of = |webhook, numbers: std::ops::RangeInclusive<u8>| -> Vec<NewMessage> {
        numbers.map(|number| message(webhook, number)).collect()
    };
    let both = [of(&one, 1..=5), of(&two, 1..=5)].concat();
    let (inserted, leased) = insert_leased(store, &both, NOW, limits).await;
    assert_eq!(inserted, 10);
    assert_eq!(sequences(&leased), [1, 2, 3, 1]);
    accept(store, &leased).await;

    // The others are due, and what is under lease counts.
    let rest = lease(store, NOW).await;
    assert_eq!(rest.len(), 6);
    accept(store, &rest[1..]).await;
    let state = EndpointState {
        concurrency_limit: Some(2),
        ..EndpointState::default()
    };
    for webhook in [&one, &two] {
        assert!(store.set_endpoint(webhook, &state).await.expect("writes"));
    }
    let leased = rest[0].lease.webhook.clone();
    let (_, leased) = insert_leased(store, &of(&leased, 6..=8), NOW, PLENTY).await;
    assert_eq!(leased.len(), 1, "two at once, and one is in flight");
}

async fn of_a_lane_only_the_first_is_leased(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::PerKey).await;
    let messages = [
        keyed(&id, 1, Some("a")),
        keyed(&id, 2, Some("a")),
        keyed(&id, 3, None),
    ];
    let (_, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!(sequences(&leased), [1, 3]);
    let in_order: Vec<_> = leased.iter().map(|each| each.lease.in_order).collect();
    assert_eq!(in_order, [true, false]);
    accept(store, &leased).await;
    let later = NOW.after(LEASE);
    assert_eq!(sequences(&lease(store, later).await), [2]);
}

async fn known_messages_are_not_leased_again(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let (_, leased) = insert_leased(store, &[message(&id, 1)], NOW, PLENTY).await;
    accept(store, &leased).await;
    let messages = [message(&id, 2), message(&id, 1), message(&id, 2)];
    let (inserted, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&leased)), (1, vec![2]), "no hole");
    assert_eq!(deliveries(store, &id).await.len(), 2);
}

async fn storing_and_recording_do_not_stop_each_other(fixture: &Fixture) {
    const ROUNDS: u8 = 100;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let (to_recorder, mut to_record) = mpsc::unbounded_channel();
    let storing = async {
        for number in 1..=ROUNDS {
            let (inserted, leased) =
                insert_leased(store, &[message(&id, number)], NOW, PLENTY).await;
            assert_eq!(inserted, 1);
            to_recorder
                .send(leased)
                .map_err(|_| "the recorder is gone")?;
        }
        drop(to_recorder);
        Ok::<_, &str>(())
    };
    let recording = async {
        let mut recorded = 0;
        while let Some(leased) = to_record.recv().await {
            recorded += leased.len();
            accept(store, &leased).await;
            let rest = lease(store, NOW).await;
            recorded += rest.len();
            accept(store, &rest).await;
        }
        Ok::<_, &str>(recorded)
    };
    let ((), recorded) = try_join!(storing, recording).expect("both end");
    assert_eq!(recorded, usize::from(ROUNDS));
}

/// Stores messages without leases; returns the webhooks that are to be looked at.
async fn insert_unleased(store: &Store, messages: &[NewMessage]) -> WebhookSet {
    let commit = Commit::slot(Commitment::Confirmed, 7, messages, NOW);
    store.commit(&commit).await.expect("stores").unleased
}

async fn the_webhooks_of_what_must_be_looked_for_are_named(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, two) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let unleased = insert_unleased(store, &[message(&one, 1)]).await;
    let request = leases_at(NOW);
    // Something is due to the first already, so its next message is not leased, and that of the second is.
    let messages = [message(&one, 2), message(&two, 1)];
    let commit = Commit::slot(Commitment::Confirmed, 8, &messages, NOW);
    let (committed, leased) = commit_asking(store, &commit, &request).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].lease.webhook, two);
    assert_eq!(committed.unleased, unleased, "the first alone");
    let found = store.lease_due_pending(Some(&committed.unleased), &request);
    let found = found.await.expect("leases").deliveries().await;
    assert_eq!(sequences(&found.expect("loads")), [1, 2]);
    // Where all are leased, and where all are known, there is nothing to look for.
    let commit = Commit::slot(Commitment::Confirmed, 9, &messages, NOW);
    let known = store.commit(&commit).await.expect("stores");
    assert_eq!((known.inserted(), known.unleased.is_empty()), (0, true));
}

/// Stores messages of which nothing can be leased; returns the webhooks that are to be looked at.
async fn unleased(store: &Store, request: &LeaseRequest, messages: &[NewMessage]) -> WebhookSet {
    let commit = Commit::slot(Commitment::Confirmed, 8, messages, request.now);
    let (committed, leased) = commit_asking(store, &commit, request).await;
    assert!(leased.is_empty());
    committed.unleased
}

async fn what_waits_for_the_end_of_a_pause_need_not_be_looked_for(fixture: &Fixture) {
    let store = &fixture.store;
    let (works, pauses) = (owing(store, 1).await, with_webhook(store, 2).await);
    let over = NOW.after(LEASE);
    for (number, breaker) in [(2, Breaker::Closed), (4, Breaker::Open)] {
        let state = EndpointState {
            breaker,
            paused_until: Some(over),
            ..EndpointState::default()
        };
        assert!(store.set_endpoint(&pauses, &state).await.expect("writes"));
        let now = leases_at(NOW);
        let alone = unleased(store, &now, &[message(&works, number)]).await;
        assert!(!alone.is_empty());
        let both = [message(&pauses, number), message(&works, number + 1)];
        assert_eq!(unleased(store, &now, &both).await, alone, "{breaker:?}");
    }
    // From the end of the pause on it is as of any other: here it waits behind what is due already.
    let then = leases_at(over);
    let behind = unleased(store, &then, &[message(&pauses, 9)]).await;
    let found = store.lease_due_pending(Some(&behind), &then);
    assert_eq!(found.await.expect("leases").loads().len(), 1, "one probe");
}

async fn what_waits_for_a_result_need_not_be_looked_for_before(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, two) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let limited = EndpointState {
        concurrency_limit: Some(1),
        ..EndpointState::default()
    };
    let [open, half_open] = [Breaker::Open, Breaker::HalfOpen].map(|breaker| EndpointState {
        breaker,
        ..EndpointState::default()
    });
    for (number, state) in [(1, open), (3, half_open), (5, limited)] {
        assert!(store.set_endpoint(&one, &state).await.expect("writes"));
        store_messages(store, &[message(&one, number)]).await;
        let first = store.lease_due_pending(None, &leases_at(NOW)).await;
        let first = first.expect("leases");
        let both = [message(&one, number + 1), message(&two, number)];
        let commit = Commit::slot(Commitment::Confirmed, 8, &both, NOW);
        let request = leases_beside(first.loads());
        let (committed, leased) = commit_asking(store, &commit, &request).await;
        assert!(committed.unleased.is_empty(), "{state:?}");
        assert_eq!(committed.is_staged, fixture.is_sqlite());
        let of_two = WebhookSet::from_iter([&leased[0].lease]);
        assert_eq!(leased[0].lease.webhook, two);
        accept(store, &leased).await;

        let first = first.deliveries().await.expect("loads");
        assert_eq!(committed.full, WebhookSet::from_iter([&first[0].lease]));
        assert_ne!(committed.full, of_two);
        accept(store, &first).await;
        let request = leases_at(NOW);
        let second = store.lease_due_pending(Some(&committed.full), &request);
        let second = second.await.expect("leases").deliveries().await;
        let second = second.expect("loads");
        assert_eq!(second.len(), 1);
        accept(store, &second).await;
    }
}

async fn a_result_that_was_recorded_since_the_leases_were_asked_for_makes_room(fixture: &Fixture) {
    let store = &fixture.store;
    let mut new = webhook(1);
    new.definition.delivery.concurrency = Some(1);
    let id = store.create_webhook(&new, 1).await.expect("creates").id;
    let (_, first) = insert_leased(store, &[message(&id, 1)], NOW, PLENTY).await;
    let request = leases_beside(&[(first[0].holder(), Load::of_one(1))]);
    accept(store, &first).await;
    let owed = [message(&id, 2)];
    let commit = Commit::slot(Commitment::Confirmed, 8, &owed, NOW);
    let (committed, leased) = commit_asking(store, &commit, &request).await;
    assert_eq!(sequences(&leased), [2]);
    assert!(committed.full.is_empty());
}

async fn what_is_due_and_cannot_be_leased_is_told(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let unleased = insert_unleased(store, &[message(&id, 1), message(&id, 2)]).await;
    let one_at_once = LeaseLimits { quota: 1, ..PLENTY };
    let request = LeaseRequest {
        limits: one_at_once,
        ..leases_at(NOW)
    };
    let first = store.lease_due_pending(Some(&unleased), &request).await;
    let first = first.expect("leases");
    assert_eq!(*first.due(), unleased);
    assert_eq!(first.deliveries().await.expect("loads").len(), 1);
    // The second is due, and the webhook has as many leased as it may.
    let second = store.lease_due_pending(Some(&unleased), &request).await;
    let second = second.expect("leases");
    assert_eq!(*second.due(), unleased);
    assert!(second.loads().is_empty());
    // To an endpoint that pauses nothing is due before the pause is over.
    let pauses = EndpointState {
        paused_until: Some(NOW.after(LEASE)),
        ..EndpointState::default()
    };
    assert!(store.set_endpoint(&id, &pauses).await.expect("writes"));
    let third = store.lease_due_pending(Some(&unleased), &request).await;
    assert!(third.expect("leases").due().is_empty());
}
