//! Slots that were read by RPC, and are streamed later on: their messages have the same ids, and none is sent again.

use std::collections::BTreeSet;

use serde_json::Value;
use sluice_geyser::{SlotStatus, scripted::Code};
use sluice_harness::indexer::{IndexerHarness, send};
use sluice_store::{Commitment, EventKind, WebhookDefinition};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{content, freeze_and_confirm, slot, whole},
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(slots_that_were_read_by_rpc_are_silent_when_they_are_replayed);

const TOO_OLD: &str = "broadcast from 11 is not available, last available: 13";

async fn slots_that_were_read_by_rpc_are_silent_when_they_are_replayed(
    mut harness: IndexerHarness,
) {
    for (number, commitment) in (1..).zip([Commitment::Confirmed, Commitment::Finalized]) {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::Transaction, EventKind::ProgramEvent]
                .into_iter()
                .collect(),
            ..harness.definition()
        };
        harness.create(number, definition).await;
    }
    let node = RpcNode::holding([]).await.expect("a free port");
    node.reach(12);
    for number in 11..=12 {
        node.blocks().add(content(number));
    }
    harness.backfill_from(node.url());
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, [slot(&name, 10, SlotStatus::Finalized)]).await;
    indexer.until_checkpoint(10).await;

    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11), "nothing above 10 is final");
    let name = request.slots.expect("always");
    for number in 11..=13 {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    send(&connection, [slot(&name, 13, SlotStatus::Finalized)]).await;
    indexer.until_checkpoint(13).await;
    assert!(node.count("getBlock") >= 2, "the slots were read");
    let bodies = harness.bodies(2 * 3 * 2).await;
    let told = |body: &Value| {
        let members = ["commitment", "slot", "type"].map(|member| body[member].to_string());
        members.join(" ")
    };
    let told: BTreeSet<String> = bodies.iter().map(told).collect();
    assert_eq!(told.len(), bodies.len(), "{bodies:?}");
    indexer.stop().await;
}
