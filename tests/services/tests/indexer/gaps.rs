//! Gaps: slots that cannot be read any more are reported to webhooks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;
use sluice_chain_types::RawAccount;
use sluice_geyser::{Request, SlotStatus, scripted::Code};
use sluice_store::{Commitment, Filters, WebhookDefinition};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::sleep,
};

use sluice_harness::indexer::{IndexerHarness, send};
use sluice_testkit::{
    rpc_node::{Fault, RpcNode},
    scripted_chain::{ScriptedChain, State},
    updates::{
        block, block_on, content, created, freeze_and_confirm, key, program, slot, transaction,
        whole,
    },
    yellowstone_server::YellowstoneServer,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    a_lost_replay_window_is_reported_to_every_webhook_together_with_what_follows,
    a_server_that_cannot_replay_at_all_is_followed_from_the_tip,
    blocks_that_the_stream_leaves_out_are_asked_for_again_and_then_reported_missing,
    slots_that_no_server_replays_are_read_by_rpc_and_only_changes_of_accounts_are_lost,
    a_server_that_never_replays_is_completed_by_rpc,
    what_the_node_does_not_have_either_is_lost_with_every_kind,
    a_backfill_that_is_killed_goes_on_after_the_checkpoint,
    blocks_that_the_stream_leaves_out_are_read_by_rpc,
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
    send(&connection, whole(&name, 500)).await;
    sleep(Duration::from_millis(100)).await;
    assert!(harness.receiver.received().is_empty());
    send(&connection, freeze_and_confirm(&name, 500)).await;
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
    send(&connection, [created(&name, 501), block(501)]).await;
    send(&connection, freeze_and_confirm(&name, 501)).await;
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
    send(&connection, [created(&name, 700), block(700)]).await;
    send(&connection, freeze_and_confirm(&name, 700)).await;
    indexer
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 700)
        .await;
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["data"]["firstSlot"], 11);
    assert_eq!(
        bodies[0]["data"]["lastSlot"], 699,
        "the beginning of 700 was seen"
    );
    indexer.stop().await;
}

/// Time between two slots of a chain.
const SLOT_TIME: Duration = Duration::from_millis(50);

/// A chain of which the validator does not report two slots, on a strict server, from slot 10 on.
struct LeavingOut {
    server: YellowstoneServer,
    leave_out: mpsc::Sender<oneshot::Sender<u64>>,
    /// Ends with the chain.
    _passing: JoinSet<()>,
}

impl LeavingOut {
    /// Lets slots pass, and `passed` know of each.
    async fn start(passed: impl Fn(u64) + Send + 'static) -> Self {
        let chain = ScriptedChain::new(10, State::new());
        let server = YellowstoneServer::start(chain.clone()).await;
        let (leave_out, mut asked) = mpsc::channel::<oneshot::Sender<u64>>(1);
        let mut passing = JoinSet::new();
        passing.spawn(async move {
            let mut slot = 10;
            loop {
                if let Ok(reply) = asked.try_recv() {
                    reply.send(slot + 1).expect("it is waited for");
                    for left_out in slot + 1..=slot + 2 {
                        chain.lock().tree.open(left_out, left_out - 1);
                        passed(left_out);
                    }
                    slot += 2;
                }
                slot = chain.pass(slot);
                passed(slot);
                sleep(SLOT_TIME).await;
            }
        });
        Self {
            server: server.expect("a free port"),
            leave_out,
            _passing: passing,
        }
    }

    /// Leaves out two slots; returns the first.
    async fn leave_out(&self) -> u64 {
        let (reply, first) = oneshot::channel();
        self.leave_out.send(reply).await.expect("slots pass");
        first.await.expect("slots pass")
    }

    /// How often slots up to this one were asked for again on an open stream.
    fn asked(&self, last: u64) -> usize {
        let requests = self.server.later_requests();
        let missing = |request: &&Request| request.from_slot.is_some_and(|slot| slot <= last);
        requests.iter().filter(missing).count()
    }
}

