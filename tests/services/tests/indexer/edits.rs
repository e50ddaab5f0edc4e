//! Edits of a filter while transactions flow, against a server that behaves as the reference server does.

use std::time::Duration;

use sluice_store::{
    Access, Commitment, EventKind, FilterEdit, FilterLimits, Filters, Store, WebhookDefinition,
    WebhookId,
};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, soon};
use sluice_testkit::{
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
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
);

const PACE: Pace = Pace {
    genesis: 10,
    transactions: 8,
    between: Duration::from_millis(5),
    confirmed_after: 0,
    finalized_after: 8,
};

/// How often an account comes to a filter or goes from it, and the time between two edits.
#[derive(Clone, Copy)]
struct Edits {
    count: u8,
    pause: Duration,
}

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
};

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
    let chain = ScriptedChain::new(PACE.genesis, State::new());
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
    let flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), key(1)]);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;

    edit(&harness.store, &webhooks, edits).await;
    let last = soon(flow.end()).await;
    indexer.until_checkpoint_past(last).await;
    soon(until_final(&harness.store, last)).await;

    let flowed: Vec<u64> = numbers(first..last + 1, PACE.transactions).collect();
    for webhook in &webhooks {
        let sent = sent(&harness.store, webhook).await;
        judge(&sent, &flowed, PACE.transactions);
    }
    println!("{} streams opened", server.requests().len());
    assert_one_session(&indexer).await;
    indexer.stop().await;
}
