//! Accounts given away: a webhook on a program is told at once that an account became another program's, by the
//! transactions of the program.

use serde_json::Value;
use sluice_harness::indexer::{Indexer, IndexerHarness};
use sluice_store::{Access, EventKind, Filters, WebhookDefinition, WebhookId};
use sluice_testkit::{
    accounts::Content,
    rpc_node::RpcNode,
    updates::{key, program},
};

use super::{
    ClosingChain, Executed, SYSTEM, begin, by_program, of, sent, signature_in, until_sent, webhooks,
};
use crate::{expectations::Ending, on_both};

on_both!(
    an_account_that_is_given_away_with_its_lamports_is_sent_at_once_as_the_node_has_it,
    without_a_node_an_account_that_is_given_away_is_sent_when_a_write_shows_it,
    an_account_that_is_given_away_on_a_fork_that_is_abandoned_is_retracted,
    an_account_that_was_given_away_is_sent_once_through_a_restart,
    transactions_that_give_nothing_away_are_not_sent,
    an_account_that_a_transaction_leaves_as_it_was_is_not_sent,
    a_program_whose_transactions_the_server_rejects_is_watched_without_them,
    an_account_that_is_given_to_a_program_watched_by_anybody_is_sent_at_once,
);

/// With a node that says what became of an account.
async fn begin_with_node(
    harness: &mut IndexerHarness,
) -> (ClosingChain, RpcNode, Vec<WebhookId>, Indexer) {
    let mut chain = ClosingChain::start().await;
    harness.listen_to(chain.server.endpoint());
    let node = RpcNode::of_chain(chain.chain.clone()).await;
    let node = node.expect("a free port");
    harness.backfill_from(node.url());
    let webhooks = webhooks(harness).await;
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    (chain, node, webhooks, indexer)
}

/// A server selects by the owner that a write leaves an account with, and here nobody watches that one.
async fn an_account_that_is_given_away_with_its_lamports_is_sent_at_once_as_the_node_has_it(
    mut harness: IndexerHarness,
) {
    let (mut chain, _node, webhooks, indexer) = begin_with_node(&mut harness).await;
    let made = chain.pass(&[(1, of(program())), (2, of(program()))]);
    let given = chain.pass_executed(&[by_program(1, Some(key(50))), by_program(2, Some(key(50)))]);
    // The node is asked for what they became, and has nothing newer yet.
    for webhook in &webhooks[..2] {
        until_sent(&harness.store, webhook, 4).await;
    }
    // Of neither the program is the owner any more.
    chain.pass(&[(1, Content::Closed)]);
    let back = chain.pass(&[(2, of(program()))]);
    // Got and given in one slot.
    let both = chain.pass_executed(&[by_program(3, Some(program())), by_program(3, Some(key(50)))]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{given} account 1: 100->50 by transaction"),
                format!("{given} account 2: 100->50 by transaction"),
                format!("{back} account 2: 100"),
                format!("{both} account 3: 100"),
                format!("{both} account 3: 100->50 by transaction"),
            ]
        );
        let page = harness
            .store
            .messages_after(&Access::All, webhook, 2, 1)
            .await;
        let taken = page.expect("read").expect("exists").messages;
        let body: Value = serde_json::from_str(&taken[0].body).expect("JSON");
        let data = &body["data"];
        assert!(data["stateSlot"].as_u64() >= Some(given), "{data}");
        assert_eq!(
            (&data["data"], &data["lamports"]),
            (&"YWJj".into(), &1.into())
        );
        assert_eq!(data["writtenBy"], signature_in(given, 0).to_string());
    }
    indexer.stop().await;
}