async fn blocks_that_the_stream_leaves_out_are_asked_for_again_and_then_reported_missing(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let chain = LeavingOut::start(|_| {}).await;
    harness.listen_to(chain.server.endpoint());
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(11).await;
    let first = chain.leave_out().await;
    indexer.until_checkpoint_past(first + 2).await;
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["type"], "gap");
    assert_eq!(bodies[0]["data"]["firstSlot"], first);
    assert_eq!(bodies[0]["data"]["lastSlot"], first + 1);
    assert!(chain.asked(first + 1) > 0);
    indexer.stop().await;
}

/// A node that has account 1 as it is in `slot`, and from which the harness's indexers read.
async fn node(harness: &mut IndexerHarness, slot: u64) -> RpcNode {
    let account = RawAccount {
        pubkey: key(1),
        owner: program(),
        lamports: 77,
        data: vec![7; 3].into(),
    };
    let node = RpcNode::holding([account]).await.expect("a free port");
    node.reach(slot);
    harness.backfill_from(node.url());
    node
}

/// A webhook on everything about the program and account 1.
async fn watch_all(harness: &IndexerHarness, number: u8, commitment: Commitment) {
    let definition = harness.definition();
    let filters = Filters {
        accounts: vec![key(1)],
        ..definition.filters
    };
    let definition = WebhookDefinition {
        commitment,
        filters,
        ..definition
    };
    harness.create(number, definition).await;
}

/// What was received at a commitment, in short and in order: `tx 11`, `event 11`, `account 11`, `state 11`,
/// `gap 11-12 kinds`.
fn short(bodies: &[Value], commitment: &str) -> Vec<String> {
    let bodies = bodies
        .iter()
        .filter(|body| body["commitment"] == commitment);
    bodies
        .map(|body| {
            let (slot, data) = (&body["slot"], &body["data"]);
            match body["type"].as_str().expect("text") {
                "transaction" => format!("tx {slot}"),
                "programEvent" => format!("event {slot}"),
                "accountChange" if data["origin"] == "snapshot" => {
                    assert_eq!(
                        (&data["lamports"], &data["data"]),
                        (&77.into(), &"BwcH".into())
                    );
                    format!("state {slot}")
                }
                "accountChange" => format!("account {slot}"),
                "gap" => {
                    let kinds = data["kinds"].as_array().expect("kinds").iter();
                    let kinds: Vec<_> = kinds.filter_map(Value::as_str).collect();
                    format!(
                        "gap {}-{} {}",
                        data["firstSlot"],
                        data["lastSlot"],
                        kinds.join(",")
                    )
                }
                other => panic!("{other}"),
            }
        })
        .collect()
}

/// The bodies received, by sequence, once there are so many: what was under way at a kill comes twice.
async fn distinct(harness: &IndexerHarness, count: usize) -> Vec<Value> {
    let mut received = count;
    loop {
        let requests = harness.received(received).await;
        let bodies = requests.iter().map(|request| {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            (body["sequence"].as_u64(), body)
        });
        let distinct: BTreeMap<_, _> = bodies.collect();
        if distinct.len() >= count {
            assert_eq!(distinct.len(), count, "{distinct:#?}");
            return distinct.into_values().collect();
        }
        received = requests.len() + 1;
    }
}

/// The transaction and its event in each of these slots.
fn transactions(slots: impl IntoIterator<Item = u64>) -> Vec<String> {
    let slots = slots.into_iter();
    slots
        .flat_map(|slot| [format!("tx {slot}"), format!("event {slot}")])
        .collect()
}

fn too_old(available: u64) -> String {
    format!("broadcast from 11 is not available, last available: {available}")
}

