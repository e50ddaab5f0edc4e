//! Filters from the slot at which they are in force: nothing is missed, the first moments included.

use std::time::Duration;

use sluice_geyser::SlotStatus::{Finalized, Processed};
use sluice_store::{Commitment, WebhookDefinition};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, freeze_and_confirm, send, soon};
use sluice_testkit::updates::{block, created, slot, whole};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    what_came_before_the_first_checkpoint_is_asked_for_after_a_crash,
    what_waited_for_the_first_finality_is_asked_for_after_a_crash,
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
