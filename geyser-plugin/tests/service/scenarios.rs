//! Scenarios of Yellowstone's own end-to-end suite, on a scripted validator.
//!
//! `tests/validator` plays the same ones on a real validator. Here the script adds what that one does at random:
//! statuses before content, transactions and entries after the block meta, statuses without a parent.

use std::time::Duration;

use sluice_geyser_plugin::message::{SlotUpdate, Update};
use tokio::time::sleep;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use yellowstone_grpc_proto::{
    cuckoo::CuckooFilter,
    geyser::{
        CommitmentLevel, CuckooFilter as WireCuckooFilter, SlotStatus, SubscribeRequest,
        SubscribeRequestFilterAccounts, SubscribeRequestFilterAccountsFilter,
        SubscribeRequestFilterBlocks, SubscribeRequestFilterSlots,
        SubscribeRequestFilterTransactions, SubscribeUpdateBlock,
        subscribe_request_filter_accounts_filter::Filter, subscribe_update::UpdateOneof,
    },
};

use crate::{
    at,
    chain::{Chain, Subscription},
    everything,
};

/// Long enough for everything sent before to have reached the hub.
const SETTLING: Duration = Duration::from_millis(500);

/// Stands for the address of a sysvar account.
const SYSVAR: u8 = 30;

/// Every kind of update there is.
fn all_kinds() -> SubscribeRequest {
    let every_status = SubscribeRequestFilterSlots {
        interslot_updates: Some(true),
        ..SubscribeRequestFilterSlots::default()
    };
    let full = SubscribeRequestFilterBlocks {
        include_accounts: Some(true),
        include_entries: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    SubscribeRequest {
        slots: [("s".to_owned(), every_status)].into(),
        transactions: [(
            "t".to_owned(),
            SubscribeRequestFilterTransactions::default(),
        )]
        .into(),
        entry: [("e".to_owned(), Default::default())].into(),
        blocks: [("b".to_owned(), full)].into(),
        ..everything()
    }
}

fn since(slot: u64, request: SubscribeRequest) -> SubscribeRequest {
    SubscribeRequest {
        from_slot: Some(slot),
        ..request
    }
}

/// A slot as a test validator makes it: two transactions, two entries, a sysvar written at its beginning and again as
/// it freezes.
fn plays(chain: &Chain, slot: u64) {
    chain.reports(slot, SlotStatus::SlotCreatedBank);
    chain.writes(slot, SYSVAR, slot * 10, b"clock");
    chain.executes(slot, 0);
    chain.writes(slot, 10, slot * 10 + 1, b"");
    chain.writes(slot, SYSVAR, slot * 10 + 2, b"history");
    chain.freezes(slot, 2);
    // Other threads are late.
    chain.executes(slot, 1);
    chain.records(slot, 0, 250);
    chain.says(Update::Slot(SlotUpdate {
        slot,
        parent: None,
        status: SlotStatus::SlotCompleted,
        dead_error: None,
    }));
    chain.reports(slot, SlotStatus::SlotProcessed);
    chain.records(slot, 1, slot as u8);
}

/// Scenario `event-ordering`: a created bank, then its content, the block, its metadata and its status.
#[tokio::test]
async fn event_ordering() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.subscribe(all_kinds()).await;
    plays(&chain, 1);
    let expected = [
        "s:1 SLOT_CREATED_BANK",
        "a:account 30 in 1 v10",
        "t:transaction 0 in 1",
        "a:account 10 in 1 v11",
        "a:account 30 in 1 v12",
        "t:transaction 1 in 1",
        "e:entry 0 in 1",
        "s:1 SLOT_COMPLETED",
        "e:entry 1 in 1",
        "b:whole block 1: 2 accounts, 2 transactions, 2 entries",
        "m:block 1",
        "s:1 SLOT_PROCESSED",
    ];
    assert_eq!(subscription.names(expected.len()).await, expected);
    chain.stop().await;
}

