//! Commits of a slot: messages, sequences, checkpoints, unconfirmed slots.

use sluice_store::{
    Access, AccountGap, Checkpoints, Commit, Commitment, KnownAccount, KnownAccountChanges,
    MessageKind, StoreError, UnconfirmedSlots,
};
use solana_pubkey::Pubkey;

use crate::{fixture::*, on_both};

on_both!(
    sequences_are_contiguous_per_webhook_and_replay_changes_nothing,
    messages_of_a_deleted_webhook_are_skipped_and_do_not_block_the_slot,
    checkpoints_never_move_back,
    a_slot_that_cannot_be_stored_leaves_no_trace,
    unconfirmed_slots_are_kept_until_they_are_resolved,
    a_large_slot_is_stored_whole,
    an_account_gap_is_kept_from_its_first_slot_on_until_it_is_forgotten,
    known_accounts_are_kept_with_the_commit_that_changed_them,
);

async fn sequences_are_contiguous_per_webhook_and_replay_changes_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    let (first, second) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let slot_7 = [message(&first, 1), message(&second, 1), message(&first, 2)];
    assert_eq!(store_messages(store, &slot_7).await, 3);
    let before = lease(store, NOW).await;

    // A replay that overlaps: one known message, one new, and that one twice.
    let again = [message(&first, 2), message(&first, 3), message(&first, 3)];
    assert_eq!(store_messages(store, &again).await, 1);
    assert_eq!(store_messages(store, &again).await, 0);
    assert_eq!(store_messages(store, &[message(&first, 4)]).await, 1);

    let page = store.messages_after(&Access::All, &first, 0, 10).await;
    let page = page.expect("reads").expect("exists");
    let numbers: Vec<_> = page.messages.iter().map(|each| each.sequence).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!((page.last_sequence, page.oldest_kept), (4, Some(1)));
    let page = store.messages_after(&Access::All, &second, 0, 10).await;
    assert_eq!(page.expect("reads").expect("exists").messages.len(), 1);
    let bodies: Vec<_> = before
        .iter()
        .filter(|each| each.lease.webhook == first)
        .map(|each| &each.body[..14])
        .collect();
    assert_eq!(bodies, ["{\"sequence\":1,", "{\"sequence\":2,"]);
}

async fn messages_of_a_deleted_webhook_are_skipped_and_do_not_block_the_slot(fixture: &Fixture) {
    let store = &fixture.store;
    let (gone, stays) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    store_messages(store, &[message(&gone, 9)]).await;
    store
        .delete_webhook(&Access::All, &gone)
        .await
        .expect("deletes");
    assert_eq!(pending(store).await, 0, "its messages go with it");
    let messages = [message(&gone, 1), message(&stays, 1)];
    assert_eq!(store_messages(store, &messages).await, 1);
}

async fn checkpoints_never_move_back(fixture: &Fixture) {
    let store = &fixture.store;
    let checkpoint = async |commitment| store.checkpoint(commitment).await.expect("reads");
    assert_eq!(checkpoint(Commitment::Confirmed).await, None);
    let move_to = async |commitment, slot| {
        let commit = Commit::slot(commitment, slot, &[], NOW);
        let committed = store.commit(&commit).await.expect("commits");
        committed.checkpoints.slot(commitment)
    };
    assert_eq!(move_to(Commitment::Confirmed, 10).await, Some(10));
    assert_eq!(move_to(Commitment::Confirmed, 9).await, Some(10));
    assert_eq!(move_to(Commitment::Finalized, 3).await, Some(3));
    assert_eq!(checkpoint(Commitment::Confirmed).await, Some(10));
    assert_eq!(checkpoint(Commitment::Finalized).await, Some(3));
    assert_eq!(checkpoint(Commitment::Processed).await, None);

    let mut both = Checkpoints::at(Commitment::Confirmed, 12);
    both.advance(Commitment::Finalized, 2);
    let commit = Commit {
        checkpoints: both,
        ..Commit::messages(&[], NOW)
    };
    let moved = store.commit(&commit).await.expect("commits").checkpoints;
    let moved: Vec<_> = moved.iter().collect();
    assert_eq!(
        moved,
        [(Commitment::Confirmed, 12), (Commitment::Finalized, 3)]
    );
    assert_eq!(checkpoint(Commitment::Confirmed).await, Some(12));
    assert_eq!(checkpoint(Commitment::Finalized).await, Some(3));
}

async fn a_slot_that_cannot_be_stored_leaves_no_trace(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let mut too_large = message(&id, 2);
    too_large.slot = u64::MAX;
    let messages = [message(&id, 1), too_large];
    let failed = store
        .commit(&Commit::slot(Commitment::Confirmed, 7, &messages, NOW))
        .await;
    assert!(matches!(failed, Err(StoreError::OutOfRange { .. })));
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("reads"), None);
    assert_eq!(pending(store).await, 0);
    store_messages(store, &[message(&id, 1)]).await;
    assert_eq!(
        deliveries(store, &id).await[0].sequence,
        1,
        "the number 1 is still free"
    );
}