/// What a transaction may have left as it was is told by nothing but a write, or a node.
async fn without_a_node_an_account_that_is_given_away_is_sent_when_a_write_shows_it(
    mut harness: IndexerHarness,
) {
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[(1, of(program())), (2, of(program()))]);
    // Or left as it was: nobody says.
    chain.pass_executed(&[by_program(1, Some(key(50)))]);
    let closed = chain.pass(&[(1, Content::Closed), (2, Content::Closed)]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{closed} account 1: 100->0"),
                format!("{closed} account 2: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

async fn an_account_that_is_given_away_on_a_fork_that_is_abandoned_is_retracted(
    mut harness: IndexerHarness,
) {
    let (mut chain, _node, webhooks, indexer) = begin_with_node(&mut harness).await;
    let made = chain.pass(&[(1, of(program()))]);
    let (fork, block) = chain.execute_on(chain.tip, &[by_program(1, Some(key(50)))]);
    // There it is another's already.
    chain.execute_on(block, &[by_program(1, Some(key(50)))]);
    let store = &harness.store;
    until_sent(store, &webhooks[0], 2).await;
    chain.pass(&[]);
    let given = chain.pass_executed(&[by_program(1, Some(key(50)))]);
    chain.finalize(store).await;
    assert_eq!(
        sent(store, &webhooks[0]).await,
        [
            format!("{made} account 1: 100"),
            format!("{fork} account 1: 100->50 by transaction"),
            format!("{fork} reverted"),
            format!("{given} account 1: 100->50 by transaction"),
        ]
    );
    for webhook in &webhooks[1..] {
        assert_eq!(
            sent(store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{given} account 1: 100->50 by transaction"),
            ]
        );
    }
    indexer.stop().await;
}

async fn an_account_that_was_given_away_is_sent_once_through_a_restart(
    mut harness: IndexerHarness,
) {
    let (mut chain, _node, webhooks, indexer) = begin_with_node(&mut harness).await;
    let made = chain.pass(&[(1, of(program())), (2, of(program()))]);
    chain.finalize(&harness.store).await;
    let first = chain.pass_executed(&[by_program(1, Some(key(50)))]);
    indexer.until_checkpoint_past(first).await;
    indexer.kill().await;
    let second = chain.pass_executed(&[by_program(2, Some(key(50)))]);
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{first} account 1: 100->50 by transaction"),
                format!("{second} account 2: 100->50 by transaction"),
            ]
        );
    }
    indexer.stop().await;
}

/// Neither are the transactions, which no webhook has asked for.
async fn transactions_that_give_nothing_away_are_not_sent(mut harness: IndexerHarness) {
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[(1, of(program()))]);
    let mut failed = by_program(1, None);
    failed.fails = true;
    let of_others = Executed {
        mentions: key(50),
        ..by_program(1, None)
    };
    chain.pass_executed(&[failed, of_others]);
    let kept = chain.pass_executed(&[by_program(1, Some(program()))]);
    let closed = chain.pass_executed(&[by_program(1, None), by_program(1, Some(SYSTEM))]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{kept} account 1: 100"),
                format!("{closed} account 1: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

/// Validators report no write of an account that a transaction may write and does not touch.
async fn an_account_that_a_transaction_leaves_as_it_was_is_not_sent(mut harness: IndexerHarness) {
    let (mut chain, _node, webhooks, indexer) = begin_with_node(&mut harness).await;
    let made = chain.pass(&[(1, of(program()))]);
    let untouched = chain.pass_executed(&[by_program(1, None)]);
    // By the time at which the node is asked it is further.
    for _ in 0..3 {
        chain.pass(&[]);
    }
    indexer.until_checkpoint_past(untouched).await;
    let closed = chain.pass_executed(&[by_program(1, Some(SYSTEM))]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{closed} account 1: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

/// As providers do with programs that everybody uses.
async fn a_program_whose_transactions_the_server_rejects_is_watched_without_them(
    mut harness: IndexerHarness,
) {
    let mut chain = ClosingChain::start().await;
    chain.server.configure(|settings| {
        settings.limits.account_include_reject.insert(program());
    });
    harness.listen_to(chain.server.endpoint());
    let webhooks = webhooks(&harness).await;
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    let made = chain.pass(&[(1, of(program())), (2, of(program()))]);
    chain.pass_executed(&[by_program(1, Some(key(50)))]);
    let closed = chain.pass(&[(1, Content::Closed), (2, Content::Closed)]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{closed} account 1: 100->0"),
                format!("{closed} account 2: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

async fn an_account_that_is_given_to_a_program_watched_by_anybody_is_sent_at_once(
    mut harness: IndexerHarness,
) {
    let of_the_other = WebhookDefinition {
        events: [EventKind::AccountChange].into_iter().collect(),
        filters: Filters {
            accounts: Vec::new(),
            programs: vec![key(50)],
            token_owners: Vec::new(),
        },
        ..harness.definition()
    };
    let of_the_other = harness.create_temporary(9, of_the_other).await;
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[(1, of(program()))]);
    let given = chain.pass(&[(1, of(key(50)))]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{given} account 1: 100->50"),
            ]
        );
    }
    let sent = sent(&harness.store, &of_the_other).await;
    assert_eq!(sent, [format!("{given} account 1: 50")]);
    indexer.stop().await;
}
