//! Edits of a filter while transactions flow, against a server that behaves as the reference server does.

use std::{
    collections::BTreeSet,
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

on_both!(transactions_that_flow_while_the_filter_is_edited_are_all_sent);

const FIRST_SLOT: u64 = 10;

/// Transactions of a slot, and the time between two of them: a request is applied between any two.
const TRANSACTIONS: u64 = 8;
const BETWEEN_TRANSACTIONS: Duration = Duration::from_millis(5);

/// How often an account comes to the filter or goes from it, and the time between two edits.
const EDITS: u8 = 20;
const BETWEEN_EDITS: Duration = Duration::from_millis(400);

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
        }
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

/// Adds an account to the webhook and takes it away again, by turns.
async fn edit(store: &Store, webhook: &WebhookId) {
    for number in 0..EDITS {
        sleep(BETWEEN_EDITS).await;
        let (add, remove) = if number % 2 == 0 {
            (accounts(100 + number), Filters::default())
        } else {
            (Filters::default(), accounts(100 + number - 1))
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

async fn transactions_that_flow_while_the_filter_is_edited_are_all_sent(
    mut harness: IndexerHarness,
) {
    let chain = ScriptedChain::new(FIRST_SLOT, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    harness.listen_to(server.endpoint());
    let definition = WebhookDefinition {
        commitment: Commitment::Confirmed,
        events: [EventKind::Transaction].into_iter().collect(),
        filters: accounts(1),
        ..harness.definition()
    };
    let webhook = harness.create_temporary(1, definition).await;
    let (confirmed, stop, flow) = Flow::start(chain);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(FIRST_SLOT).await;
    let first = confirmed.load(Ordering::SeqCst) + 1;
    indexer.until_checkpoint_past(first).await;

    edit(&harness.store, &webhook).await;
    stop.store(true, Ordering::SeqCst);
    soon(flow).await.expect("no panic");
    let last = confirmed.load(Ordering::SeqCst);
    indexer.until_checkpoint_past(last).await;

    let sent = sent(&harness.store, &webhook).await;
    let once: BTreeSet<u64> = sent.iter().copied().collect();
    assert_eq!(once.len(), sent.len(), "a transaction was sent twice");
    let flowed = first * TRANSACTIONS..(last + 1) * TRANSACTIONS;
    let count = flowed.end - flowed.start;
    let lost: Vec<u64> = flowed.filter(|number| !once.contains(number)).collect();
    let slots: BTreeSet<u64> = lost.iter().map(|number| number / TRANSACTIONS).collect();
    let streams = server.requests().len();
    println!("{count} transactions, {streams} streams opened");
    assert!(
        lost.is_empty(),
        "{} of {count} transactions lost, in slots {slots:?}, {streams} streams opened",
        lost.len()
    );
    indexer.stop().await;
}
