//! Filter of the stream: follows the webhooks without a missed event.

use sluice_geyser::SlotStatus;
use sluice_store::{Access, Revision};

use sluice_harness::indexer::{IndexerHarness, request, send, settle};
use sluice_testkit::updates::{content, slot};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    a_new_webhook_gets_the_slots_between_its_write_and_its_filter,
    a_webhook_less_narrows_the_live_stream,
    a_crash_between_the_new_filter_and_the_slots_it_replays_repeats_them,
);

async fn a_new_webhook_gets_the_slots_between_its_write_and_its_filter(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, old) = harness.listening().await;
    send(&connection, content(11)).await;
    send(&connection, settle(&old, 11)).await;
    harness.bodies(3).await;
    indexer.until_checkpoint(11).await;

    let second = harness.webhook(2).await;
    // Until its filter is there, slots go on under the old one.
    send(&connection, content(12)).await;
    send(&connection, settle(&old, 12)).await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(12), "replayed for the new one");
    let new = request.slots.expect("always");
    assert_ne!(new, old);
    for number in [12, 13] {
        send(&connection, content(number)).await;
        send(&connection, settle(&new, number)).await;
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

    let deleted = harness.store.delete_webhook(&Access::All, &id).await;
    assert!(deleted.expect("written"));
    let narrowed = request(&mut connection).await;
    assert_eq!(narrowed.from_slot, None);
    assert!(narrowed.transactions.is_empty() && narrowed.accounts.is_empty());
    let new = narrowed.slots.expect("always");
    assert_ne!(new, old);

    send(&connection, content(11)).await;
    send(&connection, settle(&old, 11)).await;
    let body = indexer.until_checkpoint(11).await;
    assert_eq!(
        (
            &body["filter"]["wantedRevision"],
            &body["filter"]["inForceRevision"]
        ),
        (&2.into(), &1.into()),
        "not proved by an update of the old filter"
    );
    send(&connection, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
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
    let (connection, old) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    harness.webhook(2).await;
    // The checkpoint passes the slot from which on the second must miss nothing.
    send(&connection, content(11)).await;
    send(&connection, settle(&old, 11)).await;
    indexer.until_checkpoint(11).await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    let new = request.slots.expect("always");
    send(&connection, [slot(&new, 14, SlotStatus::CreatedBank)]).await;
    indexer.until_ready(|_, body| body["slot"] == 14).await;
    indexer.kill().await;
    drop(connection);

    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11), "not proved by the name alone");
    send(&connection, content(11)).await;
    send(&connection, settle(&new, 11)).await;
    send(&connection, [slot(&new, 12, SlotStatus::CreatedBank)]).await;
    harness.bodies(6).await;
    let body = indexer
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 2)
        .await;
    assert_eq!(body["filter"]["inForceSinceSlot"], 11);
    indexer.stop().await;
}
