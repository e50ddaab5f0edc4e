//! Slots that come and are not stored: the readiness says so, and the stream is opened anew by itself, without loss.

use std::time::Duration;

use serde_json::Value;
use sluice_geyser::{SlotStatus, Update, scripted::Connection};
use sluice_store::{Commitment, WebhookDefinition};
use tokio::{task::JoinHandle, time::sleep};

use sluice_harness::indexer::{Indexer, IndexerHarness, request, send, soon};
use sluice_testkit::updates::{content, freeze_and_confirm, slot, whole};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    slots_that_wait_for_one_that_is_never_sent_again_are_asked_for_on_a_new_stream,
    slots_that_nothing_confirms_are_asked_for_on_a_new_stream,
);

/// After how many seconds it is told: long beside a slot.
const STANDSTILL_SECS: u64 = 2;

/// What a slot takes.
const SLOT: Duration = Duration::from_millis(50);

/// Events of a slot.
const EVENTS: usize = 3;

/// Sends what comes of slot after slot until the client is gone. Returns the last slot of which something was sent.
fn go_on(
    connection: Connection,
    first: u64,
    of_slot: impl Fn(u64) -> Vec<Update> + Send + 'static,
) -> JoinHandle<u64> {
    tokio::spawn(async move {
        for slot in first.. {
            for update in of_slot(slot) {
                if connection.send(update).await.is_err() {
                    return slot;
                }
            }
            sleep(SLOT).await;
        }
        unreachable!("slots do not end")
    })
}

/// Waits until the readiness tells that nothing was stored after slot 10.
async fn until_told(indexer: &Indexer) {
    let told = |_: u16, body: &Value| {
        let reason = body["reason"].as_str().unwrap_or_default();
        reason.starts_with("slots come, and none after 10 was stored at confirmed for ")
    };
    let body = indexer.until_ready(told).await;
    assert_eq!(
        (&body["ready"], &body["checkpoint"]),
        (&false.into(), &10.into())
    );
}

/// Has the new stream bring all slots from 11 on through `last`. Each must be told of once.
async fn assert_goes_on(harness: &mut IndexerHarness, indexer: Indexer, sent: JoinHandle<u64>) {
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    let last = soon(sent).await.expect("sends");
    let name = request.slots.expect("always");
    for number in 11..=last {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(last).await;
    indexer.until_ready(|status, _| status == 200).await;
    let slots = usize::try_from(last - 10).expect("few");
    let bodies = harness.bodies(slots * EVENTS).await;
    let sequences: Vec<_> = bodies
        .iter()
        .map(|body| body["sequence"].as_u64())
        .collect();
    let all: Vec<_> = (1..).map(Some).take(bodies.len()).collect();
    assert_eq!(sequences, all);
    let told = |number: u64| bodies.iter().filter(move |body| body["slot"] == number);
    for number in 11..=last {
        assert_eq!(told(number).count(), EVENTS, "slot {number}: {bodies:#?}");
    }
    let metrics = indexer.metrics().await;
    let ended =
        "sluice_indexer_stream_sessions_ended_total{name=\"slots come and are not stored\"} 1";
    assert!(metrics.lines().any(|line| line == ended), "{metrics}");
    indexer.stop().await;
}

async fn slots_that_wait_for_one_that_is_never_sent_again_are_asked_for_on_a_new_stream(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    harness.tell_standstill_after(STANDSTILL_SECS);
    let indexer = harness.start().await;
    let (mut connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    // Its beginning is missing, so it may not be whole.
    send(&connection, content(11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let again = request(&mut connection).await;
    assert_eq!(again.from_slot, Some(11));
    // A server that takes one request of a stream and ignores all others: nothing comes under the new one.
    let sent = go_on(connection, 12, move |number| {
        let mut updates = whole(&name, number);
        updates.extend(freeze_and_confirm(&name, number));
        updates
    });
    until_told(&indexer).await;
    assert_goes_on(&mut harness, indexer, sent).await;
}

async fn slots_that_nothing_confirms_are_asked_for_on_a_new_stream(mut harness: IndexerHarness) {
    let definition = WebhookDefinition {
        commitment: Commitment::Processed,
        ..harness.definition()
    };
    harness.create(1, definition).await;
    harness.tell_standstill_after(STANDSTILL_SECS);
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    let sent = go_on(connection, 11, move |number| {
        let mut updates = whole(&name, number);
        updates.push(slot(&name, number, SlotStatus::Processed));
        updates
    });
    until_told(&indexer).await;
    assert_goes_on(&mut harness, indexer, sent).await;
}
