//! Token owners: transactions in which a wallet has tokens are seen where only its token account is named in them.

use serde_json::Value;
use sluice_chain_types::RawAccount;
use sluice_geyser::{Body, TokenBalance, Update, scripted::Code};
use sluice_store::{Access, EventKind, Filters, WebhookDefinition};

use sluice_harness::indexer::{IndexerHarness, send};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{block, created, freeze_and_confirm, key, program, transaction},
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(transactions_of_a_token_owner_come_by_the_stream_and_by_rpc_under_the_same_filter,);

const WALLET: u8 = 50;

/// Transaction `number` of a slot, in which the wallet's token account has a balance before or after.
fn of_wallet(slot: u64, number: u8, is_before: bool) -> Update {
    let mut update = transaction(slot, number);
    let Body::Transaction(transaction) = &mut update.body else {
        panic!("a transaction")
    };
    let balances = if is_before {
        &mut transaction.pre_token_balances
    } else {
        &mut transaction.post_token_balances
    };
    balances.push(TokenBalance {
        account_index: 0,
        mint: key(51),
        owner: Some(key(WALLET)),
        program: Some(key(52)),
        amount: 7,
        decimals: 0,
        shown_amount: "7".to_owned(),
    });
    assert!(!transaction.account_keys.contains(&key(WALLET)));
    update
}

/// A slot with an incoming transfer, one that closes the account, and one of somebody else's.
fn content(slot: u64) -> [Update; 4] {
    [
        of_wallet(slot, 1, false),
        of_wallet(slot, 2, true),
        transaction(slot, 3),
        block(slot),
    ]
}

/// A slot and the signature of each transaction that was received, in order.
fn seen(bodies: &[Value]) -> Vec<(u64, u8)> {
    let bodies = bodies.iter().map(|body| {
        assert_eq!(body["type"], "transaction", "{body}");
        let text = body["data"]["signature"].as_str().expect("a text");
        let signature: solana_signature::Signature = text.parse().expect("a signature");
        (
            body["slot"].as_u64().expect("a slot"),
            signature.as_ref()[0],
        )
    });
    bodies.collect()
}

async fn transactions_of_a_token_owner_come_by_the_stream_and_by_rpc_under_the_same_filter(
    mut harness: IndexerHarness,
) {
    let filters = Filters {
        token_owners: vec![key(WALLET)],
        ..Filters::default()
    };
    let events = [EventKind::Transaction].into_iter().collect();
    let definition = WebhookDefinition::new(harness.receiver.url(), events, filters);
    let id = harness.create(1, definition.clone()).await;
    let stored = harness.store.webhook(&Access::All, &id).await;
    let stored = stored.expect("read").expect("exists");
    assert_eq!(stored.definition, definition);

    let node = RpcNode::holding([RawAccount {
        pubkey: key(1),
        owner: program(),
        lamports: 77,
        data: vec![7; 3].into(),
    }]);
    let node = node.await.expect("a free port");
    node.reach(13);
    harness.backfill_from(node.url());
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    let filter = request.transactions.values().next().expect("one");
    assert_eq!(request.transactions.len(), 1, "nothing else is asked for");
    assert_eq!(filter.account_include, [key(WALLET)]);
    assert!(filter.token_owners);
    let name = request.slots.expect("always");
    send(&connection, [created(&name, 10), block(10)]).await;
    send(&connection, freeze_and_confirm(&name, 10)).await;
    indexer.until_checkpoint(10).await;
    send(&connection, [created(&name, 11)]).await;
    send(&connection, content(11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    assert_eq!(seen(&harness.bodies(2).await), [(11, 1), (11, 2)]);
    indexer.until_checkpoint(11).await;

    for number in 12..=13 {
        node.blocks().add(content(number));
    }
    let too_old = "broadcast from 12 is not available, last available: 14";
    harness.server.refuse_next(Code::OutOfRange, too_old);
    drop(connection);
    let (_connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(14), "what was read is not replayed");
    let all = harness.bodies(6).await;
    let expected: Vec<_> = (11..=13).flat_map(|slot| [(slot, 1), (slot, 2)]).collect();
    assert_eq!(seen(&all), expected);
    indexer.stop().await;
}