async fn unconfirmed_slots_are_kept_until_they_are_resolved(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let mut emitted = message(&id, 1);
    emitted.commitment = Commitment::Processed;
    let mut confirmed = message(&id, 2);
    confirmed.slot = 7;
    let slots = |of: &[(u64, Option<&str>)]| -> UnconfirmedSlots {
        let named = of
            .iter()
            .map(|(slot, hash)| (*slot, hash.map(str::to_owned)));
        named.collect()
    };
    let commit = |messages, unconfirmed, resolved| Commit {
        unconfirmed,
        resolved,
        ..Commit::messages(messages, NOW)
    };
    let messages = [emitted.clone(), confirmed];
    let unconfirmed = slots(&[(7, None), (8, Some("hash"))]);
    store
        .commit(&commit(&messages, &unconfirmed, &[]))
        .await
        .expect("commits");
    let named = slots(&[(7, Some("seven")), (8, None)]);
    store
        .commit(&commit(&[], &named, &[]))
        .await
        .expect("commits");
    assert_eq!(
        store.unconfirmed_slots().await.expect("reads"),
        slots(&[(7, Some("seven")), (8, Some("hash"))])
    );
    let of_slot = store
        .messages_of_slot(7, Commitment::Processed)
        .await
        .expect("reads");
    assert_eq!(of_slot.len(), 1, "the confirmed one cannot be reverted");
    assert_eq!((&of_slot[0].id, of_slot[0].sequence), (&emitted.id, 1));

    let mut reverted = message(&id, 3);
    reverted.kind = MessageKind::Reverted;
    reverted.commitment = Commitment::Processed;
    let committed = store
        .commit(&commit(&[reverted], &slots(&[]), &[7]))
        .await
        .expect("commits");
    assert_eq!(committed.inserted(), 1);
    assert_eq!(committed.checkpoints, Checkpoints::NONE);
    let left = store.unconfirmed_slots().await.expect("reads");
    assert_eq!(left, slots(&[(8, Some("hash"))]));
    let kinds: Vec<_> = store
        .messages_of_slot(7, Commitment::Processed)
        .await
        .expect("reads");
    assert_eq!(kinds[1].kind, MessageKind::Reverted);
}

async fn a_large_slot_is_stored_whole(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages: Vec<_> = (0..1_000_u16)
        .map(|number| {
            let mut message = message(&id, 0);
            let mut digest = [0; 32];
            digest[..2].copy_from_slice(&number.to_le_bytes());
            message.id = sluice_store::MessageId::from_bytes(digest);
            message
        })
        .collect();
    assert_eq!(store_messages(store, &messages).await, 1_000);
    assert_eq!(store_messages(store, &messages).await, 0);
    let all = deliveries(store, &id).await;
    assert!(
        all.iter()
            .zip(&messages)
            .all(|(stored, message)| stored.id == message.id),
        "in the order given"
    );
    assert_eq!(all.last().expect("1000").sequence, 1_000);
}

async fn an_account_gap_is_kept_from_its_first_slot_on_until_it_is_forgotten(fixture: &Fixture) {
    let store = &fixture.store;
    assert_eq!(store.account_gaps().await.expect("reads"), []);
    let gap = |commitment, first_slot| AccountGap {
        commitment,
        first_slot,
    };
    let confirmed = gap(Commitment::Confirmed, 7);
    let finalized = gap(Commitment::Finalized, 3);
    for noted in [confirmed, finalized, gap(Commitment::Confirmed, 9)] {
        store.note_account_gap(noted).await.expect("stored");
    }
    assert_eq!(
        store.account_gaps().await.expect("reads"),
        [confirmed, finalized]
    );
    store
        .forget_account_gap(Commitment::Confirmed)
        .await
        .expect("stored");
    assert_eq!(store.account_gaps().await.expect("reads"), [finalized]);
}

async fn known_accounts_are_kept_with_the_commit_that_changed_them(fixture: &Fixture) {
    let store = &fixture.store;
    let known = |byte, since_slot, left_slot| KnownAccount {
        address: Pubkey::new_from_array([byte; 32]),
        since_slot,
        owner: Pubkey::new_from_array([100; 32]),
        left_slot,
    };
    let kept = async |changes: &KnownAccountChanges| {
        let commit = Commit {
            known_accounts: Some(changes),
            ..Commit::slot(Commitment::Confirmed, 9, &[], NOW)
        };
        store.commit(&commit).await.expect("commits");
        store.known_accounts().await.expect("reads")
    };
    let mut changes = KnownAccountChanges::default();
    changes.write(known(1, 7, None));
    changes.write(known(1, 7, Some(8)));
    changes.write(known(1, 9, None));
    changes.write(known(2, 9, None));
    let mut expected = [known(1, 7, Some(8)), known(1, 9, None), known(2, 9, None)];
    expected.sort_by_key(|known| (known.address.to_string(), known.since_slot));
    assert_eq!(kept(&changes).await, expected);

    let mut changes = KnownAccountChanges::default();
    changes.write(known(2, 9, Some(12)));
    changes.forget(known(1, 7, None).address, 7);
    changes.forget(known(3, 7, None).address, 7);
    let mut expected = [known(1, 9, None), known(2, 9, Some(12))];
    expected.sort_by_key(|known| (known.address.to_string(), known.since_slot));
    assert_eq!(kept(&changes).await, expected);
}
