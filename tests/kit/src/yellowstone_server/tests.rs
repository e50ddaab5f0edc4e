//! Yellowstone server and client together: order, replay, limits and refusals of the reference server.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use sluice_geyser::{
    AccountFilter, Body, Commitment, Request, SlotStatus, Stream, StreamError, TransactionFilter,
    Update,
};
use solana_pubkey::Pubkey;
use tokio::time::timeout;

use super::*;
use crate::{
    accounts::Content,
    names::address,
    scripted_chain::State,
    updates::{key, program, transaction},
};

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

const GENESIS: u64 = 100;

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("a step hangs")
}

/// A chain of slots with writes of one byte, and a server of it.
struct Script {
    chain: ScriptedChain,
    server: YellowstoneServer,
}

impl Script {
    async fn start() -> Self {
        Self::with_queue(CLIENT_QUEUE).await
    }

    async fn with_queue(client_queue: usize) -> Self {
        let chain = ScriptedChain::new(GENESIS, State::new());
        let server = YellowstoneServer::with_queue(chain.clone(), client_queue).await;
        Self {
            chain,
            server: server.expect("a free port"),
        }
    }

    async fn open(&self, request: Request) -> Stream {
        let opened = soon(Stream::open(self.server.endpoint(), request)).await;
        opened.expect("accepted")
    }

    /// A stream whose request is in force, as a status of the first slot shows.
    async fn listening(&self, request: Request) -> Stream {
        let mut stream = self.open(request).await;
        let in_force = async {
            loop {
                self.status(GENESIS, SlotStatus::Completed);
                let quickly = Duration::from_millis(5);
                if let Ok(update) = timeout(quickly, stream.next()).await {
                    break update.expect("in force");
                }
            }
        };
        soon(in_force).await;
        until(
            &mut stream,
            |said| said == "101 created",
            || self.created(101),
        )
        .await;
        stream
    }

    fn created(&self, slot: u64) {
        let mut record = self.chain.lock();
        if !record.tree.contains(slot) {
            record.tree.open(slot, slot - 1);
        }
        drop(record);
        let parent = Some(slot - 1);
        let created = Message::status(slot, SlotStatus::CreatedBank, parent);
        self.chain.report(created);
    }

    fn status(&self, slot: u64, status: SlotStatus) {
        self.chain.report(Message::status(slot, status, None));
    }

    fn write(&self, slot: u64, name: &str, byte: u8) {
        let content = Content::Broken {
            owner: program(),
            data: Bytes::copy_from_slice(&[byte]),
        };
        let write = {
            let mut record = self.chain.lock();
            record.tree.write(slot, address(name), content)
        };
        self.chain.report(Message::write(slot, &write));
    }

    fn execute(&self, slot: u64, number: u8) {
        let Body::Transaction(update) = transaction(slot, number).body else {
            unreachable!("it is one")
        };
        let executed = self.chain.lock().tree.execute(slot, *update);
        let body = Body::Transaction(Box::new(executed));
        self.chain.report(Message::Update(body));
    }

    /// A whole slot with one write of its own number to each of two accounts, the first written twice.
    fn pass(&self, slot: u64) {
        let byte = u8::try_from(slot - GENESIS).expect("few slots");
        self.created(slot);
        self.write(slot, "a", 0);
        self.write(slot, "b", byte);
        self.execute(slot, byte);
        self.write(slot, "a", byte);
        self.status(slot, SlotStatus::Processed);
    }
}

/// Everything of the program, and slots, under these names.
fn request(generation: u32) -> Request {
    let accounts = AccountFilter {
        owners: vec![program()],
        ..AccountFilter::default()
    };
    Request {
        accounts: BTreeMap::from([(format!("accounts-{generation}"), accounts)]),
        transactions: BTreeMap::from([("all".to_owned(), TransactionFilter::default())]),
        slots: Some(format!("slots-{generation}")),
        blocks_meta: Some("blocks_meta".to_owned()),
        ..Request::default()
    }
}

fn from(slot: u64) -> Request {
    Request {
        from_slot: Some(slot),
        ..request(1)
    }
}

