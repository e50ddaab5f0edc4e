//! Pauses: a webhook that was switched off is told what it did not watch, and can have it told afterwards.

use std::time::Duration;

use serde_json::Value;
use sluice_geyser::{
    SlotStatus,
    scripted::{Code, Connection},
};
use sluice_harness::indexer::{IndexerHarness, request, send, soon};
use sluice_store::{
    Access, Backfill, BackfillKind, BackfillRequest, BackfillState, EventKind, Timestamp,
    WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{block, content, created, freeze_and_confirm, slot, whole},
    webhook_receiver::{Reply, WebhookReceiver},
};
use tokio::time::sleep;

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    a_webhook_that_was_off_is_told_so_first_and_a_backfill_tells_the_rest_once,
    a_webhook_whose_receiver_was_gone_is_told_of_the_pause_before_what_follows,
    a_webhook_that_is_on_again_while_the_stream_is_silent_gets_no_heartbeat_before_it_is_told_of_the_pause,
    a_dry_run_finds_what_a_backfill_would_tell_and_stores_nothing,
    slots_that_the_node_has_no_more_are_counted_as_lost,
);

/// How long heartbeats are waited for that must not come: several of their intervals, and far less than the stream may be silent.
const SEVERAL_HEARTBEATS: Duration = Duration::from_secs(4);

/// A webhook on the transactions of the program.
fn definition(harness: &IndexerHarness, active: bool) -> WebhookDefinition {
    WebhookDefinition {
        active,
        events: [EventKind::Transaction].into_iter().collect(),
        ..harness.definition()
    }
}

async fn switch(harness: &IndexerHarness, id: &WebhookId, active: bool) {
    write(harness, id, &definition(harness, active)).await;
}

async fn write(harness: &IndexerHarness, id: &WebhookId, definition: &WebhookDefinition) {
    let store = &harness.store;
    let update = store.update_webhook(&Access::All, id, definition, None);
    update.await.expect("updates").expect("exists");
}

/// A node from which indexers read, with a transaction in each of these slots.
async fn node(harness: &mut IndexerHarness, slots: std::ops::RangeInclusive<u64>) -> RpcNode {
    let node = RpcNode::holding([]).await.expect("a free port");
    for slot in slots {
        node.blocks().add(content(slot));
        node.reach(slot);
    }
    harness.backfill_from(node.url());
    node
}

async fn ask(harness: &IndexerHarness, id: &WebhookId, kind: BackfillKind, slots: (u64, u64)) {
    let request = BackfillRequest {
        kind,
        first_slot: slots.0,
        last_slot: slots.1,
        now: Timestamp::from_unix_millis(1),
    };
    let asked = harness.store.request_backfill(&Access::All, id, &request);
    asked.await.expect("asks").expect("exists");
}

