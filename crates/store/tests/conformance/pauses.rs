//! Pauses: a webhook that was switched off is told which slots it did not watch.

use std::{slice, time::Duration};

use sluice_store::{
    Access, Commit, Commitment, Outcome, Pause, Store, WebhookDefinition, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_webhook_is_told_of_the_slots_after_the_checkpoint_at_which_it_was_created_or_switched_on_last,
    a_pause_is_kept_from_when_a_webhook_is_switched_off_until_it_was_told_of_it,
    a_pause_that_no_slot_passed_and_one_before_the_first_slot_are_none,
    what_was_told_of_twice_paused_slots_is_one_pause,
    an_endpoint_that_is_gone_and_a_key_that_is_revoked_pause_too,
    a_webhook_with_heartbeats_is_known_as_paused_until_it_was_told_of_the_pause,
);

async fn reach(store: &Store, slot: u64) {
    for commitment in [Commitment::Confirmed, Commitment::Finalized] {
        // Finality is five slots behind.
        let behind = if commitment == Commitment::Finalized {
            5
        } else {
            0
        };
        let commit = Commit::slot(commitment, slot - behind, &[], NOW);
        store.commit(&commit).await.expect("commits");
    }
}

async fn switch(store: &Store, id: &WebhookId, active: bool) {
    let definition = WebhookDefinition {
        active,
        ..definition()
    };
    let updated = store.update_webhook(&Access::All, id, &definition, None);
    updated.await.expect("updates").expect("exists");
}

async fn pauses(store: &Store) -> Vec<(u64, u64)> {
    let pauses = store.ended_pauses().await.expect("reads");
    let slots = |pause: Pause| (pause.first_slot, pause.last_slot);
    pauses.into_iter().map(slots).collect()
}

async fn a_webhook_is_told_of_the_slots_after_the_checkpoint_at_which_it_was_created_or_switched_on_last(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let first_slots = async || -> Vec<Option<u64>> {
        let active = store.active_webhooks().await.expect("reads");
        let each = active.webhooks.iter();
        each.map(|webhook| webhook.first_slot).collect()
    };
    let earliest = with_webhook(store, 1).await;
    assert_eq!(first_slots().await, [None], "no slot was read before");
    reach(store, 10).await;
    with_webhook(store, 2).await;
    assert_eq!(first_slots().await, [None, Some(11)]);
    switch(store, &earliest, false).await;
    reach(store, 20).await;
    switch(store, &earliest, true).await;
    assert_eq!(first_slots().await, [Some(21), Some(11)]);
}

async fn a_pause_is_kept_from_when_a_webhook_is_switched_off_until_it_was_told_of_it(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    reach(store, 10).await;
    switch(store, &id, false).await;
    reach(store, 20).await;
    assert_eq!(pauses(store).await, [], "it is still off");
    switch(store, &id, true).await;
    reach(store, 30).await;
    let told = store.ended_pauses().await.expect("reads");
    let pause = Pause {
        webhook: id.clone(),
        commitment: Commitment::Confirmed,
        first_slot: 11,
        last_slot: 20,
    };
    assert_eq!(told, slice::from_ref(&pause));
    let other = fixture.another().await;
    assert_eq!(pauses(&other).await, [(11, 20)]);
    store.forget_pause(&pause).await.expect("forgets");
    assert_eq!(pauses(store).await, []);
    // Switched off by an update that changes something else as well, at another commitment.
    let finalized = WebhookDefinition {
        commitment: Commitment::Finalized,
        ..definition()
    };
    let update = async |definition: &WebhookDefinition| {
        let updated = store.update_webhook(&Access::All, &id, definition, None);
        updated.await.expect("updates").expect("exists");
    };
    update(&finalized).await;
    let off = WebhookDefinition {
        active: false,
        ..finalized.clone()
    };
    update(&off).await;
    reach(store, 40).await;
    update(&finalized).await;
    assert_eq!(pauses(store).await, [(26, 40)], "what was not final");
}

async fn a_pause_that_no_slot_passed_and_one_before_the_first_slot_are_none(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    switch(store, &id, false).await;
    reach(store, 10).await;
    switch(store, &id, true).await;
    assert_eq!(pauses(store).await, []);
    switch(store, &id, false).await;
    switch(store, &id, true).await;
    assert_eq!(pauses(store).await, []);
}

async fn what_was_told_of_twice_paused_slots_is_one_pause(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    reach(store, 10).await;
    switch(store, &id, false).await;
    reach(store, 20).await;
    switch(store, &id, true).await;
    let told = store.ended_pauses().await.expect("reads");
    switch(store, &id, false).await;
    store.forget_pause(&told[0]).await.expect("leaves it");
    reach(store, 30).await;
    assert_eq!(pauses(store).await, []);
    switch(store, &id, true).await;
    assert_eq!(pauses(store).await, [(11, 30)]);
}

async fn an_endpoint_that_is_gone_and_a_key_that_is_revoked_pause_too(fixture: &Fixture) {
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "tenant").await;
    let mut new = webhook(1);
    new.owner = Access::Key(key.clone());
    let gone = store.create_webhook(&new, 9).await.expect("created").id;
    let mut new = webhook(2);
    new.owner = Access::Key(key.clone());
    let revoked = store.create_webhook(&new, 9).await.expect("created").id;
    reach(store, 10).await;
    store_messages(store, &[message(&gone, 1)]).await;
    let leased = lease(store, NOW).await;
    let outcome = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    record(store, &leased[0], 410, outcome).await;
    reach(store, 20).await;
    store
        .revoke_api_key(key.as_str(), NOW)
        .await
        .expect("revokes");
    reach(store, 30).await;
    switch(store, &gone, true).await;
    switch(store, &revoked, true).await;
    assert_eq!(pauses(store).await, [(11, 30), (21, 30)]);
}

async fn a_webhook_with_heartbeats_is_known_as_paused_until_it_was_told_of_the_pause(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let write = async |id: &WebhookId, active: bool| {
        let definition = WebhookDefinition {
            active,
            heartbeat: Some(Duration::from_secs(60)),
            ..definition()
        };
        let updated = store.update_webhook(&Access::All, id, &definition, None);
        updated.await.expect("updates").expect("exists");
    };
    let paused = async || {
        let paused = store.paused_with_heartbeat().await.expect("reads");
        paused.into_iter().collect::<Vec<_>>()
    };
    let (id, deleted) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let without = with_webhook(store, 3).await;
    write(&id, true).await;
    reach(store, 10).await;
    assert_eq!(paused().await, []);
    write(&deleted, false).await;
    let gone = store.delete_webhook(&Access::All, &deleted).await;
    assert!(gone.expect("deletes"));
    switch(store, &without, false).await;
    write(&id, false).await;
    assert_eq!(paused().await, slice::from_ref(&id), "it is off");
    reach(store, 20).await;
    write(&id, true).await;
    switch(store, &without, true).await;
    assert_eq!(paused().await, slice::from_ref(&id), "it was not told");
    for pause in store.ended_pauses().await.expect("reads") {
        store.forget_pause(&pause).await.expect("forgets");
    }
    assert_eq!(paused().await, []);
}
