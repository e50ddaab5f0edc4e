//! Cuckoo filters, expansion to owners of token accounts, and blocks.

use yellowstone_grpc_proto::{
    cuckoo::CuckooFilter,
    geyser::{
        CuckooFilter as WireCuckooFilter, SubscribeRequestFilterBlocks, SubscribeUpdateBlock,
        SubscribeUpdateEntry, TokenAccountExpansionControlFlag as Expansion,
    },
};

use super::*;

/// A cuckoo filter of accounts, as a client builds it.
fn cuckoo(addresses: &[u8]) -> WireCuckooFilter {
    let mut filter = CuckooFilter::<Address>::with_capacity(100).unwrap();
    for address in addresses {
        filter.insert(&[*address; 32]).unwrap();
    }
    WireCuckooFilter::from(&filter)
}

#[test]
fn a_cuckoo_filter_stands_for_its_accounts_beside_the_list() {
    let matches = |listed: &[u8], hidden: &[u8], owners: &[u8]| {
        let filter = SubscribeRequestFilterAccounts {
            account: listed.iter().copied().map(text).collect(),
            owner: owners.iter().copied().map(text).collect(),
            cuckoo_accounts_filter: Some(cuckoo(hidden)),
            ..SubscribeRequestFilterAccounts::default()
        };
        account_matches(filter, account())
    };
    assert!(matches(&[], &[8, 1, 9], &[]));
    assert!(matches(&[1], &[8], &[]) && matches(&[8], &[1], &[]));
    assert!(!matches(&[], &[8], &[]) && !matches(&[], &[], &[]));
    assert!(matches(&[], &[1], &[2]) && !matches(&[], &[1], &[9]));
}

#[test]
fn transactions_are_found_by_cuckoo_filter() {
    let matches = |hidden: &[u8]| {
        transaction_matches(SubscribeRequestFilterTransactions {
            cuckoo_account_include: Some(cuckoo(hidden)),
            ..SubscribeRequestFilterTransactions::default()
        })
    };
    assert!(matches(&[9, 3]) && !matches(&[9]));
}

#[test]
fn a_cuckoo_filter_of_another_layout_is_refused() {
    let refused = |change: &dyn Fn(&mut WireCuckooFilter)| {
        let mut wire = cuckoo(&[1]);
        change(&mut wire);
        let filter = SubscribeRequestFilterAccounts {
            cuckoo_accounts_filter: Some(wire),
            ..SubscribeRequestFilterAccounts::default()
        };
        refusal(&accounts(filter))
    };
    assert!(refused(&|wire| wire.hash_algorithm = 1).contains("hash algorithm"));
    assert!(refused(&|wire| wire.fingerprint_bits = 8).contains("16 bits"));
    assert!(refused(&|wire| wire.entries_per_bucket = 2).contains("4 entries"));
    assert!(refused(&|wire| wire.bucket_count += 1).contains("bucket_count"));
    assert!(refused(&|wire| wire.bucket_count = u32::MAX).contains("bucket_count"));
    assert!(refused(&|wire| wire.data.truncate(3)).contains("bucket_count"));
    assert!(refused(&|wire| *wire = WireCuckooFilter::default()).contains("4 entries"));
}

#[test]
fn token_owners_count_as_named_where_the_filter_says_so() {
    let matches = |expansion: Option<Expansion>, change: &dyn Fn(&mut _)| {
        let mut filter = SubscribeRequestFilterTransactions {
            token_accounts: expansion.map(i32::from),
            ..SubscribeRequestFilterTransactions::default()
        };
        change(&mut filter);
        transaction_matches(filter)
    };
    let (all, changed) = (Some(Expansion::All), Some(Expansion::BalanceChanged));
    type Change = SubscribeRequestFilterTransactions;
    // Owner 6 had its balance changed, owner 7 had not.
    let include = |owner: u8| move |filter: &mut Change| filter.account_include = vec![text(owner)];
    assert!(!matches(None, &include(6)) && !matches(None, &include(7)));
    assert!(matches(all, &include(6)) && matches(all, &include(7)));
    assert!(matches(changed, &include(6)) && !matches(changed, &include(7)));
    let exclude = |owner: u8| move |filter: &mut Change| filter.account_exclude = vec![text(owner)];
    assert!(matches(None, &exclude(7)) && !matches(all, &exclude(7)));
    assert!(matches(changed, &exclude(7)) && !matches(changed, &exclude(6)));
    let required = |filter: &mut Change| filter.account_required = vec![text(1), text(7)];
    assert!(matches(all, &required) && !matches(changed, &required));
    let hidden = |filter: &mut Change| filter.cuckoo_account_include = Some(cuckoo(&[7]));
    assert!(matches(all, &hidden) && !matches(None, &hidden));
}

