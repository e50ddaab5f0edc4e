//! Filter of the stream: follows the webhooks without a missed event.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sluice_geyser::{
    SlotStatus, Update,
    scripted::{Code, Connection},
};
use sluice_store::{Access, Filters, OperationKind, Revision, WebhookId};

use sluice_harness::indexer::{IndexerHarness, request, send, soon};
use sluice_testkit::updates::{
    account, account_of, block, content, created, freeze_and_confirm, key, program, slot, whole,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    a_new_webhook_gets_the_slots_between_its_write_and_its_filter,
    a_webhook_less_narrows_the_live_stream,
    a_crash_between_the_new_filter_and_the_slots_it_replays_repeats_them,
    what_a_new_webhook_misses_of_the_open_slot_comes_by_the_side_stream,
    a_key_that_a_webhook_adds_to_others_is_replayed_alone,
    without_replay_the_first_whole_slot_is_answered,
    a_side_stream_that_breaks_off_is_opened_again,
    a_filter_that_the_server_refuses_is_reported_to_its_webhook_and_disturbs_no_other,
    webhooks_that_are_refused_at_the_start_are_found,
);

/// Serves the stream on which a new filter is tried.
async fn probe(harness: &mut IndexerHarness) {
    let (connection, tried) = harness.accept().await;
    assert_eq!(tried.from_slot, None);
    let name = tried.slots.expect("always");
    send(&connection, [slot(&name, 10, SlotStatus::Completed)]).await;
}

/// The filter of this name, which a request writes with its generation behind.
fn named<'a, F>(filters: &'a BTreeMap<String, F>, name: &str) -> &'a F {
    let found = filters.iter().find(|(full, _)| full.starts_with(name));
    found.expect("is asked for").1
}

/// Sends what a connection still wants: a side stream is closed once it is not needed.
async fn send_while_there(connection: &Connection, updates: impl IntoIterator<Item = Update>) {
    for update in updates {
        // The client is gone.
        let _ = soon(connection.send(update)).await;
    }
}

async fn a_new_webhook_gets_the_slots_between_its_write_and_its_filter(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    send(&live, whole(&old, 11)).await;
    send(&live, freeze_and_confirm(&old, 11)).await;
    harness.bodies(3).await;
    indexer.until_checkpoint(11).await;

    let second = harness.webhook(2).await;
    probe(&mut harness).await;
    // Until its filter is there, slots go on under the old one.
    send(&live, whole(&old, 12)).await;
    send(&live, freeze_and_confirm(&old, 12)).await;
    let replaced = request(&mut live).await;
    assert_eq!(replaced.from_slot, None, "the live stream goes on");
    let new = replaced.slots.expect("always");
    assert_ne!(new, old);
    let (side, replayed) = harness.accept().await;
    assert_eq!(replayed.from_slot, Some(12), "replayed for the new one");
    assert_eq!(named(&replayed.accounts, "owners").owners, [program()]);
    let of_transactions = named(&replayed.transactions, "transactions");
    assert_eq!(of_transactions.account_include, [program()]);
    let of_side = replayed.slots.expect("always");
    send(&live, whole(&new, 13)).await;
    send(&live, freeze_and_confirm(&new, 13)).await;
    for number in [12, 13] {
        send_while_there(&side, whole(&of_side, number)).await;
        send_while_there(&side, freeze_and_confirm(&of_side, number)).await;
    }
    let bodies = harness.bodies(3 + 3 + 3 + 6).await;
    let of_second: Vec<_> = bodies
        .iter()
        .filter(|body| body["webhookId"] == second.as_str())
        .map(|body| (body["slot"].as_u64(), body["sequence"].as_u64()))
        .collect();
    let expected: Vec<_> = [12, 12, 12, 13, 13, 13]
        .into_iter()
        .zip(1..)
        .map(|(slot, sequence)| (Some(slot), Some(sequence)))
        .collect();
    assert_eq!(of_second, expected);

    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 12);
    let change = harness
        .store
        .filter_change(Revision(2))
        .await
        .expect("read");
    let change = change.expect("known");
    assert_eq!(change.requested_slot, Some(12));
    assert_eq!(change.in_force_slot, Some(12));
    indexer.stop().await;
}

async fn a_webhook_less_narrows_the_live_stream(mut harness: IndexerHarness) {
    let id = harness.webhook(1).await;
    let indexer = harness.start().await;
    let (mut connection, old) = harness.listening().await;
    indexer
        .until_ready(|_, body| body["checkpoint"] == 10 && body["filter"]["inForceRevision"] == 1)
        .await;
    send(&connection, [slot(&old, 12, SlotStatus::CreatedBank)]).await;

    let deleted = harness.store.delete_webhook(&Access::All, &id).await;
    assert!(deleted.expect("written"));
    let narrowed = request(&mut connection).await;
    assert_eq!(narrowed.from_slot, None);
    assert!(narrowed.transactions.is_empty() && narrowed.accounts.is_empty());
    let new = narrowed.slots.expect("always");
    assert_ne!(new, old);

    send(&connection, whole(&old, 11)).await;
    send(&connection, freeze_and_confirm(&old, 11)).await;
    let body = indexer.until_checkpoint(11).await;
    assert_eq!(
        (
            &body["filter"]["wantedRevision"],
            &body["filter"]["inForceRevision"]
        ),
        (&2.into(), &1.into()),
        "not in force by an update of the old filter"
    );
    send(&connection, [slot(&new, 12, SlotStatus::Completed)]).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(
        body["filter"]["inForceSinceSlot"], 13,
        "slot 12's content may have passed the old filter"
    );
    harness.bodies(0).await;
    indexer.stop().await;
}