/// An update in a word or two.
fn brief(update: &Update) -> String {
    match &update.body {
        Body::Account(write) => {
            let name = if write.pubkey == address("a") {
                "a"
            } else {
                "b"
            };
            format!("{} {name}={}", write.slot, write.data[0])
        }
        Body::Transaction(transaction) => format!("{} executed", transaction.slot),
        Body::BlockMeta(block) => format!("{} block", block.slot),
        Body::Slot(update) => {
            let status = match update.status {
                SlotStatus::CreatedBank => "created",
                SlotStatus::Processed => "processed",
                SlotStatus::Confirmed => "confirmed",
                SlotStatus::Finalized => "finalized",
                _ => "other",
            };
            format!("{} {status}", update.slot)
        }
    }
}

/// What comes until this does, after it was reported.
async fn until(stream: &mut Stream, last: impl Fn(&str) -> bool, report: impl Fn()) -> Vec<String> {
    let mut said = Vec::new();
    report();
    loop {
        let update = soon(stream.next()).await.expect("an update");
        said.push(brief(&update));
        if said.last().is_some_and(|said| last(said)) {
            return said;
        }
    }
}

async fn come(stream: &mut Stream, last: &str) -> Vec<String> {
    until(stream, |said| said == last, || {}).await
}

async fn end(stream: &mut Stream) -> StreamError {
    loop {
        if let Err(error) = soon(stream.next()).await {
            return error;
        }
    }
}

const WHOLE_101: [&str; 6] = [
    "101 b=1",
    "101 executed",
    "101 a=1",
    "101 block",
    "101 processed",
    "101 confirmed",
];

#[tokio::test]
async fn what_passes_before_the_first_request_is_applied_is_lost() {
    let script = Script::start().await;
    script.server.hold_requests(true);
    let mut stream = script.open(request(1)).await;
    script.created(101);
    script.write(101, "a", 1);
    while script.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    // The message after which the request is applied is not lost to a race of the two.
    tokio::time::sleep(Duration::from_millis(50)).await;
    script.server.hold_requests(false);
    tokio::time::sleep(Duration::from_millis(50)).await;
    script.write(101, "b", 2);
    script.status(101, SlotStatus::Processed);
    assert_eq!(
        come(&mut stream, "101 processed").await,
        ["101 b=2", "101 block", "101 processed"],
        "it looks whole, and its first write is missing"
    );
}

#[tokio::test]
async fn a_replay_holds_frozen_blocks_alone_with_last_writes_and_parents() {
    let script = Script::start().await;
    script.pass(101);
    script.status(101, SlotStatus::Confirmed);
    script.created(102);
    script.write(102, "a", 7);
    let mut stream = script.open(from(101)).await;
    assert_eq!(come(&mut stream, "101 confirmed").await, WHOLE_101);
    script.write(102, "b", 8);
    script.status(102, SlotStatus::Processed);
    assert_eq!(
        come(&mut stream, "102 processed").await,
        ["102 b=8", "102 block", "102 processed"],
        "nothing of the open slot is replayed"
    );
    let mut again = script.open(from(101)).await;
    let parent = loop {
        if let Body::Slot(update) = soon(again.next()).await.expect("an update").body {
            break update.parent;
        }
    };
    assert_eq!(parent, Some(100), "replayed statuses name the parent");
}

#[tokio::test]
async fn other_servers_replay_every_write_or_number_them_otherwise() {
    let script = Script::start().await;
    script.pass(101);
    script.server.on_replay(ReplayPolicy::EveryWrite);
    let mut stream = script.open(from(101)).await;
    let writes = come(&mut stream, "101 block").await;
    assert_eq!(writes[..2], ["101 a=0", "101 b=1"]);
    script.server.on_replay(ReplayPolicy::OtherVersions);
    let mut stream = script.open(from(101)).await;
    let first = soon(stream.next()).await.expect("an update");
    assert!(matches!(first.body, Body::Account(write) if write.write_version < 10));
}

