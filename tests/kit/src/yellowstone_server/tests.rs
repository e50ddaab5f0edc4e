//! Yellowstone server and client together: order, replay, limits and refusals of the reference server.

mod bank_ids;
mod limits;

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
const PATIENCE: Duration = Duration::from_secs(60);

/// Long enough for the server to have looked at everything that was sent before.
const SETTLING: Duration = Duration::from_millis(500);

const GENESIS: u64 = 100;

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("a step hangs")
}

/// A chain of slots with writes of one byte, and a server of it.
struct Served {
    chain: ScriptedChain,
    server: YellowstoneServer,
}

impl Served {
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
    let served = Served::start().await;
    served.server.hold_requests(true);
    let mut stream = served.open(request(1)).await;
    served.created(101);
    served.write(101, "a", 1);
    while served.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    // The message after which the request is applied is not lost to a race of the two.
    tokio::time::sleep(SETTLING).await;
    served.server.hold_requests(false);
    tokio::time::sleep(SETTLING).await;
    served.write(101, "b", 2);
    served.status(101, SlotStatus::Processed);
    assert_eq!(
        come(&mut stream, "101 processed").await,
        ["101 b=2", "101 block", "101 processed"],
        "it looks whole, and its first write is missing"
    );
}

#[tokio::test]
async fn a_replay_holds_frozen_blocks_alone_with_last_writes_and_parents() {
    let served = Served::start().await;
    served.pass(101);
    served.status(101, SlotStatus::Confirmed);
    served.created(102);
    served.write(102, "a", 7);
    let mut stream = served.open(from(101)).await;
    assert_eq!(come(&mut stream, "101 confirmed").await, WHOLE_101);
    served.write(102, "b", 8);
    served.status(102, SlotStatus::Processed);
    assert_eq!(
        come(&mut stream, "102 processed").await,
        ["102 b=8", "102 block", "102 processed"],
        "nothing of the open slot is replayed"
    );
    let mut again = served.open(from(101)).await;
    let parent = loop {
        if let Body::Slot(update) = soon(again.next()).await.expect("an update").body {
            break update.parent;
        }
    };
    assert_eq!(parent, Some(100), "replayed statuses name the parent");
}

#[tokio::test]
async fn other_servers_replay_every_write_or_number_them_otherwise() {
    let served = Served::start().await;
    served.pass(101);
    served.server.on_replay(ReplayPolicy::EveryWrite);
    let mut stream = served.open(from(101)).await;
    let writes = come(&mut stream, "101 block").await;
    assert_eq!(writes[..2], ["101 a=0", "101 b=1"]);
    served.server.on_replay(ReplayPolicy::OtherVersions);
    let mut stream = served.open(from(101)).await;
    let first = soon(stream.next()).await.expect("an update");
    assert!(matches!(first.body, Body::Account(write) if write.write_version < 10));
}

#[tokio::test]
async fn a_block_that_is_frozen_while_the_replay_is_put_together_comes_twice() {
    let served = Served::start().await;
    served.server.hold_replays(true);
    served.pass(101);
    let mut stream = served.open(from(101)).await;
    while served.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    served.pass(102);
    served.server.hold_replays(false);
    let said = come(&mut stream, "102 processed").await;
    assert_eq!(said.iter().filter(|said| *said == "101 block").count(), 1);
    let said = come(&mut stream, "102 processed").await;
    assert_eq!(said.first().map(String::as_str), Some("102 created"));
}

#[tokio::test]
async fn dead_slots_and_lost_forks_are_not_replayed() {
    let served = Served::start().await;
    served.pass(101);
    served.pass(102);
    served.status(102, SlotStatus::Dead);
    served.chain.lock().tree.open(103, 100);
    served.status(103, SlotStatus::CreatedBank);
    served.status(103, SlotStatus::Processed);
    served.status(103, SlotStatus::Finalized);
    let mut stream = served.open(from(100)).await;
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
    let served = Served::start().await;
    let mut stream = served.listening(request(1)).await;
    served.server.hold_requests(true);
    served.pass(102);
    for generation in 2..5 {
        let from_slot = (generation == 2).then_some(102);
        let replaced = Request {
            from_slot,
            ..request(generation)
        };
        soon(stream.replace(replaced)).await.expect("sent");
    }
    while served.server.later_requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    served.server.hold_requests(false);
    come(&mut stream, "102 processed").await;
    tokio::time::sleep(SETTLING).await;
    served.created(103);
    let update = soon(stream.next()).await.expect("an update");
    assert_eq!(brief(&update), "103 created", "the replay is forgotten");
    assert_eq!(update.filters, ["slots-4"], "it names the filter in force");
}

