//! Messages that are delivered by whoever stores them.

use sluice_store::{
    Access, Breaker, Claim, ClaimLimits, ClaimedDelivery, Commit, Commitment, DeliveryOrder,
    EndpointState, NewMessage, Store, Timestamp, WebhookDefinition,
};
use tokio::{sync::mpsc, try_join};

use crate::{fixture::*, on_both};

on_both!(
    what_is_handed_over_is_claimed_by_nobody_else,
    what_is_due_already_goes_first,
    a_receiver_that_does_not_work_is_handed_nothing,
    nobody_is_handed_more_than_a_share,
    of_a_lane_only_the_first_is_handed_over,
    known_messages_are_not_handed_over_again,
    storing_and_recording_do_not_stop_each_other,
);

async fn hand_over(
    store: &Store,
    messages: &[NewMessage],
    now: Timestamp,
    limits: ClaimLimits,
) -> (u64, Vec<ClaimedDelivery>) {
    let claim = Claim {
        now,
        until: now.after(LEASE),
        lease: lease(),
        limits,
    };
    let commit = Commit::slot(Commitment::Confirmed, 7, messages, now);
    let staged = store
        .commit_pending(&commit, Some(claim))
        .await
        .expect("stores");
    let (committed, claimed) = staged.durable().await.expect("on the disk");
    (committed.inserted, claimed)
}

async fn what_is_handed_over_is_claimed_by_nobody_else(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages = [message(&id, 1), message(&id, 2)];
    let (inserted, handed) = hand_over(store, &messages, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&handed)), (2, vec![1, 2]));
    assert!(claim(store, NOW).await.is_empty());

    // It dies with the first; then both are due again, as they were.
    let again = claim(store, NOW.after(LEASE)).await;
    assert_eq!(sequences(&again), [1, 2]);
    for (first, second) in handed.iter().zip(&again) {
        assert_eq!(first.ticket.id, second.ticket.id);
        assert_eq!(first.ticket.url, second.ticket.url);
        assert_eq!(first.body, second.body);
        assert_eq!(first.kind, second.kind);
        assert_eq!(first.created, second.created);
        assert_eq!(
            first.secrets.current.expose(),
            second.secrets.current.expose()
        );
        assert_eq!((first.attempts_before, first.probe), (0, false));
    }
    accept(store, &again).await;
    assert!(claim(store, NOW.after(LEASE).after(LEASE)).await.is_empty());
}

async fn what_is_due_already_goes_first(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let other = with_webhook(store, 2).await;
    let messages = [message(&id, 2), message(&other, 1)];
    let (_, handed) = hand_over(store, &messages, NOW, PLENTY).await;
    assert_eq!(handed.len(), 1);
    assert_eq!(handed[0].ticket.webhook, other, "it waits for nothing");
    assert_eq!(sequences(&claim(store, NOW).await), [1, 2], "in order");
    // What is under lease is not due.
    let (_, handed) = hand_over(store, &[message(&id, 3)], NOW, PLENTY).await;
    assert_eq!(sequences(&handed), [3]);
}

async fn a_receiver_that_does_not_work_is_handed_nothing(fixture: &Fixture) {
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
        let (inserted, handed) = hand_over(store, &[message(&id, number)], NOW, PLENTY).await;
        assert_eq!((inserted, handed.len()), (1, 0), "{state:?}");
        let works = EndpointState::default();
        assert!(store.set_endpoint(&id, &works).await.expect("writes"));
        accept(store, &claim(store, NOW).await).await;
    }
    let off = WebhookDefinition {
        active: false,
        ..definition()
    };
    let replaced = store.update_webhook(&Access::All, &id, &off, None).await;
    assert!(replaced.expect("writes").is_some());
    let (_, handed) = hand_over(store, &[message(&id, 9)], NOW, PLENTY).await;
    assert!(handed.is_empty(), "it is switched off");
}

async fn nobody_is_handed_more_than_a_share(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, two) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let limits = ClaimLimits {
        total: 4,
        per_webhook: 3,
    };
    let of = |webhook, numbers: std::ops::RangeInclusive<u8>| -> Vec<NewMessage> {
        numbers.map(|number| message(webhook, number)).collect()
    };
    let both = [of(&one, 1..=5), of(&two, 1..=5)].concat();
    let (inserted, handed) = hand_over(store, &both, NOW, limits).await;
    assert_eq!(inserted, 10);
    assert_eq!(sequences(&handed), [1, 2, 3, 1]);
    accept(store, &handed).await;

    // The others are due, and what is under lease counts.
    let rest = claim(store, NOW).await;
    assert_eq!(rest.len(), 6);
    accept(store, &rest[1..]).await;
    let state = EndpointState {
        concurrency_limit: Some(2),
        ..EndpointState::default()
    };
    for webhook in [&one, &two] {
        assert!(store.set_endpoint(webhook, &state).await.expect("writes"));
    }
    let leased = rest[0].ticket.webhook.clone();
    let (_, handed) = hand_over(store, &of(&leased, 6..=8), NOW, PLENTY).await;
    assert_eq!(handed.len(), 1, "two at once, and one is under way");
}

async fn of_a_lane_only_the_first_is_handed_over(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_order(store, 1, DeliveryOrder::PerKey).await;
    let messages = [
        keyed(&id, 1, Some("a")),
        keyed(&id, 2, Some("a")),
        keyed(&id, 3, None),
    ];
    let (_, handed) = hand_over(store, &messages, NOW, PLENTY).await;
    assert_eq!(sequences(&handed), [1, 3]);
    let in_order: Vec<_> = handed.iter().map(|each| each.ticket.in_order).collect();
    assert_eq!(in_order, [true, false]);
    accept(store, &handed).await;
    let later = NOW.after(LEASE);
    assert_eq!(sequences(&claim(store, later).await), [2]);
}

async fn known_messages_are_not_handed_over_again(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let (_, handed) = hand_over(store, &[message(&id, 1)], NOW, PLENTY).await;
    accept(store, &handed).await;
    let messages = [message(&id, 2), message(&id, 1), message(&id, 2)];
    let (inserted, handed) = hand_over(store, &messages, NOW, PLENTY).await;
    assert_eq!((inserted, sequences(&handed)), (1, vec![2]), "no hole");
    assert_eq!(deliveries(store, &id).await.len(), 2);
}

async fn storing_and_recording_do_not_stop_each_other(fixture: &Fixture) {
    const ROUNDS: u8 = 100;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let (handed, mut to_record) = mpsc::unbounded_channel();
    let storing = async {
        for number in 1..=ROUNDS {
            let (inserted, claimed) = hand_over(store, &[message(&id, number)], NOW, PLENTY).await;
            assert_eq!(inserted, 1);
            handed.send(claimed).map_err(|_| "nobody records")?;
        }
        drop(handed);
        Ok::<_, &str>(())
    };
    let recording = async {
        let mut recorded = 0;
        while let Some(claimed) = to_record.recv().await {
            recorded += claimed.len();
            accept(store, &claimed).await;
            let rest = claim(store, NOW).await;
            recorded += rest.len();
            accept(store, &rest).await;
        }
        Ok::<_, &str>(recorded)
    };
    let ((), recorded) = try_join!(storing, recording).expect("both end");
    assert_eq!(recorded, usize::from(ROUNDS));
}
