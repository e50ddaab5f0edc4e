//! Requested backfills: one of each kind for a webhook, by turns.

use std::{ops::RangeInclusive, time::Duration};

use sluice_store::{
    Access, Backfill, BackfillKind, BackfillRequest, BackfillState, BackfillTurn, Store,
    StoreError, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_backfill_is_one_of_its_kind_until_it_is_done,
    whoever_waits_longest_has_the_next_turn,
    a_tenant_with_many_backfills_has_one_turn_for_each_of_anothers,
    the_keyless_caller_has_turns_as_any_tenant_has,
    a_backfill_is_its_owners_alone_and_ends_with_its_webhook,
);

fn request(kind: BackfillKind, millis: u64) -> BackfillRequest {
    BackfillRequest {
        kind,
        first_slot: 5,
        last_slot: 9,
        now: NOW.after(Duration::from_millis(millis)),
    }
}

fn turn(next_slot: u64, state: BackfillState, millis: u64) -> BackfillTurn {
    BackfillTurn {
        next_slot,
        state,
        error: None,
        matched: 2,
        told: 1,
        lost: 0,
        samples: None,
        now: NOW.after(Duration::from_millis(millis)),
    }
}

async fn a_backfill_is_one_of_its_kind_until_it_is_done(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let ask = async |kind, millis| {
        let request = request(kind, millis);
        let asked = store.request_backfill(&Access::All, &id, &request).await;
        asked.map(|asked| asked.expect("exists"))
    };
    let read = async |kind| {
        let read = store.backfill(&Access::All, &id, kind).await;
        read.expect("reads")
    };
    assert_eq!(read(BackfillKind::Tell).await, None);
    let asked = ask(BackfillKind::Tell, 0).await.expect("is taken");
    assert_eq!((asked.next_slot, asked.state), (5, BackfillState::Pending));
    let again = ask(BackfillKind::Tell, 1).await;
    assert!(
        matches!(again, Err(StoreError::BackfillPending)),
        "{again:?}"
    );
    ask(BackfillKind::DryRun, 1).await.expect("is another kind");

    let half = turn(7, BackfillState::Pending, 2);
    store.record_backfill(&asked, &half).await.expect("records");
    let whole = BackfillTurn {
        samples: Some("[1]".to_owned()),
        lost: 3,
        ..turn(10, BackfillState::Done, 3)
    };
    store
        .record_backfill(&asked, &whole)
        .await
        .expect("records");
    let done = Backfill {
        next_slot: 10,
        state: BackfillState::Done,
        matched: 4,
        told: 2,
        lost: 3,
        samples: "[1]".to_owned(),
        ..asked.clone()
    };
    assert_eq!(read(BackfillKind::Tell).await, Some(done));

    let anew = ask(BackfillKind::Tell, 4).await.expect("is taken");
    assert_eq!((anew.matched, anew.samples.as_str()), (0, "[]"));
    // What is left of the one before counts no more.
    store
        .record_backfill(&asked, &whole)
        .await
        .expect("leaves it");
    assert_eq!(read(BackfillKind::Tell).await, Some(anew));
}

async fn whoever_waits_longest_has_the_next_turn(fixture: &Fixture) {
    let store = &fixture.store;
    let ids = [with_webhook(store, 1).await, with_webhook(store, 2).await];
    for (millis, id) in (0..).zip(&ids) {
        let request = request(BackfillKind::Tell, millis);
        let asked = store.request_backfill(&Access::All, id, &request).await;
        asked.expect("asks").expect("exists");
    }
    for (millis, owner) in (2..).zip([0, 1, 0, 1, 0]) {
        let next = store
            .next_backfill(None)
            .await
            .expect("reads")
            .expect("waits");
        assert_eq!(next.webhook, ids[owner], "turn {millis}");
        let turn = turn(6, BackfillState::Pending, millis);
        store.record_backfill(&next, &turn).await.expect("records");
    }
}