#[tokio::test]
async fn a_block_that_is_frozen_while_the_replay_is_put_together_comes_twice() {
    let script = Script::start().await;
    script.server.hold_replays(true);
    script.pass(101);
    let mut stream = script.open(from(101)).await;
    while script.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    script.pass(102);
    script.server.hold_replays(false);
    let said = come(&mut stream, "102 processed").await;
    assert_eq!(said.iter().filter(|said| *said == "101 block").count(), 1);
    let said = come(&mut stream, "102 processed").await;
    assert_eq!(said.first().map(String::as_str), Some("102 created"));
}

#[tokio::test]
async fn dead_slots_and_lost_forks_are_not_replayed() {
    let script = Script::start().await;
    script.pass(101);
    script.pass(102);
    script.status(102, SlotStatus::Dead);
    script.chain.lock().tree.open(103, 100);
    script.status(103, SlotStatus::CreatedBank);
    script.status(103, SlotStatus::Processed);
    script.status(103, SlotStatus::Finalized);
    let mut stream = script.open(from(100)).await;
    assert_eq!(
        come(&mut stream, "103 finalized").await,
        [
            "100 block",
            "100 processed",
            "100 confirmed",
            "100 finalized",
            "103 block",
            "103 processed",
            "103 finalized"
        ]
    );
}

#[tokio::test]
async fn only_the_newest_of_the_requests_that_wait_is_kept() {
    let script = Script::start().await;
    let mut stream = script.listening(request(1)).await;
    script.server.hold_requests(true);
    script.pass(102);
    for generation in 2..5 {
        let from_slot = (generation == 2).then_some(102);
        let replaced = Request {
            from_slot,
            ..request(generation)
        };
        soon(stream.replace(replaced)).await.expect("sent");
    }
    while script.server.later_requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    script.server.hold_requests(false);
    come(&mut stream, "102 processed").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    script.created(103);
    let update = soon(stream.next()).await.expect("an update");
    assert_eq!(brief(&update), "103 created", "the replay is forgotten");
    assert_eq!(update.filters, ["slots-4"], "it names the filter in force");
}

#[tokio::test]
async fn a_replaced_filter_loses_nothing_for_the_keys_that_stay() {
    let script = Script::start().await;
    let mut stream = script.listening(request(1)).await;
    script.created(102);
    for generation in 2..40 {
        let replaced = stream.replace(request(generation));
        soon(replaced).await.expect("sent");
        script.write(102, "a", u8::try_from(generation).expect("few"));
    }
    script.status(102, SlotStatus::Processed);
    let said = come(&mut stream, "102 processed").await;
    let writes = said.iter().filter(|said| said.contains("a=")).count();
    assert_eq!(writes, 38);
}

