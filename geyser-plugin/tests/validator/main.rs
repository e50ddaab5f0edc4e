//! Scenarios of Yellowstone's own end-to-end suite, on a real validator that has loaded the plugin.
//!
//! `GEYSER_SO` and `GEYSER_CONFIG` put any other plugin in ours' place.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "what tests share is test code as well, but stands in no test function"
)]

mod validator;
mod watch;

use std::collections::{BTreeMap, HashSet};

use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use validator::Validator;
use watch::{Kind, Watch, all_kinds, blocks, full_blocks, sysvar_clock};
use yellowstone_grpc_proto::{
    cuckoo::CuckooFilter,
    geyser::{
        CommitmentLevel, SlotStatus, SubscribeRequest, SubscribeRequestFilterAccounts,
        SubscribeRequestFilterBlocks, subscribe_update::UpdateOneof,
    },
};

/// The owner of every sysvar.
const SYSVARS: &str = "Sysvar1111111111111111111111111111111111111";

/// Blocks that a scenario looks at.
const BLOCKS: usize = 5;

/// A slot to replay from: frozen, with a vote in it, and with some more behind it. The first blocks have no vote yet.
async fn replayable(validator: &Validator) -> u64 {
    let mut watch = Watch::open(validator, blocks()).await;
    let with_vote = loop {
        let block = watch.next_block().await;
        if !block.transactions.is_empty() {
            break block.slot;
        }
    };
    watch.until_blocks(2).await;
    with_vote
}

fn since(slot: u64, request: SubscribeRequest) -> SubscribeRequest {
    SubscribeRequest {
        from_slot: Some(slot),
        ..request
    }
}

/// The kinds of a slot's updates in the order in which they came, repetitions in a row taken together, and statuses
/// that have no fixed place left out.
fn order(updates: &[(u64, Kind)], slot: u64) -> Vec<Kind> {
    let mut order: Vec<Kind> = Vec::new();
    for kind in updates
        .iter()
        .filter(|(of, _)| *of == slot)
        .map(|(_, kind)| *kind)
    {
        let loose = matches!(kind, Kind::Status(SlotStatus::SlotCompleted));
        if !loose && order.last() != Some(&kind) {
            order.push(kind);
        }
    }
    order
}

/// Where a kind comes first and last; panics when it is missing, because none may be empty.
fn span(order: &[Kind], kind: Kind) -> (usize, usize) {
    let first = order.iter().position(|one| *one == kind);
    let last = order.iter().rposition(|one| *one == kind);
    first
        .zip(last)
        .unwrap_or_else(|| panic!("no {kind:?} in {order:?}"))
}

/// Scenario `event-ordering`: a created bank, then its content, the block, its metadata and its status.
#[tokio::test]
async fn event_ordering() {
    let validator = Validator::start().await;
    replayable(&validator).await;
    let mut watch = Watch::open(&validator, all_kinds()).await;
    let updates = watch.until_blocks(BLOCKS + 1).await;
    let created: Vec<u64> = updates
        .iter()
        .filter(|(_, kind)| *kind == Kind::Status(SlotStatus::SlotCreatedBank))
        .map(|(slot, _)| *slot)
        .collect();
    let processed = Kind::Status(SlotStatus::SlotProcessed);
    let whole = created
        .iter()
        .filter(|slot| updates.contains(&(**slot, processed)));
    let (mut looked_at, mut with_vote) = (0, 0);
    for slot in whole {
        let order = order(&updates, *slot);
        let created = span(&order, Kind::Status(SlotStatus::SlotCreatedBank));
        assert_eq!(created, (0, 0), "{order:?}");
        let block = span(&order, Kind::Block);
        with_vote += usize::from(order.contains(&Kind::Transaction));
        for content in [Kind::Account, Kind::Transaction, Kind::Entry] {
            // A busy machine may vote less often than in every slot.
            if content == Kind::Transaction && !order.contains(&content) {
                continue;
            }
            assert!(
                span(&order, content).1 < block.0,
                "{content:?} in {order:?}"
            );
        }
        let meta = span(&order, Kind::BlockMeta);
        assert!(block.1 < meta.0, "{order:?}");
        assert!(meta.1 < span(&order, processed).0, "{order:?}");
        looked_at += 1;
    }
    assert!(looked_at >= BLOCKS - 1, "{looked_at} whole slots");
    assert!(with_vote > 0, "no transaction in {updates:?}");
}