/// Scenario `replay-ordering`: a replayed slot comes as content, block, block metadata, and then statuses.
#[tokio::test]
async fn replay_ordering() {
    let chain = Chain::from_genesis("");
    plays(&chain, 1);
    plays(&chain, 2);
    chain.reports(1, SlotStatus::SlotConfirmed);
    sleep(SETTLING).await;
    let mut subscription = chain.call(since(1, all_kinds())).await;
    let expected = [
        "a:account 10 in 1 v11",
        "a:account 30 in 1 v12",
        "t:transaction 0 in 1",
        "t:transaction 1 in 1",
        "e:entry 0 in 1",
        "e:entry 1 in 1",
        "b:whole block 1: 2 accounts, 2 transactions, 2 entries",
        "m:block 1",
        "s:1 SLOT_CREATED_BANK",
        "s:1 SLOT_COMPLETED",
        "s:1 SLOT_PROCESSED",
        "s:1 SLOT_CONFIRMED",
        "a:account 10 in 2 v21",
    ];
    assert_eq!(subscription.names(expected.len()).await, expected);
    chain.stop().await;
}

/// Scenario `replay`: replayed statuses carry parents.
#[tokio::test]
async fn replay() {
    let chain = Chain::from_genesis("");
    plays(&chain, 1);
    plays(&chain, 2);
    chain.reports(2, SlotStatus::SlotConfirmed);
    sleep(SETTLING).await;
    let mut subscription = chain.call(since(1, all_kinds())).await;
    let mut statuses = 0;
    while statuses < 8 {
        let update = subscription.next().await.unwrap().unwrap();
        if let Some(UpdateOneof::Slot(slot)) = update.update_oneof {
            assert_eq!(slot.parent, Some(slot.slot - 1), "{:?}", slot.status());
            statuses += 1;
        }
    }
    chain.stop().await;
}

/// Scenario `slot-status-parent-present`: every status of a slot names its parent.
#[tokio::test]
async fn slot_status_parent_present() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.subscribe(all_kinds()).await;
    plays(&chain, 1);
    chain.says(Update::Slot(SlotUpdate {
        slot: 1,
        parent: None,
        status: SlotStatus::SlotConfirmed,
        dead_error: None,
    }));
    loop {
        let update = subscription.next().await.unwrap().unwrap();
        if let Some(UpdateOneof::Slot(slot)) = update.update_oneof {
            if slot.slot == 1 {
                assert_eq!(slot.parent, Some(0), "{:?}", slot.status());
            }
            if (slot.slot, slot.status()) == (1, SlotStatus::SlotConfirmed) {
                break;
            }
        }
    }
    chain.stop().await;
}

/// Scenario `slot-duplicate`: a status of a slot comes once.
#[tokio::test]
async fn slot_duplicate() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.subscribe(all_kinds()).await;
    for _ in 0..3 {
        chain.completes(1);
        chain.reports(1, SlotStatus::SlotConfirmed);
    }
    chain.completes(2);
    let mut statuses = Vec::new();
    while statuses
        .last()
        .is_none_or(|last| last != "s:2 SLOT_PROCESSED")
    {
        let name = subscription.name().await;
        if name.starts_with("s:1 ") || name.starts_with("s:2 ") {
            statuses.push(name);
        }
    }
    let once = [
        "s:1 SLOT_PROCESSED",
        "s:1 SLOT_CONFIRMED",
        "s:2 SLOT_PROCESSED",
    ];
    assert_eq!(statuses, once);
    chain.stop().await;
}

/// Scenario `any-commitment`: above processed a slot comes all at once, as a block, once it is committed.
#[tokio::test]
async fn any_commitment() {
    let chain = Chain::from_genesis("");
    let levels = [CommitmentLevel::Confirmed, CommitmentLevel::Finalized];
    let mut subscriptions = Vec::new();
    for level in levels {
        subscriptions.push(chain.subscribe(at(level, all_kinds())).await);
    }
    let reached = [SlotStatus::SlotConfirmed, SlotStatus::SlotFinalized];
    plays(&chain, 1);
    plays(&chain, 2);
    for (mut subscription, status) in subscriptions.into_iter().zip(reached) {
        chain.reports(1, status);
        let mut content = Vec::new();
        while content.last().is_none_or(|last| last != "m:block 1") {
            let name = subscription.name().await;
            if !name.starts_with("s:") {
                content.push(name);
            }
        }
        let whole = [
            "a:account 10 in 1 v11",
            "a:account 30 in 1 v12",
            "t:transaction 0 in 1",
            "t:transaction 1 in 1",
            "e:entry 0 in 1",
            "e:entry 1 in 1",
            "b:whole block 1: 2 accounts, 2 transactions, 2 entries",
            "m:block 1",
        ];
        assert_eq!(content, whole, "{status:?}");
    }
    chain.stop().await;
}

