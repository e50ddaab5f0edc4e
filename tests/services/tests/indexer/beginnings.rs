//! Filters from the slot at which they are in force: nothing is missed, the first moments included.

use std::time::Duration;

use sluice_geyser::SlotStatus::{Finalized, Processed};
use sluice_store::{Commitment, WebhookDefinition};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, send, soon};
use sluice_testkit::updates::{block, created, freeze_and_confirm, slot, whole};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    what_came_before_the_first_checkpoint_is_asked_for_after_a_crash,
    what_waited_for_the_first_finality_is_asked_for_after_a_crash,
    a_new_webhook_is_told_nothing_of_slots_that_are_read_again_for_the_finality_of_others,
);

async fn what_came_before_the_first_checkpoint_is_asked_for_after_a_crash(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    let name = request.slots.expect("slots are always asked for");
    send(
        &connection,
        [created(&name, 10), block(10), slot(&name, 10, Processed)],
    )
    .await;
    let in_force = async {
        loop {
            if let Some(state) = harness.store.filter_state().await.expect("read") {
                return state.in_force_slot;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let since = soon(in_force).await;
    indexer.kill().await;
    drop(connection);

    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert!(request.from_slot.is_some_and(|slot| slot <= since));
    let first = [created(&name, 10), block(10), slot(&name, 10, Processed)];
    send(&connection, first).await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    harness.bodies(3).await;
    indexer.stop().await;
}

async fn what_waited_for_the_first_finality_is_asked_for_after_a_crash(
    mut harness: IndexerHarness,
) {
    let definition = WebhookDefinition {
        commitment: Commitment::Finalized,
        ..harness.definition()
    };
    harness.create(1, definition).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer.until_checkpoint(11).await;
    indexer.kill().await;
    drop(connection);

    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(10));
    let first = [created(&name, 10), block(10), slot(&name, 10, Processed)];
    send(&connection, first).await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    send(&connection, [slot(&name, 11, Finalized)]).await;
    let bodies = harness.bodies(3).await;
    assert!(bodies.iter().all(|body| body["commitment"] == "finalized"));
    indexer.stop().await;
}

/// Otherwise what came before it would be numbered after what it was told already.
async fn a_new_webhook_is_told_nothing_of_slots_that_are_read_again_for_the_finality_of_others(
    mut harness: IndexerHarness,
) {
    let waits_for_finality = WebhookDefinition {
        commitment: Commitment::Finalized,
        ..harness.definition()
    };
    harness.create(1, waits_for_finality).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    for number in 11..=12 {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(12).await;
    indexer.kill().await;
    drop(connection);
    let new = harness.webhook(2).await;

    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert!(request.from_slot.is_some_and(|slot| slot <= 11));
    let name = request.slots.expect("slots are always asked for");
    let first = [created(&name, 10), block(10), slot(&name, 10, Processed)];
    send(&connection, first).await;
    for number in 11..=13 {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(13).await;
    send(&connection, [slot(&name, 13, Finalized)]).await;
    let bodies = harness.bodies(12).await;
    let of_new = bodies
        .iter()
        .filter(|body| body["webhookId"] == new.as_str());
    let slots: Vec<_> = of_new.map(|body| body["slot"].clone()).collect();
    assert_eq!(
        slots,
        [13, 13, 13],
        "a transaction, its event and an account"
    );
    indexer.stop().await;
}