async fn slots_that_no_server_replays_are_read_by_rpc_and_only_changes_of_accounts_are_lost(
    mut harness: IndexerHarness,
) {
    watch_all(&harness, 1, Commitment::Processed).await;
    watch_all(&harness, 2, Commitment::Confirmed).await;
    let node = node(&mut harness, 14).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    // Emitted at processed before the outage: what is read of it by RPC has the same ids.
    send(&connection, whole(&name, 11)).await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    harness.bodies(3).await;

    // Slot 12 is skipped. The node is as unreliable as a shared one.
    node.blocks().add(content(11));
    node.blocks()
        .add([transaction(13, 4), block_on(13, 11, "hash13")]);
    node.blocks().add(content(14));
    let busy = Fault::Refused(-32005, "Node is behind by 42 slots".to_owned());
    node.fail([
        Fault::Http(429),
        Fault::HangsUp,
        busy,
        Fault::Http(503),
        Fault::Garbage,
    ]);
    harness.server.refuse_next(Code::OutOfRange, &too_old(15));
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(
        request.from_slot,
        Some(15),
        "what was read need not be replayed"
    );
    let name = request.slots.expect("slots are always asked for");

    let bodies = harness.bodies(3 + 2 * 2 + 2 * 3 + 2 * 2).await;
    let after = ["gap 11-14 accountChange", "state 14"].map(str::to_owned);
    let of_11 = ["tx 11", "event 11", "account 11"].map(str::to_owned);
    assert_eq!(
        short(&bodies, "processed"),
        [&of_11[..], &transactions([13, 14]), &after].concat()
    );
    assert_eq!(
        short(&bodies, "confirmed"),
        [&transactions([11, 13, 14])[..], &after].concat()
    );
    // The accounts of the watched program are asked for, which this node does not list.
    let listed = format!("a list of {} under []", program());
    let not_understood = node.not_understood();
    assert!(
        not_understood.iter().all(|call| *call == listed),
        "{not_understood:?}"
    );
    send(&connection, whole(&name, 15)).await;
    send(&connection, freeze_and_confirm(&name, 15)).await;
    indexer
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 15)
        .await;
    assert_eq!(harness.store.account_gaps().await.expect("reads"), []);
    indexer.stop().await;
}

async fn a_server_that_never_replays_is_completed_by_rpc(mut harness: IndexerHarness) {
    watch_all(&harness, 1, Commitment::Confirmed).await;
    let node = node(&mut harness, 15).await;
    let indexer = harness.start().await;
    let (connection, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    for number in 11..=12 {
        node.blocks().add(content(number));
    }
    harness.server.refuse_next(Code::OutOfRange, &too_old(13));
    harness.server.refuse_next(Code::OutOfRange, &too_old(14));
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, None, "the tip, in the end");
    let name = request.slots.expect("slots are always asked for");
    // The stream begins in the middle of slot 15: of its transactions only the second is shown.
    send(&connection, [slot(&name, 14, SlotStatus::Confirmed)]).await;
    send(&connection, [transaction(15, 5), block(15)]).await;
    send(&connection, freeze_and_confirm(&name, 15)).await;
    send(&connection, whole(&name, 16)).await;
    sleep(Duration::from_millis(100)).await;
    for number in 13..=15 {
        node.blocks().add(content(number));
    }
    send(&connection, freeze_and_confirm(&name, 16)).await;
    indexer.until_checkpoint(16).await;
    let bodies = harness.bodies(2 * 5 + 2 + 3).await;
    let mut emitted = short(&bodies, "confirmed");
    // What is lost is reported beside what goes on.
    emitted.retain(|each| !each.starts_with("gap") && !each.starts_with("state"));
    let of_16 = ["account 16".to_owned()];
    assert_eq!(emitted, [&transactions(11..=16)[..], &of_16].concat());
    let emitted = short(&bodies, "confirmed");
    let gap = emitted
        .iter()
        .position(|each| each == "gap 11-15 accountChange");
    let state = emitted.iter().position(|each| each == "state 15");
    assert!(gap.is_some() && gap < state, "{emitted:?}");
    indexer.stop().await;
}