async fn a_crash_between_the_new_filter_and_the_slots_it_replays_repeats_them(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    harness.webhook(2).await;
    probe(&mut harness).await;
    // The checkpoint passes the slot from which on the second must miss nothing.
    send(&live, whole(&old, 11)).await;
    send(&live, freeze_and_confirm(&old, 11)).await;
    indexer.until_checkpoint(11).await;
    let new = request(&mut live).await.slots.expect("always");
    let (side, replayed) = harness.accept().await;
    assert_eq!(replayed.from_slot, Some(11));
    let shown = slot(&new, 14, SlotStatus::FirstShredReceived);
    send(&live, [shown]).await;
    indexer.until_ready(|_, body| body["slot"] == 14).await;
    indexer.kill().await;
    drop((live, side));

    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert_eq!(
        request.from_slot,
        Some(11),
        "not in force by the name alone"
    );
    let name = request.slots.expect("always");
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    harness.bodies(6).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 11);
    indexer.stop().await;
}

async fn what_a_new_webhook_misses_of_the_open_slot_comes_by_the_side_stream(
    mut harness: IndexerHarness,
) {
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, [slot(&old, 11, SlotStatus::CreatedBank)]).await;
    harness.webhook(1).await;
    probe(&mut harness).await;
    let new = request(&mut live).await.slots.expect("always");
    let (side, replayed) = harness.accept().await;
    let of_side = replayed.slots.expect("always");
    // The write came before the filter, the rest of the slot after it.
    let [account, transaction, block] = content(11);
    send(&live, [transaction.clone(), block.clone()]).await;
    send(&live, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
    send(&live, freeze_and_confirm(&new, 11)).await;
    send(&side, [created(&of_side, 11), account, transaction, block]).await;
    send_while_there(&side, [slot(&of_side, 11, SlotStatus::Processed)]).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 1)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 11);
    harness.bodies(3).await;
    indexer.stop().await;
}

async fn a_key_that_a_webhook_adds_to_others_is_replayed_alone(mut harness: IndexerHarness) {
    let mut definition = harness.definition();
    definition.filters = Filters {
        accounts: vec![key(1), key(2)],
        ..Filters::default()
    };
    let id = harness.create(1, definition.clone()).await;
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, [created(&old, 11), account(11)]).await;
    definition.filters.accounts.push(key(7));
    let store = &harness.store;
    let edited = store.update_webhook(&Access::All, &id, &definition, None);
    edited.await.expect("written").expect("exists");
    probe(&mut harness).await;
    let replaced = request(&mut live).await;
    let accounts = named(&replaced.accounts, "accounts");
    assert_eq!(accounts.pubkeys, [key(1), key(2), key(7)]);
    let (side, replayed) = harness.accept().await;
    assert_eq!(replayed.from_slot, Some(11));
    assert_eq!(replayed.accounts.len(), 1);
    assert_eq!(named(&replayed.accounts, "accounts").pubkeys, [key(7)]);
    assert_eq!(replayed.transactions.len(), 1);
    let of_transactions = named(&replayed.transactions, "transactions");
    assert_eq!(of_transactions.account_include, [key(7)]);

    // Of the slot that was open the live stream has what the old keys did, and the side stream what the new one did.
    let new = replaced.slots.expect("always");
    let of_side = replayed.slots.expect("always");
    send(&live, [block(11), slot(&new, 12, SlotStatus::CreatedBank)]).await;
    send(&live, freeze_and_confirm(&new, 11)).await;
    let added = account_of(11, key(7), program(), Bytes::from_static(b"new"));
    send(&side, [created(&of_side, 11), added, block(11)]).await;
    send_while_there(&side, [slot(&of_side, 11, SlotStatus::Processed)]).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 11);
    let bodies = harness.bodies(2).await;
    let mut written: Vec<_> = bodies
        .iter()
        .map(|body| body["data"]["pubkey"].as_str().expect("an address"))
        .collect();
    written.sort_unstable();
    let mut expected = [key(1), key(7)].map(|key| key.to_string());
    expected.sort_unstable();
    assert_eq!(written, expected);
    indexer.stop().await;
}

