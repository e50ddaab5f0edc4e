//! Slots that were read by RPC, and are streamed later on: their messages have the same ids, and none is sent again.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_geyser::{SlotStatus, scripted::Code};
use sluice_harness::indexer::{IndexerHarness, freeze_and_confirm, send};
use sluice_store::{Commitment, WebhookDefinition};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{content, slot, whole},
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(slots_that_were_read_by_rpc_are_silent_when_they_are_replayed);

const TOO_OLD: &str = "broadcast from 11 is not available, last available: 13";

/// How often each transaction and program event was sent, by commitment, slot and kind.
fn counted(bodies: &[Value]) -> BTreeMap<(String, u64, String), usize> {
    let mut counted = BTreeMap::new();
    for body in bodies {
        let text = |member: &str| body[member].as_str().expect("text").to_owned();
        let kind = text("type");
        if ["transaction", "programEvent"].contains(&kind.as_str()) {
            let at = (
                text("commitment"),
                body["slot"].as_u64().expect("a slot"),
                kind,
            );
            *counted.entry(at).or_default() += 1;
        }
    }
    counted
}

async fn slots_that_were_read_by_rpc_are_silent_when_they_are_replayed(
    mut harness: IndexerHarness,
) {
    for (number, commitment) in (1..).zip([Commitment::Confirmed, Commitment::Finalized]) {
        let definition = WebhookDefinition {
            commitment,
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
    // At confirmed the gap and nine events, of which the changes of accounts in slots 11 and 12 come with the replay; nine at
    // finalized.
    let bodies = harness.bodies(1 + 9 + 9).await;
    let counted = counted(&bodies);
    assert_eq!(counted.len(), 2 * 3 * 2, "{counted:?}");
    for ((commitment, slot, kind), count) in counted {
        assert_eq!(count, 1, "{commitment} {slot} {kind}");
    }
    indexer.stop().await;
}