/// Filters of accounts, each with a name.
fn accounts<const N: usize>(
    filters: [(&str, SubscribeRequestFilterAccounts); N],
) -> SubscribeRequest {
    let filters = filters.map(|(name, filter)| (name.to_owned(), filter));
    SubscribeRequest {
        accounts: filters.into(),
        ..SubscribeRequest::default()
    }
}

/// Scenario `filter-accounts`: all fields of a filter must match, and of each field any value.
///
/// An update names the filters that let it through.
#[tokio::test]
async fn filter_accounts() {
    let chain = Chain::from_genesis("");
    let text = |key: u8| bs58::encode([key; 32]).into_string();
    let account = |account: u8, owner: &[u8]| SubscribeRequestFilterAccounts {
        account: vec![text(account), text(99)],
        owner: owner.iter().map(|owner| text(*owner)).collect(),
        ..SubscribeRequestFilterAccounts::default()
    };
    let sized = SubscribeRequestFilterAccounts {
        filters: vec![SubscribeRequestFilterAccountsFilter {
            filter: Some(Filter::Datasize("clock".len() as u64)),
        }],
        ..SubscribeRequestFilterAccounts::default()
    };
    // The plugin is given the owner of account 30 as 3, and of account 10 as 1.
    let request = accounts([
        ("listed", account(10, &[])),
        ("owned", account(30, &[3])),
        ("owned by another", account(30, &[1])),
        ("sized", sized),
    ]);
    let mut subscription = chain.subscribe(request).await;
    plays(&chain, 1);
    let mut names = Vec::new();
    for name in subscription.names(3).await {
        let (filters, what) = name.split_once(':').unwrap();
        let mut filters: Vec<&str> = filters.split(',').collect();
        filters.sort_unstable();
        names.push(format!("{}:{what}", filters.join(",")));
    }
    let expected = [
        "owned,sized:account 30 in 1 v10",
        "listed:account 10 in 1 v11",
        "owned:account 30 in 1 v12",
    ];
    assert_eq!(names, expected);
    chain.stop().await;
}

/// Scenario `cuckoo`: a cuckoo filter lets the accounts through that it stands for.
#[tokio::test]
async fn cuckoo() {
    let chain = Chain::from_genesis("");
    let mut addresses = CuckooFilter::<[u8; 32]>::with_capacity(100).unwrap();
    addresses.insert(&[10; 32]).unwrap();
    let filter = SubscribeRequestFilterAccounts {
        cuckoo_accounts_filter: Some(WireCuckooFilter::from(&addresses)),
        ..SubscribeRequestFilterAccounts::default()
    };
    let mut subscription = chain.subscribe(accounts([("cuckoo", filter)])).await;
    plays(&chain, 1);
    plays(&chain, 2);
    let expected = ["cuckoo:account 10 in 1 v11", "cuckoo:account 10 in 2 v21"];
    assert_eq!(subscription.names(2).await, expected);
    chain.stop().await;
}

fn sysvar() -> String {
    bs58::encode([SYSVAR; 32]).into_string()
}