#[tokio::test]
async fn a_replaced_filter_loses_nothing_for_the_keys_that_stay() {
    let served = Served::start().await;
    let mut stream = served.listening(request(1)).await;
    served.created(102);
    for generation in 2..40 {
        let replaced = stream.replace(request(generation));
        soon(replaced).await.expect("sent");
        served.write(102, "a", u8::try_from(generation).expect("few"));
    }
    served.status(102, SlotStatus::Processed);
    let said = come(&mut stream, "102 processed").await;
    let writes = said.iter().filter(|said| said.contains("a=")).count();
    assert_eq!(writes, 38);
}

#[tokio::test]
async fn a_later_request_is_replayed_for_unless_the_server_ignores_that() {
    let served = Served::start().await;
    let mut stream = served.listening(request(1)).await;
    served.pass(102);
    come(&mut stream, "102 processed").await;
    soon(stream.replace(from(102))).await.expect("sent");
    assert_eq!(come(&mut stream, "102 processed").await[0], "102 b=2");

    served
        .server
        .configure(|settings| settings.replays_later = false);
    soon(stream.replace(from(102))).await.expect("sent");
    while served.server.later_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    served.created(103);
    assert_eq!(come(&mut stream, "103 created").await, ["103 created"]);
}

#[tokio::test]
async fn a_replay_that_cannot_be_is_refused_in_the_servers_words() {
    let served = Served::start().await;
    let refused = async |from_slot: u64| end(&mut served.open(from(from_slot)).await).await;
    let error = refused(5).await.to_string();
    let words = "broadcast from 5 is not available, last available: 100";
    assert!(error.contains(words), "{error}");
    served.server.restart();
    let error = refused(100).await.to_string();
    assert!(error.contains("Internal: failed to get replay response"));
    served
        .server
        .configure(|settings| settings.stored_slots = 0);
    let error = refused(100).await.to_string();
    assert!(error.contains("Internal: from_slot is not supported"));
}

#[tokio::test]
async fn blocks_beyond_those_stored_are_forgotten_once_enough_are_final() {
    let served = Served::start().await;
    served
        .server
        .configure(|settings| settings.stored_slots = 15);
    for slot in 101..130 {
        served.pass(slot);
        served.status(slot, SlotStatus::Confirmed);
    }
    let mut whole = served.open(from(100)).await;
    come(&mut whole, "129 confirmed").await;
    for slot in 101..128 {
        served.status(slot, SlotStatus::Finalized);
    }
    let error = end(&mut served.open(from(100)).await).await;
    assert!(error.is_replay_unavailable(), "{error}");
    assert!(error.to_string().contains("last available: 115"), "{error}");
}

#[tokio::test]
async fn confirmed_streams_carry_whole_blocks_once() {
    let served = Served::start().await;
    let confirmed = Request {
        commitment: Commitment::Confirmed,
        ..request(1)
    };
    let mut stream = served.listening(confirmed).await;
    served.write(101, "a", 1);
    served.status(101, SlotStatus::Processed);
    served.pass(102);
    // Confirms its parent, too.
    served.status(102, SlotStatus::Confirmed);
    served.status(102, SlotStatus::Finalized);
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

#[tokio::test]
async fn finalized_streams_carry_whole_blocks_once_they_are_final() {
    let served = Served::start().await;
    let finalized = Request {
        commitment: Commitment::Finalized,
        ..request(1)
    };
    let mut stream = served.listening(finalized).await;
    served.write(101, "a", 1);
    served.status(101, SlotStatus::Processed);
    served.status(101, SlotStatus::Confirmed);
    served.pass(102);
    served.status(102, SlotStatus::Confirmed);
    // Finalizes its parent, too.
    served.status(102, SlotStatus::Finalized);
    assert_eq!(
        come(&mut stream, "102 finalized").await,
        [
            "101 processed",
            "101 confirmed",
            "102 created",
            "102 processed",
            "102 confirmed",
            "100 block",
            "101 a=1",
            "101 block",
            "102 b=2",
            "102 executed",
            "102 a=2",
            "102 block",
            "102 finalized",
        ]
    );
}
