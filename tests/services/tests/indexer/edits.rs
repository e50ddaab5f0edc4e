//! Edits of a filter while transactions flow, against a server that behaves as the reference server does.

use std::time::Duration;

use sluice_geyser::{Body, TransactionUpdate};
use sluice_store::{
    Access, Commitment, EventKind, FilterEdit, FilterLimits, Filters, Store, WebhookDefinition,
    WebhookId,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, soon};
use sluice_testkit::{
    scripted_chain::{BlockId, ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::{key, transaction},
    yellowstone_server::YellowstoneServer,
};

use crate::{
    expectations::Ending,
    flow::{assert_one_session, judge, numbers, sent, until_final},
    on_both,
};

on_both!(
    transactions_that_flow_while_the_filter_is_edited_are_all_sent,
    ten_edits_a_second_lose_nothing_and_leave_the_live_stream_open,
    an_edit_is_in_force_while_the_slot_that_was_open_is_not_confirmed,
    a_fork_that_was_open_at_an_edit_and_wins_loses_nothing,
);

const PACE: Pace = Pace {
    genesis: 10,
    transactions: 8,
    between: Duration::from_millis(5),
    confirmed_after: 0,
    finalized_after: 8,
};

/// How often an account comes to a filter or goes from it.
#[derive(Clone, Copy)]
struct Edits {
    count: u16,
    /// Edits of a slot in which there are any.
    in_slot: u16,
    /// Slots from one of those to the next.
    slots: u64,
}

/// Transactions between two edits of one slot: four edits are spread over its eight.
const BETWEEN_EDITS: u32 = 2;

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
    token_owners: 100,
};

fn accounts(number: u8) -> Filters {
    Filters {
        accounts: vec![key(number)],
        programs: Vec::new(),
        ..Filters::default()
    }
}

/// An account in which nothing happens.
fn idle(number: u16) -> Filters {
    let mut bytes = [200; 32];
    bytes[..2].copy_from_slice(&number.to_le_bytes());
    Filters {
        accounts: vec![Pubkey::new_from_array(bytes)],
        ..accounts(1)
    }
}

