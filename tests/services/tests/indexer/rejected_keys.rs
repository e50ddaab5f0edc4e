//! Keys that the server rejects, against one with the reference server's limits: their webhook is refused, and no other.

use std::time::Duration;

use sluice_harness::indexer::{IndexerHarness, soon};
use sluice_store::{Access, Commitment, EventKind, Filters, WebhookDefinition, WebhookId};
use sluice_testkit::{
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
    yellowstone_server::YellowstoneServer,
};
use tokio::time::sleep;

use crate::{
    expectations::Ending,
    flow::{assert_one_session, judge, numbers, sent, until_final},
    on_both,
};

on_both!(a_key_that_the_server_rejects_is_refused_to_its_webhook_and_costs_no_other_anything);

const PACE: Pace = Pace {
    genesis: 10,
    transactions: 4,
    between: Duration::from_millis(25),
    confirmed_after: 1,
    finalized_after: 8,
};

/// Whose key no filter of the server may name, as providers have it with programs that everybody uses.
const REJECTED: u8 = 60;

/// A webhook on an account's events of one kind.
async fn webhook(
    harness: &IndexerHarness,
    number: u8,
    (kind, account): (EventKind, u8),
) -> WebhookId {
    let definition = WebhookDefinition {
        commitment: Commitment::Confirmed,
        events: [kind].into_iter().collect(),
        filters: Filters {
            accounts: vec![key(account)],
            ..Filters::default()
        },
        ..harness.definition()
    };
    harness.create_temporary(number, definition).await
}

/// The server's words about a webhook, once it is refused.
async fn refusal(harness: &IndexerHarness, webhook: &WebhookId) -> String {
    loop {
        let stored = harness.store.webhook(&Access::All, webhook).await;
        if let Some(words) = stored.expect("read").expect("exists").refused {
            return words;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn a_key_that_the_server_rejects_is_refused_to_its_webhook_and_costs_no_other_anything(
    mut harness: IndexerHarness,
) {
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    server.configure(|settings| {
        settings.limits.account_reject.insert(key(REJECTED));
        settings.limits.account_include_reject.insert(key(REJECTED));
    });
    harness.listen_to(server.endpoint());
    let served = webhook(&harness, 1, (EventKind::Transaction, 1)).await;
    let flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), key(1), key(REJECTED)]);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;

    let words = format!("Pubkey {} in filters is not allowed", key(REJECTED));
    for (number, kind) in [(2, EventKind::AccountChange), (3, EventKind::Transaction)] {
        let rejected = webhook(&harness, number, (kind, REJECTED)).await;
        let refused = soon(refusal(&harness, &rejected)).await;
        assert!(refused.contains(&words), "{refused}");
    }

    let last = soon(flow.end()).await;
    soon(until_final(&harness.store, last)).await;
    let stored = harness.store.webhook(&Access::All, &served).await;
    assert_eq!(stored.expect("read").expect("exists").refused, None);
    let sent = sent(&harness.store, &served).await;
    let flowed: Vec<u64> = numbers(first..last + 1, PACE.transactions).collect();
    judge(&sent, &flowed, PACE.transactions);
    assert_one_session(&indexer).await;
    indexer.stop().await;
}
