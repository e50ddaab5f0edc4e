//! Gaps: slots that cannot be read any more are reported to webhooks.

use std::time::Duration;

use sluice_geyser::{SlotStatus, scripted::Code};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, send, settle};
use sluice_testkit::updates::{block, block_on, content, slot};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    a_lost_replay_window_is_reported_to_every_webhook_together_with_what_follows,
    a_server_that_cannot_replay_at_all_is_followed_from_the_tip,
    blocks_that_the_stream_leaves_out_are_asked_for_again_and_then_reported_missing,
);

const TOO_OLD: &str = "broadcast from 11 is not available, last available: 500";

async fn a_lost_replay_window_is_reported_to_every_webhook_together_with_what_follows(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;

    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(500), "what is left of the window");
    send(&connection, content(500)).await;
    sleep(Duration::from_millis(100)).await;
    assert!(harness.receiver.received().is_empty());
    send(&connection, settle(&name, 500)).await;
    let bodies = harness.bodies(4).await;
    let gap = bodies
        .iter()
        .find(|body| body["type"] == "gap")
        .expect("reported");
    assert_eq!(gap["data"]["firstSlot"], 11);
    assert_eq!(gap["data"]["lastSlot"], 499);
    assert_eq!(gap["commitment"], "confirmed");
    indexer.until_checkpoint(500).await;

    // It is reported once.
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(501));
    send(&connection, [block(501)]).await;
    send(&connection, settle(&name, 501)).await;
    indexer.until_checkpoint(501).await;
    harness.bodies(4).await;
    indexer.stop().await;
}

async fn a_server_that_cannot_replay_at_all_is_followed_from_the_tip(mut harness: IndexerHarness) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;

    harness.server.refuse_next(Code::Unavailable, "restarting");
    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, None, "the tip, in the end");
    send(&connection, [slot(&name, 699, SlotStatus::Confirmed)]).await;
    send(&connection, [block(700)]).await;
    send(&connection, settle(&name, 700)).await;
    indexer
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 700)
        .await;
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["data"]["firstSlot"], 11);
    assert_eq!(
        bodies[0]["data"]["lastSlot"], 700,
        "of which the beginning was not seen"
    );
    indexer.stop().await;
}

async fn blocks_that_the_stream_leaves_out_are_asked_for_again_and_then_reported_missing(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (mut connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    for round in 0..3 {
        if round > 0 {
            let (next, request) = harness.accept().await;
            assert_eq!(request.from_slot, Some(11));
            connection = next;
        }
        // Slots 11 and 12 are never streamed, but 13 stands on 12.
        for number in 13..29 {
            let before = if number == 13 { 12 } else { number - 1 };
            send(&connection, [block_on(number, before, "hash")]).await;
            let sent = connection
                .send(slot(&name, number, SlotStatus::Confirmed))
                .await;
            if sent.is_err() {
                break;
            }
        }
    }
    indexer.until_checkpoint(28).await;
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["type"], "gap");
    assert_eq!(bodies[0]["data"]["firstSlot"], 11);
    assert_eq!(bodies[0]["data"]["lastSlot"], 12);
    indexer.stop().await;
}