/// Scenario `sysvar-account`: each write of a sysvar is sent as it happens.
#[tokio::test]
async fn sysvar_account() {
    let chain = Chain::from_genesis("");
    let filter = SubscribeRequestFilterAccounts {
        account: vec![sysvar()],
        ..SubscribeRequestFilterAccounts::default()
    };
    let request = SubscribeRequest {
        accounts: [("sysvar".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let mut subscription = chain.subscribe(request).await;
    plays(&chain, 1);
    let expected = ["sysvar:account 30 in 1 v10", "sysvar:account 30 in 1 v12"];
    assert_eq!(subscription.names(2).await, expected);
    chain.stop().await;
}

fn blocks(filter: SubscribeRequestFilterBlocks) -> SubscribeRequest {
    SubscribeRequest {
        blocks: [("b".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    }
}

async fn next_update(subscription: &mut Subscription) -> UpdateOneof {
    let update = subscription.next().await.unwrap();
    update.and_then(|update| update.update_oneof).unwrap()
}

async fn next_block(subscription: &mut Subscription) -> SubscribeUpdateBlock {
    match next_update(subscription).await {
        UpdateOneof::Block(block) => block,
        other => panic!("{other:?}"),
    }
}

/// Scenario `sysvar-block`: a block that is filtered by a sysvar holds what was written to that account last.
#[tokio::test]
async fn sysvar_block() {
    let chain = Chain::from_genesis("");
    let filter = SubscribeRequestFilterBlocks {
        account_include: vec![sysvar()],
        include_accounts: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    let mut subscription = chain.subscribe(blocks(filter)).await;
    plays(&chain, 1);
    let block = next_block(&mut subscription).await;
    // What was written as the block froze, and nothing of other accounts.
    assert_eq!(block.accounts.len(), 1);
    assert_eq!(block.accounts[0].data.to_vec(), b"history");
    assert_eq!(block.updated_account_count, 2);
    chain.stop().await;
}

/// Scenario `full-blocks`: every block holds all accounts, transactions and entries of its slot.
#[tokio::test]
async fn full_blocks() {
    let chain = Chain::from_genesis("");
    let filter = SubscribeRequestFilterBlocks {
        include_accounts: Some(true),
        include_entries: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    let mut subscription = chain.subscribe(blocks(filter)).await;
    for slot in 1..=3 {
        plays(&chain, slot);
        let block = next_block(&mut subscription).await;
        assert_eq!((block.slot, block.parent_slot), (slot, slot - 1));
        assert_eq!(block.executed_transaction_count, 2);
        let parts = (
            block.accounts.len(),
            block.transactions.len(),
            block.entries.len(),
        );
        assert_eq!(parts, (2, 2, 2));
    }
    chain.stop().await;
}

/// Scenario `blockmachine`: what comes of a slot piece by piece until its metadata is the whole block that another subscription
/// counts.
#[tokio::test]
async fn blockmachine() {
    const BLOCKS: u64 = 10;
    let chain = Chain::from_genesis("");
    let only_metas = SubscribeRequest {
        blocks_meta: everything().blocks_meta,
        ..SubscribeRequest::default()
    };
    let pieces = SubscribeRequest {
        blocks: Default::default(),
        ..all_kinds()
    };
    let mut metas = chain.subscribe(only_metas).await;
    let mut pieces = chain.subscribe(pieces).await;
    for slot in 1..=BLOCKS {
        plays(&chain, slot);
        let (mut last_write, mut transactions, mut hashes) = (None, 0, Vec::new());
        let assembled = loop {
            match next_update(&mut pieces).await {
                UpdateOneof::Account(update) => last_write = update.account,
                UpdateOneof::Transaction(_) => transactions += 1,
                UpdateOneof::Entry(entry) => hashes.push(entry.hash),
                UpdateOneof::BlockMeta(meta) => break meta,
                UpdateOneof::Slot(_) => {}
                other => panic!("{other:?}"),
            }
        };
        let UpdateOneof::BlockMeta(counted) = next_update(&mut metas).await else {
            panic!("only metadata was subscribed to");
        };
        assert_eq!(assembled, counted);
        assert_eq!(transactions, counted.executed_transaction_count);
        let last = bs58::encode(&hashes[hashes.len() - 1]).into_string();
        assert_eq!((hashes.len(), last), (2, counted.blockhash));
        // The write by which the bank is frozen.
        let last_write = last_write.expect("accounts come before the metadata");
        assert_eq!(last_write.data.to_vec(), b"history");
    }
    chain.stop().await;
}

/// Scenario `block-subscription-replay`: replayed blocks are followed by the live ones without a gap.
#[tokio::test]
async fn block_subscription_replay() {
    let chain = Chain::from_genesis("");
    for slot in 1..=3 {
        plays(&chain, slot);
    }
    sleep(SETTLING).await;
    let only_blocks = blocks(SubscribeRequestFilterBlocks::default());
    let mut subscription = chain.call(since(2, only_blocks)).await;
    for slot in 2..=3 {
        assert_eq!(next_block(&mut subscription).await.slot, slot);
    }
    plays(&chain, 4);
    assert_eq!(next_block(&mut subscription).await.slot, 4);
    chain.stop().await;
}

/// Scenario `health-routes`: the health check answers for the server and the service, and for no other.
#[tokio::test]
async fn health_routes() {
    let chain =
        Chain::with(r#"{libpath: "none", grpc: {address: "127.0.0.1:0", x_token: "secret"}}"#);
    let endpoint = format!("http://{}", chain.server().address());
    let channel = Channel::from_shared(endpoint).unwrap();
    // A probe has no token.
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let request = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    for service in ["", "geyser.Geyser"] {
        let answer = health.check(request(service)).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    }
    let unknown = health.check(request("geyser.Unknown")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let mut watch = health
        .watch(request("geyser.Geyser"))
        .await
        .unwrap()
        .into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    // Watchers do not hold up the end of the server.
    chain.stop().await;
    assert!(!matches!(watch.message().await, Ok(Some(_))));
}
