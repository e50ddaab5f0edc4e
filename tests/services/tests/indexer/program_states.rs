//! States after a gap: the accounts of watched programs follow a gap as they are now.

use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_geyser::scripted::{Code, Connection};
use sluice_harness::indexer::{Indexer, IndexerHarness, send};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{content, freeze_and_confirm, key, program, whole},
};
use solana_pubkey::Pubkey;

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    accounts_of_a_watched_program_follow_a_gap_as_they_are_now,
    a_gap_names_a_program_with_more_accounts_than_follow_it,
);

const TOO_OLD: &str = "broadcast from 12 is not available, last available: 13";

/// An indexer that has read slot 11 from the stream that is returned, and can read slot 12 from the node.
async fn read_through_11(harness: &mut IndexerHarness, node: &RpcNode) -> (Indexer, Connection) {
    node.blocks().add(content(12));
    harness.backfill_from(node.url());
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer.until_checkpoint(11).await;
    (indexer, connection)
}

async fn accounts_of_a_watched_program_follow_a_gap_as_they_are_now(mut harness: IndexerHarness) {
    harness.webhook(1).await;
    // Account 1 is closed in the gap, and account 2 comes to the program.
    let created = RawAccount {
        pubkey: key(2),
        owner: program(),
        lamports: 77,
        data: vec![7; 3].into(),
    };
    let node = RpcNode::holding([created]).await.expect("a free port");
    node.reach(12);
    let listed = json!({ "pubkey": key(2).to_string() });
    let list = json!({ "context": { "slot": 12 }, "value": [listed] });
    node.script("getProgramAccounts", list);
    let (indexer, connection) = read_through_11(&mut harness, &node).await;

    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    drop(connection);
    let (_connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(13));
    // What slot 11 did, the transaction of slot 12 and its event, the gap and two states.
    let bodies = harness.bodies(3 + 2 + 1 + 2).await;
    let gap = bodies.iter().position(|body| body["type"] == "gap");
    let after = &bodies[gap.expect("it is told") + 1..];
    let shown = |body: &Value| {
        let data = &body["data"];
        assert_eq!(data["origin"], "snapshot", "{body}");
        ["pubkey", "lamports", "lastOwner"].map(|member| data[member].clone())
    };
    let shown: Vec<_> = after.iter().map(shown).collect();
    let closed = [
        json!(key(1).to_string()),
        json!(0),
        json!(program().to_string()),
    ];
    let came = [json!(key(2).to_string()), json!(77), Value::Null];
    assert_eq!(shown, [closed, came]);
    indexer.stop().await;
}

async fn a_gap_names_a_program_with_more_accounts_than_follow_it(mut harness: IndexerHarness) {
    const MORE: u16 = 10_001;
    harness.webhook(1).await;
    let node = RpcNode::holding([]).await.expect("a free port");
    node.reach(12);
    let list = |accounts: Vec<Value>| json!({ "context": { "slot": 12 }, "value": accounts });
    node.script("getProgramAccounts", list(Vec::new()));
    let (indexer, connection) = read_through_11(&mut harness, &node).await;

    let listed = (0..MORE).map(|number| {
        let mut address = [200; 32];
        address[..2].copy_from_slice(&number.to_le_bytes());
        json!({ "pubkey": Pubkey::new_from_array(address).to_string() })
    });
    node.script("getProgramAccounts", list(listed.collect()));
    harness.server.refuse_next(Code::OutOfRange, TOO_OLD);
    drop(connection);
    let (_connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(13));
    // What slot 11 did, the transaction of slot 12 and its event, the gap and no state.
    let bodies = harness.bodies(3 + 2 + 1).await;
    let gap = bodies.iter().find(|body| body["type"] == "gap");
    let data = &gap.expect("it is told")["data"];
    assert_eq!(data["statesOmitted"], json!([program().to_string()]));
    indexer.stop().await;
}