/// Scenario `replay-ordering`: a replayed slot comes as content, block, block metadata, and then statuses.
#[tokio::test]
async fn replay_ordering() {
    let validator = Validator::start().await;
    let from = replayable(&validator).await;
    let mut watch = Watch::open(&validator, since(from, all_kinds())).await;
    let updates = watch.until_blocks(BLOCKS).await;
    assert_eq!(updates[0].0, from, "{:?}", &updates[..5]);
    let order = order(&updates, from);
    let expected = [Kind::Account, Kind::Transaction, Kind::Entry, Kind::Block];
    assert_eq!(order[..4], expected);
    assert_eq!(order[4], Kind::BlockMeta);
    assert!(
        order[5..]
            .iter()
            .all(|kind| matches!(kind, Kind::Status(_)))
    );
    assert!(order[5..].contains(&Kind::Status(SlotStatus::SlotProcessed)));
}

/// Scenario `replay`: it begins where it was asked to and misses no block, and its statuses carry parents.
#[tokio::test]
async fn replay() {
    let validator = Validator::start().await;
    let from = replayable(&validator).await;
    let mut request = all_kinds();
    request.accounts.clear();
    let mut watch = Watch::open(&validator, since(from, request)).await;
    let mut parents: BTreeMap<u64, HashSet<Option<u64>>> = BTreeMap::new();
    let mut metas: Vec<(u64, u64)> = Vec::new();
    while metas.len() < 2 * BLOCKS {
        match watch.next().await {
            UpdateOneof::Slot(slot) => {
                parents.entry(slot.slot).or_default().insert(slot.parent);
            }
            UpdateOneof::BlockMeta(meta) => metas.push((meta.slot, meta.parent_slot)),
            _ => {}
        }
    }
    assert_eq!(metas[0].0, from);
    // A block may come in both parts; none is left out.
    metas.sort_unstable();
    metas.dedup();
    assert!(
        metas.windows(2).all(|pair| pair[1].1 == pair[0].0),
        "{metas:?}"
    );
    for (slot, parent) in metas {
        assert_eq!(parents[&slot], HashSet::from([Some(parent)]), "slot {slot}");
    }
}

/// Scenario `slot-duplicate`: a status of a slot comes once.
#[tokio::test]
async fn slot_duplicate() {
    let validator = Validator::start().await;
    let mut request = all_kinds();
    request.accounts.clear();
    let mut watch = Watch::open(&validator, request).await;
    let updates = watch.until_blocks(2 * BLOCKS).await;
    let mut seen = HashSet::new();
    for (slot, kind) in updates {
        if let Kind::Status(status) = kind {
            assert!(seen.insert((slot, status)), "{slot} {status:?} came twice");
        }
    }
}

/// Scenario `slot-status-parent-present`: every status of a slot names its parent.
#[tokio::test]
async fn slot_status_parent_present() {
    let validator = Validator::start().await;
    let mut request = all_kinds();
    request.accounts.clear();
    let mut watch = Watch::open(&validator, request).await;
    let mut statuses = HashSet::new();
    while !statuses.contains(&SlotStatus::SlotConfirmed) {
        if let UpdateOneof::Slot(slot) = watch.next().await {
            assert_eq!(slot.parent, slot.slot.checked_sub(1), "{:?}", slot.status());
            statuses.insert(slot.status());
        }
    }
}