fn block() -> Update {
    let entry = SubscribeUpdateEntry {
        index: 4,
        ..SubscribeUpdateEntry::default()
    };
    let mut other = account();
    other.address = [5; 32];
    Update::Block(Arc::new(Block {
        meta: Arc::new(SubscribeUpdateBlockMeta {
            slot: 5,
            blockhash: "hash".to_owned(),
            executed_transaction_count: 1,
            ..SubscribeUpdateBlockMeta::default()
        }),
        accounts: vec![Arc::new(account()), Arc::new(other)],
        transactions: vec![Arc::new(transaction())],
        entries: vec![Arc::new(entry)],
    }))
}

fn rendered(filter: SubscribeRequestFilterBlocks) -> SubscribeUpdateBlock {
    let request = SubscribeRequest {
        blocks: [("b".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let mut updates = render(&request, block());
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].filters, ["b"]);
    match updates.remove(0).update_oneof {
        Some(UpdateOneof::Block(block)) => block,
        other => panic!("{other:?}"),
    }
}

fn sizes(block: &SubscribeUpdateBlock) -> [usize; 3] {
    [
        block.transactions.len(),
        block.accounts.len(),
        block.entries.len(),
    ]
}

#[test]
fn a_block_comes_with_the_content_that_was_asked_for() {
    let plain = rendered(SubscribeRequestFilterBlocks::default());
    assert_eq!(sizes(&plain), [1, 0, 0]);
    assert_eq!((plain.slot, plain.blockhash.as_str()), (5, "hash"));
    assert_eq!((plain.updated_account_count, plain.entries_count), (2, 1));
    let full = SubscribeRequestFilterBlocks {
        include_accounts: Some(true),
        include_entries: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    assert_eq!(sizes(&rendered(full)), [1, 2, 1]);
    let none = SubscribeRequestFilterBlocks {
        include_transactions: Some(false),
        ..SubscribeRequestFilterBlocks::default()
    };
    assert_eq!(sizes(&rendered(none)), [0, 0, 0]);
}

#[test]
fn addresses_choose_within_a_block_and_never_drop_it() {
    let with = |listed: &[u8], hidden: Option<&[u8]>| {
        sizes(&rendered(SubscribeRequestFilterBlocks {
            account_include: listed.iter().copied().map(text).collect(),
            include_accounts: Some(true),
            cuckoo_account_include: hidden.map(cuckoo),
            ..SubscribeRequestFilterBlocks::default()
        }))
    };
    assert_eq!(with(&[5], None), [0, 1, 0]);
    assert_eq!(with(&[1], None), [1, 1, 0]);
    assert_eq!(with(&[9], None), [0, 0, 0]);
    assert_eq!(with(&[9], Some(&[3])), [1, 0, 0]);
}

#[test]
fn each_block_filter_gets_a_block_of_its_own() {
    let request = SubscribeRequest {
        blocks: ["x", "y"]
            .map(|name| (name.to_owned(), Default::default()))
            .into(),
        ..SubscribeRequest::default()
    };
    let updates = render(&request, block());
    let names: Vec<_> = updates.iter().map(|one| one.filters.clone()).collect();
    assert_eq!(names, [["x"], ["y"]]);
}

#[test]
fn slices_cut_the_accounts_of_a_block() {
    let filter = SubscribeRequestFilterBlocks {
        include_accounts: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    let request = SubscribeRequest {
        blocks: [("b".to_owned(), filter)].into(),
        accounts_data_slice: vec![SubscribeRequestAccountsDataSlice {
            offset: 7,
            length: 2,
        }],
        ..SubscribeRequest::default()
    };
    match render(&request, block()).remove(0).update_oneof {
        Some(UpdateOneof::Block(block)) => assert_eq!(block.accounts[0].data.to_vec(), [7, 8]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_need_a_filter() {
    let entry = || Update::Entry(Arc::new(SubscribeUpdateEntry::default()));
    assert!(render(&SubscribeRequest::default(), entry()).is_empty());
    let request = SubscribeRequest {
        entry: [("e".to_owned(), Default::default())].into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(render(&request, entry())[0].filters, ["e"]);
}
