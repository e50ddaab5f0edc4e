//! Edits of a filter while transactions flow, against a server that behaves as the reference server does.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use sluice_geyser::{Body, SlotStatus, TransactionUpdate};
use sluice_store::{
    Access, Commitment, EventKind, FilterEdit, FilterLimits, Filters, Store, WebhookDefinition,
    WebhookId,
};
use solana_signature::Signature;
use tokio::{task::JoinHandle, time::sleep};

use sluice_harness::indexer::{IndexerHarness, soon};
use sluice_testkit::{
    scripted_chain::{Message, ScriptedChain, State},
    updates::{key, transaction},
    yellowstone_server::YellowstoneServer,
};

use crate::{expectations::Ending, on_both};

on_both!(
    transactions_that_flow_while_the_filter_is_edited_are_all_sent,
    ten_edits_a_second_lose_nothing_and_leave_the_live_stream_open,
);

const FIRST_SLOT: u64 = 10;

/// Transactions of a slot, and the time between two of them: a request is applied between any two.
const TRANSACTIONS: u64 = 8;
const BETWEEN_TRANSACTIONS: Duration = Duration::from_millis(5);

/// How many slots finality is behind.
const FINALITY: u64 = 8;

/// How often an account comes to a filter or goes from it, and the time between two edits.
#[derive(Clone, Copy)]
struct Edits {
    count: u8,
    pause: Duration,
}

/// Messages read at once.
const PAGE: u32 = 500;

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
};