/// Asks for a backfill of each of these webhooks, which are created for their owner.
async fn asked_of(store: &Store, owner: &Access, numbers: RangeInclusive<u8>) -> Vec<WebhookId> {
    let mut ids = Vec::new();
    for number in numbers {
        let mut new = webhook(number);
        new.owner = owner.clone();
        let id = store.create_webhook(&new, 100).await.expect("created").id;
        let request = request(BackfillKind::Tell, u64::from(number));
        let asked = store.request_backfill(owner, &id, &request).await;
        asked.expect("asks").expect("exists");
        ids.push(id);
    }
    ids
}

/// Gives a turn to the backfill that comes after this webhook's; returns its webhook.
async fn take_turn(
    store: &Store,
    last: Option<&WebhookId>,
    millis: u64,
    state: BackfillState,
) -> WebhookId {
    let next = store.next_backfill(last).await;
    let next = next.expect("reads").expect("waits");
    let turn = turn(next.next_slot + 1, state, millis);
    store.record_backfill(&next, &turn).await.expect("records");
    next.webhook
}

async fn a_tenant_with_many_backfills_has_one_turn_for_each_of_anothers(fixture: &Fixture) {
    let store = &fixture.store;
    let (many, _) = with_key(store, 1, "many").await;
    let (one, _) = with_key(store, 2, "one").await;
    let theirs = asked_of(store, &Access::Key(many), 1..=10).await;
    let first = take_turn(store, None, 50, BackfillState::Pending).await;
    let its = asked_of(store, &Access::Key(one), 11..=11).await;
    // What had a turn waits for another one, or is over.
    let states = [
        BackfillState::Pending,
        BackfillState::Done,
        BackfillState::Pending,
        BackfillState::Failed,
        BackfillState::Done,
        BackfillState::Pending,
        BackfillState::Pending,
    ];
    let mut turns = vec![first];
    for (millis, state) in (100..).zip(states) {
        let turn = take_turn(store, turns.last(), millis, state).await;
        turns.push(turn);
    }
    let [first, second, third, fourth, fifth] = &theirs[..5] else {
        panic!("there are ten");
    };
    let its = &its[0];
    let expected = [first, its, second, its, third, its, fourth, fifth];
    assert_eq!(turns.iter().collect::<Vec<_>>(), expected);
}

async fn the_keyless_caller_has_turns_as_any_tenant_has(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, _) = with_key(store, 1, "one").await;
    let (other, _) = with_key(store, 2, "other").await;
    let (one, other) = (Access::Key(one), Access::Key(other));
    let of_one = asked_of(store, &one, 1..=3).await;
    let of_none = asked_of(store, &Access::All, 4..=5).await;
    let of_other = asked_of(store, &other, 6..=6).await;
    let mut turns = Vec::new();
    for millis in 100..109 {
        let turn = take_turn(store, turns.last(), millis, BackfillState::Pending).await;
        turns.push(turn);
    }
    let in_round = |round: usize, webhook| turns[3 * round..3 * round + 3].contains(webhook);
    for round in 0..3 {
        assert!(in_round(round, &of_one[round]), "{round}: {turns:?}");
        assert!(in_round(round, &of_none[round % 2]), "{round}: {turns:?}");
        assert!(in_round(round, &of_other[0]), "{round}: {turns:?}");
    }
}

async fn a_backfill_is_its_owners_alone_and_ends_with_its_webhook(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, _) = with_key(store, 1, "one").await;
    let (other, _) = with_key(store, 2, "other").await;
    let (one, other) = (Access::Key(one), Access::Key(other));
    let mut new = webhook(1);
    new.owner = one.clone();
    let id = store.create_webhook(&new, 9).await.expect("created").id;
    let request = request(BackfillKind::Tell, 0);
    let strange = store.request_backfill(&other, &id, &request).await;
    assert_eq!(strange.expect("asks"), None);
    store
        .request_backfill(&one, &id, &request)
        .await
        .expect("asks")
        .expect("exists");
    let seen = async |access| {
        let read = store.backfill(access, &id, BackfillKind::Tell).await;
        read.expect("reads").is_some()
    };
    assert!(seen(&one).await && !seen(&other).await);
    store.delete_webhook(&one, &id).await.expect("deletes");
    assert!(!seen(&one).await);
    assert_eq!(store.next_backfill(None).await.expect("reads"), None);
}