/// Waits until so many more slots have passed.
async fn pass(flow: &TransactionFlow, slots: u64) {
    let last = flow.confirmed() + slots;
    while flow.confirmed() < last {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Adds an account to each webhook and takes it away again, by turns.
async fn edit(
    store: &Store,
    webhooks: &[WebhookId],
    edits: Edits,
    flow: &TransactionFlow,
    pace: Pace,
) {
    let each = u16::try_from(webhooks.len()).expect("few");
    for (number, webhook) in (0..edits.count).zip(webhooks.iter().cycle()) {
        if number.is_multiple_of(edits.in_slot) {
            soon(pass(flow, edits.slots)).await;
        } else {
            sleep(pace.between * BETWEEN_EDITS).await;
        }
        let (add, remove) = if (number / each).is_multiple_of(2) {
            (idle(number), Filters::default())
        } else {
            (Filters::default(), idle(number - each))
        };
        let edit = FilterEdit { add, remove };
        let edited = store.edit_filters(&Access::All, webhook, &edit, LIMITS, None);
        edited.await.expect("written").expect("exists");
    }
}

async fn transactions_that_flow_while_the_filter_is_edited_are_all_sent(harness: IndexerHarness) {
    let edits = Edits {
        count: 20,
        in_slot: 1,
        slots: 8,
    };
    flow_through(harness, PACE, edits).await;
}

/// A minute of slots of 400 ms is 150 of them, and ten edits a second are four of each.
async fn ten_edits_a_second_lose_nothing_and_leave_the_live_stream_open(harness: IndexerHarness) {
    const IN_SLOT: u16 = 4;
    let (slots, between) = if harness.file().is_some() {
        // They pass four times as fast: the indexer looks for edits by wall time, and has many requests to make of them still.
        (150, Duration::from_millis(12))
    } else {
        // The length is for the stream, which knows no database: a tenth shows PostgreSQL's part, at the chain's own pace.
        (15, Duration::from_millis(50))
    };
    let edits = Edits {
        count: slots * IN_SLOT,
        in_slot: IN_SLOT,
        slots: 1,
    };
    flow_through(harness, Pace { between, ..PACE }, edits).await;
}

/// Lets transactions flow while the filters of a webhook at each commitment are edited, and judges what each was sent.
async fn flow_through(mut harness: IndexerHarness, pace: Pace, edits: Edits) {
    let chain = ScriptedChain::new(pace.genesis, State::new());
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
    let flow = TransactionFlow::start(chain, pace, |_| vec![key(9), key(1)]);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(pace.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;

    edit(&harness.store, &webhooks, edits, &flow, pace).await;
    let last = soon(flow.end()).await;
    indexer.until_checkpoint_past(last).await;
    soon(until_final(&harness.store, last)).await;

    let flowed: Vec<u64> = numbers(first..last + 1, pace.transactions).collect();
    for webhook in &webhooks {
        let sent = sent(&harness.store, webhook).await;
        judge(&sent, &flowed, pace.transactions);
    }
    println!(
        "{} edits: {} streams opened, {} requests replaced",
        edits.count,
        server.requests().len(),
        server.later_requests().len()
    );
    assert_one_session(&indexer).await;
    indexer.stop().await;
}

/// A webhook at confirmed on the transactions of an account.
async fn webhook_on(harness: &IndexerHarness, account: u8) -> WebhookId {
    let definition = WebhookDefinition {
        commitment: Commitment::Confirmed,
        events: [EventKind::Transaction].into_iter().collect(),
        filters: accounts(account),
        ..harness.definition()
    };
    harness.create_temporary(1, definition).await
}

async fn add(store: &Store, webhook: &WebhookId, account: u8) {
    let edit = FilterEdit {
        add: accounts(account),
        remove: Filters::default(),
    };
    let edited = store.edit_filters(&Access::All, webhook, &edit, LIMITS, None);
    edited.await.expect("written").expect("exists");
}

/// Waits until what is written is in force.
async fn until_in_force(store: &Store) {
    let revision = store.webhook_revision().await.expect("read");
    while store
        .filter_state()
        .await
        .expect("read")
        .is_none_or(|state| state.revision < revision)
    {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn an_edit_is_in_force_while_the_slot_that_was_open_is_not_confirmed(
    mut harness: IndexerHarness,
) {
    /// More slots than any test lasts.
    const NEVER: u64 = u64::MAX / 2;
    const UNCONFIRMED: Pace = Pace {
        confirmed_after: NEVER,
        finalized_after: NEVER,
        between: Duration::from_millis(25),
        ..PACE
    };
    let chain = ScriptedChain::new(UNCONFIRMED.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    harness.listen_to(server.endpoint());
    let webhook = webhook_on(&harness, 1).await;
    let flow = TransactionFlow::start(chain, UNCONFIRMED, |_| vec![key(9), key(1)]);
    let indexer = harness.start().await;
    soon(until_in_force(&harness.store)).await;

    add(&harness.store, &webhook, 2).await;
    soon(until_in_force(&harness.store)).await;
    assert_eq!(flow.confirmed(), UNCONFIRMED.genesis);
    drop(flow);
    indexer.stop().await;
}

/// A chain whose blocks the test decides on.
struct Script {
    chain: ScriptedChain,
    /// The last slot, and its block.
    slot: u64,
    tip: BlockId,
}

impl Script {
    fn execute(&self, slot: u64, number: u64, account: u8) {
        let Body::Transaction(update) = transaction(slot, 0).body else {
            unreachable!("it is one")
        };
        let mut signature = [0; 64];
        signature[..8].copy_from_slice(&number.to_le_bytes());
        let executed = TransactionUpdate {
            signature: Signature::from(signature),
            fee: number,
            account_keys: vec![key(9), key(account)],
            log_messages: Vec::new(),
            ..*update
        };
        self.chain.execute(slot, executed);
    }

    /// Opens a slot on a block, with one transaction.
    fn open(&self, slot: u64, on: BlockId, number: u64, account: u8) -> BlockId {
        let block = self.chain.open(slot, on);
        self.execute(slot, number, account);
        block
    }

    /// A slot passes and is confirmed. Its transaction bears its number.
    async fn pass(&mut self, account: u8) {
        self.slot += 1;
        self.tip = self.open(self.slot, self.tip, self.slot, account);
        self.chain.seal(self.tip);
        self.chain.confirm(self.tip);
        sleep(Duration::from_millis(50)).await;
    }

    /// Executes in a slot until `end`, so that there is something that shows what is in force.
    async fn go_on_until(&self, slot: u64, first: u64, end: impl Future<Output = ()>) {
        let going_on = async {
            for number in first.. {
                self.execute(slot, number, 1);
                sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            () = soon(end) => {}
            () = going_on => {}
        }
    }
}

async fn confirmed(store: &Store) -> Option<u64> {
    store.checkpoint(Commitment::Confirmed).await.expect("read")
}

async fn a_fork_that_was_open_at_an_edit_and_wins_loses_nothing(mut harness: IndexerHarness) {
    let chain = ScriptedChain::new(10, State::new());
    let tip = chain.lock().tree.current(10).expect("it begins there");
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    harness.listen_to(server.endpoint());
    let webhook = webhook_on(&harness, 1).await;
    let indexer = harness.start().await;
    let slot = 10;
    let mut script = Script { chain, slot, tip };
    // The indexer joins in one of the slots that pass.
    while confirmed(&harness.store).await.is_none() || script.slot < 14 {
        script.pass(1).await;
    }
    soon(until_in_force(&harness.store)).await;

    // Two forks are open when the account is added: it is written to in both.
    let (wins, left, child) = (script.slot + 1, script.slot + 2, script.slot + 3);
    let winning = script.open(wins, script.tip, 1_000, 2);
    let leaving = script.open(left, script.tip, 2_000, 2);
    let asked = server.later_requests().len();
    add(&harness.store, &webhook, 2).await;
    let until_asked = async {
        while server.later_requests().len() == asked {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(Duration::from_millis(500)).await;
    };
    script.go_on_until(left, 3_000, until_asked).await;
    script.chain.seal(leaving);
    script.open(child, leaving, 3_999, 1);
    let until_in_force = until_in_force(&harness.store);
    script.go_on_until(child, 4_000, until_in_force).await;
    assert!(
        confirmed(&harness.store).await < Some(wins),
        "neither fork is"
    );

    script.chain.seal(winning);
    (script.slot, script.tip) = (child, winning);
    while confirmed(&harness.store).await < Some(child + 1) {
        script.pass(2).await;
    }
    let sent = sent(&harness.store, &webhook).await;
    let count = |number| sent.iter().filter(|sent| **sent == number).count();
    assert_eq!(count(1_000), 1, "of the fork that wins: {sent:?}");
    assert_eq!(count(2_000), 0, "of the one that is left: {sent:?}");
    assert_eq!(count(child + 1), 1, "of what builds on it: {sent:?}");
    indexer.stop().await;
}