/// Scenario `any-commitment`: at each, every slot comes whole, accounts first, then its metadata and status.
#[tokio::test]
async fn any_commitment() {
    let validator = Validator::start().await;
    replayable(&validator).await;
    for (level, status) in [
        (CommitmentLevel::Processed, SlotStatus::SlotProcessed),
        (CommitmentLevel::Confirmed, SlotStatus::SlotConfirmed),
        (CommitmentLevel::Finalized, SlotStatus::SlotFinalized),
    ] {
        let request = SubscribeRequest {
            commitment: Some(level.into()),
            ..all_kinds()
        };
        let mut watch = Watch::open(&validator, request).await;
        let updates = watch.until_blocks(BLOCKS).await;
        let blocks = updates.iter().filter(|(_, kind)| *kind == Kind::Block);
        // The first may have begun before the subscription; of the last the rest is still to come.
        let whole: Vec<u64> = blocks.map(|(slot, _)| *slot).collect();
        for slot in &whole[1..BLOCKS - 1] {
            let order = order(&updates, *slot);
            let block = span(&order, Kind::Block);
            assert!(span(&order, Kind::Account).1 < block.0, "{order:?}");
            let meta = span(&order, Kind::BlockMeta);
            assert!(block.1 < meta.0, "{order:?}");
            assert!(meta.1 < span(&order, Kind::Status(status)).0, "{order:?}");
        }
        assert!(
            whole.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{level:?} {whole:?}"
        );
    }
}