/// The newest backfill of this kind, once it is over.
async fn over(harness: &IndexerHarness, id: &WebhookId, kind: BackfillKind) -> Backfill {
    let wait = async {
        loop {
            let newest = harness.store.backfill(&Access::All, id, kind).await;
            let newest = newest.expect("reads").expect("was asked for");
            if newest.state != BackfillState::Pending {
                return newest;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(wait).await
}

/// Type, slot and named slots of each body, in order.
fn short(bodies: &[Value]) -> Vec<String> {
    let short = |body: &Value| {
        let (kind, data) = (body["type"].as_str().expect("text"), &body["data"]);
        match kind {
            "resumed" => format!("resumed {}-{}", data["firstSlot"], data["lastSlot"]),
            kind => format!("{kind} {}", body["slot"]),
        }
    };
    bodies.iter().map(short).collect()
}

/// Lets slots pass of which this connection is shown nothing.
async fn pass(connection: &Connection, name: &str, slots: std::ops::RangeInclusive<u64>) {
    for number in slots {
        send(connection, [created(name, number), block(number)]).await;
        send(connection, freeze_and_confirm(name, number)).await;
    }
}

/// What a webhook is told that was off while slots 12 and 13 passed.
const STREAMED: [&str; 4] = [
    "transaction 11",
    "resumed 12-13",
    "transaction 14",
    "transaction 15",
];

/// Lets slots 14 and 15 pass once the indexer watches again, on the live stream and on the side stream.
async fn pass_what_follows_the_pause(harness: &mut IndexerHarness, live: &mut Connection) {
    let (probe, tried) = harness.accept().await;
    let of_probe = tried.slots.expect("always");
    send(&probe, [slot(&of_probe, 13, SlotStatus::Completed)]).await;
    let name = request(live).await.slots.expect("always");
    let (side, replayed) = harness.accept().await;
    assert_eq!(replayed.from_slot, Some(14), "what follows the pause");
    let of_side = replayed.slots.expect("always");
    for (connection, name) in [(&*live, &name), (&side, &of_side)] {
        for number in 14..=15 {
            // The side stream is closed once it is not needed.
            for update in whole(name, number) {
                let _ = soon(connection.send(update)).await;
            }
            for update in freeze_and_confirm(name, number) {
                let _ = soon(connection.send(update)).await;
            }
        }
    }
}

async fn a_webhook_that_was_off_is_told_so_first_and_a_backfill_tells_the_rest_once(
    mut harness: IndexerHarness,
) {
    let id = harness.create(1, definition(&harness, true)).await;
    let _node = node(&mut harness, 11..=15).await;
    let indexer = harness.start().await;
    let (mut live, name) = harness.listening().await;
    send(&live, whole(&name, 11)).await;
    send(&live, freeze_and_confirm(&name, 11)).await;
    let in_force = |revision: u64| {
        move |_: u16, body: &Value| {
            body["checkpoint"] == 11 && body["filter"]["inForceRevision"] == revision
        }
    };
    indexer.until_ready(in_force(1)).await;

    switch(&harness, &id, false).await;
    let name = request(&mut live).await.slots.expect("always");
    send(&live, [slot(&name, 11, SlotStatus::Completed)]).await;
    indexer.until_ready(in_force(2)).await;
    pass(&live, &name, 12..=13).await;
    indexer.until_checkpoint(13).await;

    switch(&harness, &id, true).await;
    pass_what_follows_the_pause(&mut harness, &mut live).await;
    assert_eq!(short(&harness.bodies(4).await), STREAMED);

    ask(&harness, &id, BackfillKind::Tell, (11, 15)).await;
    let done = over(&harness, &id, BackfillKind::Tell).await;
    assert_eq!(done.state, BackfillState::Done, "{:?}", done.error);
    assert_eq!((done.matched, done.told, done.lost), (5, 2, 0));
    let told = [&STREAMED[..], &["transaction 12", "transaction 13"]].concat();
    assert_eq!(short(&harness.bodies(6).await), told);
    ask(&harness, &id, BackfillKind::Tell, (11, 15)).await;
    let again = over(&harness, &id, BackfillKind::Tell).await;
    assert_eq!((again.matched, again.told), (5, 0));
    indexer.stop().await;
}

async fn a_webhook_whose_receiver_was_gone_is_told_of_the_pause_before_what_follows(
    mut harness: IndexerHarness,
) {
    let gone = WebhookReceiver::always(Reply::Status(410, String::new())).await;
    let gone = gone.expect("a free port");
    let elsewhere = WebhookDefinition {
        url: gone.url(),
        ..definition(&harness, true)
    };
    let id = harness.create(1, elsewhere).await;
    let _node = node(&mut harness, 11..=15).await;
    let indexer = harness.start().await;
    let (mut live, name) = harness.listening().await;
    send(&live, whole(&name, 11)).await;
    send(&live, freeze_and_confirm(&name, 11)).await;
    // Its answer switches the webhook off, which the indexer notices.
    let name = request(&mut live).await.slots.expect("always");
    send(&live, [slot(&name, 11, SlotStatus::Completed)]).await;
    let without = |_: u16, body: &Value| body["filter"]["inForceRevision"] == 2;
    indexer.until_ready(without).await;
    pass(&live, &name, 12..=13).await;
    indexer.until_checkpoint(13).await;

    // To a receiver that is there.
    switch(&harness, &id, true).await;
    pass_what_follows_the_pause(&mut harness, &mut live).await;
    assert_eq!(short(&harness.bodies(4).await), STREAMED);
    indexer.stop().await;
}

async fn a_webhook_that_is_on_again_while_the_stream_is_silent_gets_no_heartbeat_before_it_is_told_of_the_pause(
    mut harness: IndexerHarness,
) {
    let id = harness.create(1, definition(&harness, true)).await;
    let indexer = harness.start().await;
    let (mut live, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    switch(&harness, &id, false).await;
    let name = request(&mut live).await.slots.expect("always");
    send(&live, [slot(&name, 10, SlotStatus::Completed)]).await;
    let without = |_: u16, body: &Value| body["filter"]["inForceRevision"] == 2;
    indexer.until_ready(without).await;
    pass(&live, &name, 11..=12).await;
    indexer.until_checkpoint(12).await;

    let fail = async |connection: Connection| {
        let failed = connection.fail(Code::Unavailable, "down").await;
        failed.expect("the client is there");
    };
    fail(live).await;
    // The session has looked for pauses, and waits for what comes first.
    let (silent, _) = harness.accept().await;
    let with_heartbeat = WebhookDefinition {
        heartbeat: Some(Duration::from_secs(1)),
        ..definition(&harness, true)
    };
    write(&harness, &id, &with_heartbeat).await;
    sleep(SEVERAL_HEARTBEATS).await;
    fail(silent).await;
    let received = harness.received(2).await;
    let mut bodies: Vec<Value> = received
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .collect();
    bodies.sort_by_key(|body| body["sequence"].as_u64());
    assert_eq!(short(&bodies[..2]), ["resumed 11-12", "heartbeat 12"]);
    indexer.stop().await;
}

async fn a_dry_run_finds_what_a_backfill_would_tell_and_stores_nothing(
    mut harness: IndexerHarness,
) {
    let id = harness.create(1, definition(&harness, true)).await;
    // Of a webhook that is off, too.
    let off = harness.create(2, definition(&harness, false)).await;
    let _node = node(&mut harness, 8..=30).await;
    let indexer = harness.start().await;
    let (_live, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    for id in [&id, &off] {
        ask(&harness, id, BackfillKind::DryRun, (9, 29)).await;
        let done = over(&harness, id, BackfillKind::DryRun).await;
        assert_eq!(done.state, BackfillState::Done, "{:?}", done.error);
        assert_eq!((done.matched, done.told, done.lost), (21, 0, 0));
        let samples: Vec<Value> = serde_json::from_str(&done.samples).expect("JSON");
        let expected: Vec<_> = (9..19).map(|slot| format!("transaction {slot}")).collect();
        assert_eq!(short(&samples), expected, "the first ten");
        assert_eq!(samples[0]["sequence"], 0);
        let stored = harness.store.messages_after(&Access::All, id, 0, 9).await;
        assert_eq!(stored.expect("reads").expect("exists").last_sequence, 0);
    }
    indexer.stop().await;
}

async fn slots_that_the_node_has_no_more_are_counted_as_lost(mut harness: IndexerHarness) {
    let id = harness.create(1, definition(&harness, true)).await;
    let node = node(&mut harness, 11..=151).await;
    node.blocks().clean_up_before(13);
    node.blocks().make_unreadable(17);
    // The last of a turn, and the last of all.
    let lost = [15, 74, 150];
    for slot in lost {
        node.blocks().lose(slot);
    }
    let indexer = harness.start().await;
    let (_live, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    ask(&harness, &id, BackfillKind::Tell, (11, 150)).await;
    let done = over(&harness, &id, BackfillKind::Tell).await;
    assert_eq!(done.state, BackfillState::Done, "{:?}", done.error);
    assert_eq!(done.lost, 2 + 1 + 3, "cleaned up, unreadable, lost");
    assert_eq!((done.matched, done.told), (140 - 6, 140 - 6));
    ask(&harness, &id, BackfillKind::Tell, (1, 12)).await;
    let done = over(&harness, &id, BackfillKind::Tell).await;
    assert_eq!((done.state, done.lost), (BackfillState::Done, 12));
    indexer.stop().await;
}