#[tokio::test]
async fn a_later_request_is_replayed_for_unless_the_server_ignores_that() {
    let script = Script::start().await;
    let mut stream = script.listening(request(1)).await;
    script.pass(102);
    come(&mut stream, "102 processed").await;
    soon(stream.replace(from(102))).await.expect("sent");
    assert_eq!(come(&mut stream, "102 processed").await[0], "102 b=2");

    script
        .server
        .configure(|settings| settings.replays_later = false);
    soon(stream.replace(from(102))).await.expect("sent");
    while script.server.later_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    script.created(103);
    assert_eq!(come(&mut stream, "103 created").await, ["103 created"]);
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_in_the_servers_words() {
    let script = Script::start().await;
    let refused = async |from_slot: u64| end(&mut script.open(from(from_slot)).await).await;
    let error = refused(5).await.to_string();
    let words = "broadcast from 5 is not available, last available: 100";
    assert!(error.contains(words), "{error}");
    script.server.restart();
    let error = refused(100).await.to_string();
    assert!(error.contains("Internal: failed to get replay response"));
    script
        .server
        .configure(|settings| settings.stored_slots = 0);
    let error = refused(100).await.to_string();
    assert!(error.contains("Internal: from_slot is not supported"));
}

#[tokio::test]
async fn blocks_beyond_those_stored_are_forgotten_once_enough_are_final() {
    let script = Script::start().await;
    script
        .server
        .configure(|settings| settings.stored_slots = 15);
    for slot in 101..130 {
        script.pass(slot);
        script.status(slot, SlotStatus::Confirmed);
    }
    let mut whole = script.open(from(100)).await;
    come(&mut whole, "129 confirmed").await;
    for slot in 101..128 {
        script.status(slot, SlotStatus::Finalized);
    }
    let error = end(&mut script.open(from(100)).await).await;
    assert!(error.is_replay_unavailable(), "{error}");
    assert!(error.to_string().contains("last available: 115"), "{error}");
}

#[tokio::test]
async fn limits_end_the_stream_with_the_servers_words() {
    let script = Script::start().await;
    let limits = FilterLimits {
        account_max: Some(1),
        owner_reject: [key(8)].into(),
        ..FilterLimits::default()
    };
    script.server.configure(|settings| settings.limits = limits);
    let filter = |pubkeys: Vec<Pubkey>, owners: Vec<Pubkey>| Request {
        accounts: BTreeMap::from([(
            "keys".to_owned(),
            AccountFilter {
                pubkeys,
                owners,
                ..AccountFilter::default()
            },
        )]),
        ..request(1)
    };
    let error = end(&mut script.open(filter(vec![key(1), key(2)], vec![])).await).await;
    let words = "failed to create filter: Max amount of Pubkeys reached, only 1 allowed";
    assert!(error.to_string().contains(words), "{error}");
    let mut live = script.listening(filter(vec![key(1)], vec![])).await;
    let rejected = live.replace(filter(vec![], vec![key(8)]));
    soon(rejected).await.expect("sent");
    let error = end(&mut live).await;
    assert!(matches!(error, StreamError::Refused(_)), "{error}");
    let words = format!("Pubkey {} in filters is not allowed", key(8));
    assert!(error.to_string().contains(&words), "{error}");
}

#[tokio::test]
async fn a_request_above_the_limit_closes_the_stream_without_a_status() {
    let script = Script::start().await;
    let mut stream = script.listening(request(1)).await;
    let pubkeys = (0..100_000_u64).map(|number| address(&number.to_string()));
    let filter = AccountFilter {
        pubkeys: pubkeys.collect(),
        ..AccountFilter::default()
    };
    let large = Request {
        accounts: BTreeMap::from([("keys".to_owned(), filter)]),
        ..request(2)
    };
    soon(stream.replace(large)).await.expect("sent");
    assert_eq!(end(&mut stream).await, StreamError::Closed);
}

#[tokio::test]
async fn a_subscriber_behind_the_ring_has_lagged() {
    let script = Script::start().await;
    script.server.configure(|settings| settings.ring = 3);
    script.server.hold_replays(true);
    let mut stream = script.open(from(100)).await;
    while script.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    script.pass(101);
    script.server.hold_replays(false);
    let error = end(&mut stream).await;
    assert!(matches!(error, StreamError::Lagged(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("lagged to receive geyser messages")
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_has_lagged() {
    let script = Script::with_queue(4).await;
    let mut stream = script.listening(request(1)).await;
    // More than the client's buffers and the queue hold.
    let large = Content::Broken {
        owner: program(),
        data: Bytes::from(vec![0; 1 << 20]),
    };
    for _ in 0..64 {
        let write = script
            .chain
            .lock()
            .tree
            .write(101, address("a"), large.clone());
        script.chain.report(Message::write(101, &write));
    }
    let error = end(&mut stream).await;
    assert!(matches!(error, StreamError::Lagged(_)), "{error}");
    assert!(error.to_string().contains("lagged to send an update"));
}

#[tokio::test]
async fn confirmed_streams_carry_whole_blocks_once() {
    let script = Script::start().await;
    let confirmed = Request {
        commitment: Commitment::Confirmed,
        ..request(1)
    };
    let mut stream = script.listening(confirmed).await;
    script.write(101, "a", 1);
    script.status(101, SlotStatus::Processed);
    script.pass(102);
    // Confirms its parent, too.
    script.status(102, SlotStatus::Confirmed);
    script.status(102, SlotStatus::Finalized);
    assert_eq!(
        come(&mut stream, "102 finalized").await,
        [
            "101 processed",
            "102 created",
            "102 processed",
            "101 a=1",
            "101 block",
            "102 b=2",
            "102 executed",
            "102 a=2",
            "102 block",
            "102 confirmed",
            "102 finalized",
        ]
    );
}