fn accounts(filter: SubscribeRequestFilterAccounts) -> SubscribeRequest {
    SubscribeRequest {
        accounts: [("accounts".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    }
}

/// Writes that a subscription to accounts brings: slot, address and owner of each.
async fn next_write(watch: &mut Watch) -> (u64, String, String) {
    match watch.next().await {
        UpdateOneof::Account(update) => {
            let account = update.account.expect("an account");
            let text = |address: &[u8]| bs58::encode(address).into_string();
            (update.slot, text(&account.pubkey), text(&account.owner))
        }
        other => panic!("{other:?}"),
    }
}

/// Scenario `filter-accounts`: writes of an owner's accounts come, or of those of them that are listed.
#[tokio::test]
async fn filter_accounts() {
    let validator = Validator::start().await;
    let owned = SubscribeRequestFilterAccounts {
        owner: vec![SYSVARS.to_owned()],
        ..SubscribeRequestFilterAccounts::default()
    };
    let mut watch = Watch::open(&validator, accounts(owned.clone())).await;
    let mut addresses = HashSet::new();
    while !addresses.contains(&sysvar_clock()) || addresses.len() < 2 {
        let (_, address, owner) = next_write(&mut watch).await;
        assert_eq!(owner, SYSVARS, "{address}");
        addresses.insert(address);
    }
    let one_of_them = SubscribeRequestFilterAccounts {
        account: vec![sysvar_clock()],
        ..owned
    };
    let mut watch = Watch::open(&validator, accounts(one_of_them)).await;
    for _ in 0..BLOCKS {
        assert_eq!(next_write(&mut watch).await.1, sysvar_clock());
    }
}

/// Scenario `cuckoo`: a cuckoo filter lets the accounts through that it stands for.
#[tokio::test]
async fn cuckoo() {
    let validator = Validator::start().await;
    let mut addresses = CuckooFilter::<[u8; 32]>::with_capacity(100).unwrap();
    let clock = bs58::decode(sysvar_clock()).into_vec().unwrap();
    addresses.insert(&clock.try_into().unwrap()).unwrap();
    let filter = SubscribeRequestFilterAccounts {
        cuckoo_accounts_filter: Some((&addresses).into()),
        ..SubscribeRequestFilterAccounts::default()
    };
    let mut watch = Watch::open(&validator, accounts(filter)).await;
    let mut slots = Vec::new();
    while slots.len() < BLOCKS {
        let (slot, address, _) = next_write(&mut watch).await;
        // Such a filter lets some others through: one of some thousands.
        if address == sysvar_clock() {
            slots.push(slot);
        }
    }
    assert!(
        slots.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{slots:?}"
    );
}

/// Scenario `sysvar-account`: the clock's account comes once in every slot.
#[tokio::test]
async fn sysvar_account() {
    let validator = Validator::start().await;
    let filter = SubscribeRequestFilterAccounts {
        account: vec![sysvar_clock()],
        ..SubscribeRequestFilterAccounts::default()
    };
    let request = SubscribeRequest {
        accounts: [("clock".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let mut watch = Watch::open(&validator, request).await;
    let mut slots = Vec::new();
    while slots.len() < BLOCKS {
        match watch.next().await {
            UpdateOneof::Account(account) => slots.push(account.slot),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        slots.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{slots:?}"
    );
}

/// Scenario `sysvar-block`: a block that is filtered by the clock holds that account and no other.
#[tokio::test]
async fn sysvar_block() {
    let validator = Validator::start().await;
    let filter = SubscribeRequestFilterBlocks {
        account_include: vec![sysvar_clock()],
        include_transactions: Some(false),
        include_accounts: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    let request = SubscribeRequest {
        blocks: [("b".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let mut watch = Watch::open(&validator, request).await;
    for _ in 0..BLOCKS {
        let block = watch.next_block().await;
        let addresses: Vec<String> = block
            .accounts
            .iter()
            .map(|account| bs58::encode(&account.pubkey).into_string())
            .collect();
        assert_eq!(addresses, [sysvar_clock()], "slot {}", block.slot);
        assert!(block.updated_account_count > 1);
    }
}

/// Scenario `full-blocks`: every block holds all that it counts, at each commitment.
#[tokio::test]
async fn full_blocks_at_every_commitment() {
    let validator = Validator::start().await;
    for level in [
        CommitmentLevel::Processed,
        CommitmentLevel::Confirmed,
        CommitmentLevel::Finalized,
    ] {
        let request = SubscribeRequest {
            commitment: Some(level.into()),
            ..full_blocks()
        };
        let mut watch = Watch::open(&validator, request).await;
        let (mut parent, mut transactions) = (None, 0);
        for _ in 0..BLOCKS {
            let block = watch.next_block().await;
            assert!(parent.is_none_or(|parent| parent == block.parent_slot));
            parent = Some(block.slot);
            assert!(!block.accounts.is_empty(), "{level:?} {}", block.slot);
            assert_eq!(
                block.transactions.len() as u64,
                block.executed_transaction_count
            );
            transactions += block.transactions.len();
            assert_eq!(block.accounts.len() as u64, block.updated_account_count);
            let indexes: Vec<u64> = block.entries.iter().map(|entry| entry.index).collect();
            assert_eq!(indexes, (0..indexes.len() as u64).collect::<Vec<_>>());
            let last = block.entries.last().expect("entries");
            assert_eq!(bs58::encode(&last.hash).into_string(), block.blockhash);
            let counted = block
                .entries
                .iter()
                .map(|one| one.executed_transaction_count);
            assert_eq!(counted.sum::<u64>(), block.executed_transaction_count);
        }
        assert!(transactions > 0, "{level:?}: no transaction in any block");
    }
}

/// Scenario `block-subscription-replay`: replayed blocks are followed by the live ones without a gap.
#[tokio::test]
async fn block_subscription_replay() {
    let validator = Validator::start().await;
    let from = replayable(&validator).await;
    let mut watch = Watch::open(&validator, since(from, full_blocks())).await;
    let mut slots = Vec::new();
    while slots.len() < 2 * BLOCKS {
        slots.push(watch.next_block().await.slot);
    }
    assert_eq!(slots[0], from);
    slots.sort_unstable();
    slots.dedup();
    assert!(
        slots.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{slots:?}"
    );
}

/// Scenario `health-routes`: the health check answers for the server and the service, and for no other.
#[tokio::test]
async fn health_routes() {
    let validator = Validator::start().await;
    let mut health = HealthClient::new(validator.channel().await);
    for service in ["", "geyser.Geyser"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request.clone()).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
        let mut watch = health.watch(request).await.unwrap().into_inner();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!(first.status(), ServingStatus::Serving);
    }
    let unknown = HealthCheckRequest {
        service: "geyser.Unknown".to_owned(),
    };
    let refusal = health.check(unknown).await.unwrap_err();
    assert_eq!(refusal.code(), Code::NotFound);
}