async fn what_the_node_does_not_have_either_is_lost_with_every_kind(mut harness: IndexerHarness) {
    watch_all(&harness, 1, Commitment::Confirmed).await;
    let node = node(&mut harness, 19).await;
    let indexer = harness.start().await;
    let (connection, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    for number in 11..=19 {
        node.blocks().add(content(number));
    }
    node.blocks().clean_up_before(13);
    node.blocks().lose(15);
    node.blocks().make_unreadable(17);
    harness.server.refuse_next(Code::OutOfRange, &too_old(20));
    drop(connection);
    let (_connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(20));
    let bodies = harness.bodies(2 * 5 + 3 + 2).await;
    let lost = |slots: &str| {
        vec![format!(
            "gap {slots} accountChange,transaction,programEvent"
        )]
    };
    let expected = [
        lost("11-12"),
        transactions([13, 14]),
        lost("15-15"),
        transactions([16]),
        lost("17-17"),
        transactions([18, 19]),
        vec!["gap 13-19 accountChange".to_owned(), "state 19".to_owned()],
    ];
    assert_eq!(short(&bodies, "confirmed"), expected.concat());
    indexer.stop().await;
}

async fn a_backfill_that_is_killed_goes_on_after_the_checkpoint(mut harness: IndexerHarness) {
    const LAST: u64 = 40;
    watch_all(&harness, 1, Commitment::Confirmed).await;
    let node = node(&mut harness, LAST).await;
    let indexer = harness.start().await;
    let (connection, _) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    for number in 11..=LAST {
        node.blocks().add(content(number));
    }
    node.delay(Duration::from_millis(100));
    harness
        .server
        .refuse_next(Code::OutOfRange, &too_old(LAST + 1));
    drop(connection);
    indexer.until_checkpoint_past(14).await;
    indexer.kill().await;
    node.delay(Duration::ZERO);
    let stored = harness.store.checkpoint(Commitment::Confirmed).await;
    assert!(stored.expect("reads") < Some(LAST), "in the middle");

    // By now the server replays the rest, and yet the changes of the first part are lost.
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    let first = request.from_slot.expect("after the checkpoint");
    let name = request.slots.expect("slots are always asked for");
    for number in first..=LAST {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(LAST).await;
    let streamed = usize::try_from(LAST + 1 - first).expect("small");
    let bodies = distinct(&harness, 2 * 30 + streamed + 2).await;
    let emitted = short(&bodies, "confirmed");
    let of = |kind: &str| -> Vec<_> {
        let of_kind = emitted.iter().filter(|each| each.starts_with(kind));
        of_kind.cloned().collect()
    };
    let slots = 11..=LAST;
    assert_eq!(
        of("tx"),
        slots.map(|slot| format!("tx {slot}")).collect::<Vec<_>>()
    );
    assert_eq!(of("gap"), [format!("gap 11-{} accountChange", first - 1)]);
    assert_eq!(of("state"), [format!("state {LAST}")]);
    indexer.stop().await;
}

async fn blocks_that_the_stream_leaves_out_are_read_by_rpc(mut harness: IndexerHarness) {
    watch_all(&harness, 1, Commitment::Confirmed).await;
    let node = Arc::new(node(&mut harness, 10).await);
    let ledger = Arc::clone(&node);
    let chain = LeavingOut::start(move |slot| {
        ledger.blocks().add(content(slot));
        ledger.reach(slot);
    });
    let chain = chain.await;
    harness.listen_to(chain.server.endpoint());
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(11).await;
    let first = chain.leave_out().await;
    indexer.until_checkpoint_past(first + 2).await;
    let bodies = harness.received(4).await;
    let bodies: Vec<Value> = bodies
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .collect();
    // The stream reports slots without content, the node has some in each.
    let emitted = short(&bodies, "confirmed");
    let expected = transactions([first, first + 1]);
    assert!(
        expected.iter().all(|each| emitted.contains(each)),
        "{emitted:?}"
    );
    let lost = |each: &&String| each.starts_with("gap") && each.contains("transaction");
    assert_eq!(emitted.iter().find(lost), None);
    indexer.stop().await;
}