async fn without_replay_the_first_whole_slot_is_answered(mut harness: IndexerHarness) {
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, [slot(&old, 11, SlotStatus::CreatedBank)]).await;
    harness.webhook(1).await;
    let (probe, tried) = harness.accept().await;
    let refusal = "from_slot is not supported";
    harness.server.refuse_next(Code::Internal, refusal);
    let name = tried.slots.expect("always");
    send(&probe, [slot(&name, 11, SlotStatus::Completed)]).await;
    let new = request(&mut live).await.slots.expect("always");
    send(&live, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 1)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 12);
    send(&live, [block(11)]).await;
    send(&live, freeze_and_confirm(&new, 11)).await;
    send(&live, whole(&new, 12)).await;
    send(&live, freeze_and_confirm(&new, 12)).await;
    harness.bodies(3).await;
    indexer.stop().await;
}

async fn a_side_stream_that_breaks_off_is_opened_again(mut harness: IndexerHarness) {
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, [slot(&old, 11, SlotStatus::CreatedBank)]).await;
    harness.webhook(1).await;
    probe(&mut harness).await;
    let new = request(&mut live).await.slots.expect("always");
    for _ in 0..2 {
        let (side, replayed) = harness.accept().await;
        assert_eq!(replayed.from_slot, Some(11));
        let of_side = replayed.slots.expect("always");
        send(&side, whole(&of_side, 11)).await;
        drop(side);
    }
    send(&live, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
    send(&live, [block(11)]).await;
    send(&live, freeze_and_confirm(&new, 11)).await;
    let (side, replayed) = harness.accept().await;
    let of_side = replayed.slots.expect("always");
    send(&side, whole(&of_side, 11)).await;
    send_while_there(&side, freeze_and_confirm(&of_side, 11)).await;
    harness.bodies(3).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 1)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 11);
    indexer.stop().await;
}

const WORDS: &str = "account_reject: TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA is not allowed";

async fn a_filter_that_the_server_refuses_is_reported_to_its_webhook_and_disturbs_no_other(
    mut harness: IndexerHarness,
) {
    let other = harness.webhook(1).await;
    let kinds = BTreeSet::from([OperationKind::FilterRefused]);
    let told = harness.store.set_operations(&Access::All, &other, &kinds);
    told.await.expect("sets").expect("exists");
    let indexer = harness.start().await;
    let (mut live, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, [slot(&old, 11, SlotStatus::CreatedBank)]).await;
    harness.server.refuse_next(Code::InvalidArgument, WORDS);
    let refused = harness.webhook(2).await;
    let replaced = request(&mut live).await;
    assert_eq!(replaced.from_slot, None, "the live stream goes on");
    let new = replaced.slots.expect("always");
    send(&live, whole(&new, 11)).await;
    send(&live, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
    send(&live, freeze_and_confirm(&new, 11)).await;
    let bodies = harness.bodies(3 + 2).await;
    let reported = |kind: &str, to: &WebhookId| {
        let report = bodies.iter().find(|body| body["type"] == kind);
        let report = report.expect("it is reported");
        assert_eq!(report["webhookId"], to.as_str());
        let reason = report["data"]["reason"].as_str().expect("words");
        assert!(reason.contains(WORDS), "{reason}");
        report
    };
    reported("filterRefused", &refused);
    let to_owner = reported("filter.refused", &other);
    assert_eq!(to_owner["data"]["webhook"], refused.as_str());
    let of = async |id| {
        let webhook = harness.store.webhook(&Access::All, id).await;
        webhook.expect("read").expect("exists")
    };
    assert!(
        of(&refused)
            .await
            .refused
            .is_some_and(|words| words.contains(WORDS))
    );
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 12);

    // Once it is edited, the server is asked again.
    let mut definition = harness.definition();
    definition.filters.accounts.push(key(7));
    let edited = harness
        .store
        .update_webhook(&Access::All, &refused, &definition, None);
    assert_eq!(
        edited.await.expect("written").expect("exists").refused,
        None
    );
    probe(&mut harness).await;
    request(&mut live).await;
    indexer.stop().await;
}

async fn webhooks_that_are_refused_at_the_start_are_found(mut harness: IndexerHarness) {
    for number in 1..=2 {
        harness.webhook(number).await;
    }
    // The session and both together; then nothing and the first alone are served, and the second beside it is not.
    for _ in 0..2 {
        harness.server.refuse_next(Code::InvalidArgument, WORDS);
    }
    let indexer = harness.start().await;
    probe(&mut harness).await;
    let (first, tried) = harness.accept().await;
    harness.server.refuse_next(Code::InvalidArgument, WORDS);
    let name = tried.slots.expect("always");
    send(&first, [slot(&name, 10, SlotStatus::Completed)]).await;
    let (live, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&live, whole(&name, 11)).await;
    send(&live, freeze_and_confirm(&name, 11)).await;
    let bodies = harness.bodies(3 + 1).await;
    let refusals = bodies.iter().filter(|body| body["type"] == "filterRefused");
    assert_eq!(refusals.count(), 1);
    indexer.stop().await;
}