/// A chain on which transactions with one account flow, numbered by their fees.
struct Flow {
    chain: ScriptedChain,
    /// The highest slot that is confirmed.
    confirmed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Flow {
    fn start(chain: ScriptedChain) -> (Arc<AtomicU64>, Arc<AtomicBool>, JoinHandle<()>) {
        let flow = Self {
            chain,
            confirmed: Arc::new(AtomicU64::new(FIRST_SLOT)),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let (confirmed, stop) = (Arc::clone(&flow.confirmed), Arc::clone(&flow.stop));
        (confirmed, stop, tokio::spawn(flow.run()))
    }

    async fn run(self) {
        let mut slot = FIRST_SLOT;
        while !self.stop.load(Ordering::SeqCst) {
            self.chain.lock().tree.open(slot + 1, slot);
            slot += 1;
            let status = |slot, status| {
                let status = Message::status(slot, status, Some(slot - 1));
                self.chain.report(status);
            };
            status(slot, SlotStatus::CreatedBank);
            for number in 0..TRANSACTIONS {
                self.execute(slot, slot * TRANSACTIONS + number);
                sleep(BETWEEN_TRANSACTIONS).await;
            }
            status(slot, SlotStatus::Processed);
            status(slot, SlotStatus::Confirmed);
            self.confirmed.store(slot, Ordering::SeqCst);
            if slot > FIRST_SLOT + FINALITY {
                status(slot - FINALITY, SlotStatus::Finalized);
            }
        }
        let status = Message::status(slot, SlotStatus::Finalized, None);
        self.chain.report(status);
    }

    fn execute(&self, slot: u64, number: u64) {
        let Body::Transaction(update) = transaction(slot, 0).body else {
            unreachable!("it is one")
        };
        let mut signature = [0; 64];
        signature[..8].copy_from_slice(&number.to_le_bytes());
        let transaction = TransactionUpdate {
            signature: Signature::from(signature),
            fee: number,
            account_keys: vec![key(9), key(1)],
            log_messages: Vec::new(),
            ..*update
        };
        let executed = self.chain.lock().tree.execute(slot, transaction);
        let executed = Body::Transaction(Box::new(executed));
        self.chain.report(Message::Update(executed));
    }
}

fn accounts(number: u8) -> Filters {
    Filters {
        accounts: vec![key(number)],
        programs: Vec::new(),
    }
}

/// Adds an account to each webhook and takes it away again, by turns.
async fn edit(store: &Store, webhooks: &[WebhookId], edits: Edits) {
    let each = u8::try_from(webhooks.len()).expect("few");
    for (number, webhook) in (0..edits.count).zip(webhooks.iter().cycle()) {
        sleep(edits.pause).await;
        let (add, remove) = if (number / each).is_multiple_of(2) {
            (accounts(100 + number), Filters::default())
        } else {
            (Filters::default(), accounts(100 + number - each))
        };
        let edit = FilterEdit { add, remove };
        let edited = store.edit_filters(&Access::All, webhook, &edit, LIMITS, None);
        edited.await.expect("written").expect("exists");
    }
}

/// Number of each transaction that the webhook was sent, in order.
async fn sent(store: &Store, webhook: &WebhookId) -> Vec<u64> {
    let (mut sent, mut last) = (Vec::new(), 0);
    loop {
        let page = store
            .messages_after(&Access::All, webhook, last, PAGE)
            .await;
        let page = page.expect("read").expect("exists");
        if page.messages.is_empty() {
            return sent;
        }
        for message in page.messages {
            assert_eq!(message.sequence, last + 1, "contiguous");
            last = message.sequence;
            let body: Value = serde_json::from_str(&message.body).expect("JSON");
            assert_eq!(body["type"], "transaction", "a gap was reported: {body}");
            sent.push(body["data"]["fee"].as_u64().expect("a number"));
        }
    }
}

async fn transactions_that_flow_while_the_filter_is_edited_are_all_sent(harness: IndexerHarness) {
    let edits = Edits {
        count: 20,
        pause: Duration::from_millis(400),
    };
    flow_through(harness, edits).await;
}

async fn ten_edits_a_second_lose_nothing_and_leave_the_live_stream_open(harness: IndexerHarness) {
    let edits = Edits {
        count: 60,
        pause: Duration::from_millis(100),
    };
    flow_through(harness, edits).await;
}

/// Lets transactions flow while the filters of a webhook at each commitment are edited, and judges what each was sent.
async fn flow_through(mut harness: IndexerHarness, edits: Edits) {
    let chain = ScriptedChain::new(FIRST_SLOT, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    harness.listen_to(server.endpoint());
    let mut webhooks = Vec::new();
    for (number, commitment) in (1..).zip(Commitment::ALL) {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::Transaction].into_iter().collect(),
            filters: accounts(1),
            ..harness.definition()
        };
        webhooks.push(harness.create_temporary(number, definition).await);
    }
    let (confirmed, stop, flow) = Flow::start(chain);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(FIRST_SLOT).await;
    let first = confirmed.load(Ordering::SeqCst) + 1;
    indexer.until_checkpoint_past(first).await;

    edit(&harness.store, &webhooks, edits).await;
    stop.store(true, Ordering::SeqCst);
    soon(flow).await.expect("no panic");
    let last = confirmed.load(Ordering::SeqCst);
    indexer.until_checkpoint_past(last).await;
    soon(until_final(&harness.store, last)).await;

    for webhook in &webhooks {
        let sent = sent(&harness.store, webhook).await;
        judge(&sent, first..last + 1);
    }
    let metrics = indexer.get("/metrics").await.text().await.expect("text");
    let ended = "sluice_indexer_stream_sessions_ended_total";
    let ended: Vec<_> = metrics
        .lines()
        .filter(|line| line.starts_with(ended))
        .collect();
    println!("{} streams opened", server.requests().len());
    assert_eq!(ended, [""; 0], "the live stream was opened again");
    indexer.stop().await;
}

/// Waits until a slot is stored as final.
async fn until_final(store: &Store, slot: u64) {
    while store.checkpoint(Commitment::Finalized).await.expect("read") < Some(slot) {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Each transaction of these slots was sent, and once.
fn judge(sent: &[u64], slots: Range<u64>) {
    let once: BTreeSet<u64> = sent.iter().copied().collect();
    assert_eq!(once.len(), sent.len(), "a transaction was sent twice");
    let flowed = slots.start * TRANSACTIONS..slots.end * TRANSACTIONS;
    let count = flowed.end - flowed.start;
    let lost: Vec<u64> = flowed.filter(|number| !once.contains(number)).collect();
    let slots: BTreeSet<u64> = lost.iter().map(|number| number / TRANSACTIONS).collect();
    println!("{count} transactions");
    assert!(
        lost.is_empty(),
        "{} of {count} transactions lost, in slots {slots:?}",
        lost.len()
    );
}
