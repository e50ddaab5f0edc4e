//! Filters: which updates each kind selects, and which requests are refused.

use std::sync::Arc;

use yellowstone_grpc_proto::{
    geyser::{
        SubscribeRequestFilterAccounts, SubscribeRequestFilterAccountsFilter,
        SubscribeRequestFilterAccountsFilterLamports, SubscribeRequestFilterAccountsFilterMemcmp,
        SubscribeRequestFilterBlocksMeta, SubscribeRequestFilterTransactions,
        SubscribeUpdateBlockMeta, SubscribeUpdateTransactionInfo,
        subscribe_request_filter_accounts_filter::Filter as Kind,
        subscribe_request_filter_accounts_filter_lamports::Cmp,
        subscribe_request_filter_accounts_filter_memcmp::Data,
    },
    prost_types::Timestamp,
    solana::storage::confirmed_block::{TransactionError, TransactionStatusMeta},
};

mod limits;
mod sets;

use super::*;
use crate::{
    config::Config,
    message::{Address, Block, TokenOwner},
};

fn configured(extra: &str) -> GrpcConfig {
    let text = format!(r#"{{libpath: "l", grpc: {{address: "127.0.0.1:1", {extra}}}}}"#);
    Config::parse(&text).unwrap().grpc
}

fn unlimited() -> GrpcConfig {
    configured("")
}

fn text(byte: u8) -> String {
    bs58::encode([byte; 32]).into_string()
}

fn account() -> AccountUpdate {
    AccountUpdate {
        slot: 5,
        address: [1; 32],
        owner: [2; 32],
        lamports: 500,
        executable: false,
        rent_epoch: 0,
        data: Bytes::from((0..=200).collect::<Vec<u8>>()),
        write_version: 7,
        txn_signature: Some([3; 64]),
        is_startup: false,
    }
}

fn transaction() -> TransactionUpdate {
    let meta = TransactionStatusMeta {
        err: Some(TransactionError { err: vec![1] }),
        ..TransactionStatusMeta::default()
    };
    TransactionUpdate {
        slot: 5,
        signature: [4; 64],
        is_vote: false,
        failed: true,
        keys: vec![[1; 32], [2; 32], [3; 32]],
        token_owners: vec![
            TokenOwner {
                owner: [6; 32],
                balance_changed: true,
            },
            TokenOwner {
                owner: [7; 32],
                balance_changed: false,
            },
        ],
        info: SubscribeUpdateTransactionInfo {
            index: 3,
            meta: Some(meta),
            ..SubscribeUpdateTransactionInfo::default()
        },
        wire_bytes: 0,
    }
}

fn render(request: &SubscribeRequest, update: Update) -> Vec<SubscribeUpdate> {
    let mut updates = Vec::new();
    let event = Event {
        update,
        created_at: Timestamp {
            seconds: 12,
            nanos: 34,
        },
    };
    Filter::compile(request, &unlimited())
        .unwrap()
        .render(&event, &mut updates);
    updates
}

fn accounts(filter: SubscribeRequestFilterAccounts) -> SubscribeRequest {
    SubscribeRequest {
        accounts: [("a".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    }
}

fn account_matches(filter: SubscribeRequestFilterAccounts, account: AccountUpdate) -> bool {
    !render(&accounts(filter), Update::Account(Arc::new(account))).is_empty()
}

fn condition(kind: Kind) -> SubscribeRequestFilterAccounts {
    conditions([kind])
}

fn conditions<const N: usize>(kinds: [Kind; N]) -> SubscribeRequestFilterAccounts {
    SubscribeRequestFilterAccounts {
        filters: kinds
            .map(|kind| SubscribeRequestFilterAccountsFilter { filter: Some(kind) })
            .into(),
        ..SubscribeRequestFilterAccounts::default()
    }
}

fn memcmp(offset: u64, data: Data) -> Kind {
    Kind::Memcmp(SubscribeRequestFilterAccountsFilterMemcmp {
        offset,
        data: Some(data),
    })
}

fn lamports(cmp: Cmp) -> Kind {
    Kind::Lamports(SubscribeRequestFilterAccountsFilterLamports { cmp: Some(cmp) })
}

#[test]
fn keys_and_owners_are_lists_of_alternatives_joined_by_and() {
    let filter = |keys: &[u8], owners: &[u8]| SubscribeRequestFilterAccounts {
        account: keys.iter().copied().map(text).collect(),
        owner: owners.iter().copied().map(text).collect(),
        ..SubscribeRequestFilterAccounts::default()
    };
    let matches = |keys: &[u8], owners: &[u8]| account_matches(filter(keys, owners), account());
    assert!(matches(&[], &[]));
    assert!(matches(&[9, 1], &[]));
    assert!(matches(&[], &[9, 2]));
    assert!(matches(&[1], &[2]));
    assert!(!matches(&[1], &[9]));
    assert!(!matches(&[9], &[2]));
}

#[test]
fn every_matching_filter_is_named_once_in_one_update() {
    let mut request = accounts(SubscribeRequestFilterAccounts::default());
    for (name, owner) in [("b", 2), ("no", 9), ("0", 2)] {
        let filter = SubscribeRequestFilterAccounts {
            owner: vec![text(owner)],
            ..SubscribeRequestFilterAccounts::default()
        };
        request.accounts.insert(name.to_owned(), filter);
    }
    let updates = render(&request, Update::Account(Arc::new(account())));
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].filters, ["0", "a", "b"]);
    assert_eq!(updates[0].created_at.unwrap().seconds, 12);
}

#[test]
fn memcmp_takes_bytes_base58_and_base64() {
    let at = |offset, data| account_matches(condition(memcmp(offset, data)), account());
    assert!(at(3, Data::Bytes(vec![3, 4])));
    assert!(!at(3, Data::Bytes(vec![3, 5])));
    assert!(at(3, Data::Base58(bs58::encode([3, 4]).into_string())));
    assert!(at(3, Data::Base64("AwQ=".to_owned())));
    assert!(at(200, Data::Bytes(vec![200])));
    assert!(!at(200, Data::Bytes(vec![200, 201])));
    assert!(!at(u64::MAX, Data::Bytes(vec![1])));
    assert!(!at(202, Data::Bytes(Vec::new())));
}

#[test]
fn conditions_are_joined_by_and() {
    let matches = |kinds: [Kind; 2]| account_matches(conditions(kinds), account());
    assert!(matches([
        Kind::Datasize(201),
        memcmp(0, Data::Bytes(vec![0]))
    ]));
    assert!(!matches([
        Kind::Datasize(200),
        memcmp(0, Data::Bytes(vec![0]))
    ]));
    assert!(!matches([
        Kind::Datasize(201),
        memcmp(0, Data::Bytes(vec![1]))
    ]));
}

#[test]
fn lamports_compare_in_four_ways() {
    let matches = |cmp| account_matches(condition(lamports(cmp)), account());
    assert!(matches(Cmp::Eq(500)) && !matches(Cmp::Eq(501)));
    assert!(matches(Cmp::Ne(501)) && !matches(Cmp::Ne(500)));
    assert!(matches(Cmp::Lt(501)) && !matches(Cmp::Lt(500)));
    assert!(matches(Cmp::Gt(499)) && !matches(Cmp::Gt(500)));
}

#[test]
fn token_accounts_are_known_by_length_state_and_type() {
    let with = |length: usize, state: u8, kind: u8| {
        let mut data = vec![0; length];
        data[108] = state;
        if length > 165 {
            data[165] = kind;
        }
        let account = AccountUpdate {
            data: data.into(),
            ..account()
        };
        account_matches(condition(Kind::TokenAccountState(true)), account)
    };
    assert!(with(165, 1, 0) && with(165, 2, 0) && with(170, 1, 2));
    assert!(
        !with(165, 0, 0) && !with(164, 1, 0),
        "uninitialized or short"
    );
    assert!(
        !with(170, 1, 1) && !with(355, 1, 2),
        "a mint and a multisig"
    );
}

#[test]
fn writes_are_selected_by_whether_a_transaction_made_them() {
    let matches = |wanted, txn_signature| {
        let filter = SubscribeRequestFilterAccounts {
            nonempty_txn_signature: Some(wanted),
            ..SubscribeRequestFilterAccounts::default()
        };
        let account = AccountUpdate {
            txn_signature,
            ..account()
        };
        account_matches(filter, account)
    };
    assert!(matches(true, Some([3; 64])) && !matches(true, None));
    assert!(matches(false, None) && !matches(false, Some([3; 64])));
}

#[test]
fn slices_are_cut_and_joined_and_left_out_when_the_data_ends_before() {
    let data = |slices: &[(u64, u64)]| {
        let mut request = accounts(SubscribeRequestFilterAccounts::default());
        request.accounts_data_slice = slices
            .iter()
            .map(|&(offset, length)| SubscribeRequestAccountsDataSlice { offset, length })
            .collect();
        let update = render(&request, Update::Account(Arc::new(account()))).remove(0);
        match update.update_oneof {
            Some(UpdateOneof::Account(update)) => update.account.unwrap().data.to_vec(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(data(&[]).len(), 201);
    assert_eq!(data(&[(4, 2)]), [4, 5]);
    assert_eq!(data(&[(0, 1), (1, 1), (199, 2)]), [0, 1, 199, 200]);
    assert_eq!(data(&[(0, 1), (199, 3)]), [0]);
    assert_eq!(data(&[(201, 1)]), [0; 0]);
    assert_eq!(data(&[(5, 0)]), [0; 0]);
}

fn transaction_matches(filter: SubscribeRequestFilterTransactions) -> bool {
    let request = SubscribeRequest {
        transactions: [("t".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    !render(&request, Update::Transaction(Arc::new(transaction()))).is_empty()
}

#[test]
fn transactions_are_selected_by_vote_outcome_signature_and_accounts() {
    let matches = |change: &dyn Fn(&mut SubscribeRequestFilterTransactions)| {
        let mut filter = SubscribeRequestFilterTransactions::default();
        change(&mut filter);
        transaction_matches(filter)
    };
    assert!(matches(&|_| ()));
    assert!(matches(&|filter| filter.vote = Some(false)));
    assert!(!matches(&|filter| filter.vote = Some(true)));
    assert!(matches(&|filter| filter.failed = Some(true)));
    assert!(!matches(&|filter| filter.failed = Some(false)));
    let signature = |byte: u8| Some(bs58::encode([byte; 64]).into_string());
    assert!(matches(&|filter| filter.signature = signature(4)));
    assert!(!matches(&|filter| filter.signature = signature(5)));
    assert!(matches(
        &|filter| filter.account_include = vec![text(9), text(3)]
    ));
    assert!(!matches(&|filter| filter.account_include = vec![text(9)]));
    assert!(matches(&|filter| filter.account_exclude = vec![text(9)]));
    assert!(!matches(
        &|filter| filter.account_exclude = vec![text(9), text(3)]
    ));
    assert!(matches(
        &|filter| filter.account_required = vec![text(1), text(3)]
    ));
    assert!(!matches(
        &|filter| filter.account_required = vec![text(1), text(9)]
    ));
    assert!(!matches(&|filter| {
        filter.account_include = vec![text(1)];
        filter.account_exclude = vec![text(2)];
    }));
}

#[test]
fn one_transaction_can_answer_both_kinds_of_filters() {
    let filter = SubscribeRequestFilterTransactions::default();
    let request = SubscribeRequest {
        transactions: [("t".to_owned(), filter.clone())].into(),
        transactions_status: [("s".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let updates = render(&request, Update::Transaction(Arc::new(transaction())));
    assert_eq!(updates.len(), 2);
    assert_eq!(updates[0].filters, ["t"]);
    assert_eq!(updates[1].filters, ["s"]);
    match &updates[1].update_oneof {
        Some(UpdateOneof::TransactionStatus(status)) => {
            assert_eq!(status.index, 3);
            assert_eq!(status.err.as_ref().unwrap().err, [1]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn slot_statuses_follow_the_commitment_and_interslot_switches() {
    let emitted = |by_commitment, interslot, status| {
        let filter = SubscribeRequestFilterSlots {
            filter_by_commitment: by_commitment,
            interslot_updates: interslot,
        };
        let request = SubscribeRequest {
            slots: [("s".to_owned(), filter)].into(),
            commitment: Some(CommitmentLevel::Confirmed.into()),
            ..SubscribeRequest::default()
        };
        let update = Update::Slot(SlotUpdate {
            slot: 1,
            parent: Some(0),
            status,
            dead_error: None,
        });
        !render(&request, update).is_empty()
    };
    use SlotStatus::{SlotConfirmed, SlotCreatedBank, SlotDead, SlotProcessed};
    assert!(emitted(None, None, SlotProcessed) && emitted(None, None, SlotConfirmed));
    assert!(!emitted(Some(true), None, SlotProcessed) && emitted(Some(true), None, SlotConfirmed));
    assert!(!emitted(None, None, SlotCreatedBank) && !emitted(None, Some(false), SlotDead));
    assert!(
        emitted(None, Some(true), SlotCreatedBank) && emitted(Some(true), Some(true), SlotDead)
    );
}

#[test]
fn block_metas_need_a_filter() {
    let meta = || Update::BlockMeta(Arc::new(SubscribeUpdateBlockMeta::default()));
    assert!(render(&SubscribeRequest::default(), meta()).is_empty());
    let request = SubscribeRequest {
        blocks_meta: [("m".to_owned(), SubscribeRequestFilterBlocksMeta {})].into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(render(&request, meta())[0].filters, ["m"]);
}

fn refusal(request: &SubscribeRequest) -> String {
    Filter::compile(request, &unlimited())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_not_served_is_refused_by_name() {
    let request = SubscribeRequest {
        block_footer: [("f".to_owned(), Default::default())].into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(
        refusal(&request),
        "filter `block_footer` is not supported by this server"
    );
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    let bad_key = SubscribeRequestFilterAccounts {
        account: vec!["not base58!".to_owned()],
        ..SubscribeRequestFilterAccounts::default()
    };
    assert_eq!(refusal(&accounts(bad_key)), "invalid address `not base58!`");
    let kinds = [
        (memcmp(0, Data::Bytes(vec![0; 129])), "128 bytes"),
        (memcmp(0, Data::Base58("1".repeat(500))), "128 bytes"),
        (memcmp(0, Data::Base58("0".to_owned())), "not base58"),
        (memcmp(0, Data::Base64("?".to_owned())), "not base64"),
        (Kind::TokenAccountState(false), "can only be true"),
    ];
    for (kind, reason) in kinds {
        let refusal = refusal(&accounts(condition(kind)));
        assert!(refusal.contains(reason), "{refusal}");
    }
    let five = conditions([1, 2, 3, 4, 5].map(Kind::Datasize));
    assert!(refusal(&accounts(five)).contains("at most 4"));
    let unknown = SubscribeRequest {
        commitment: Some(3),
        ..SubscribeRequest::default()
    };
    assert_eq!(refusal(&unknown), "unknown commitment level 3");
    let mut long_name = SubscribeRequest::default();
    long_name.slots.insert("n".repeat(129), Default::default());
    assert!(refusal(&long_name).contains("(max allowed size 128), found 129"));
}

#[test]
fn overlapping_and_overflowing_slices_are_refused() {
    let refused = |slices: &[(u64, u64)]| {
        let request = SubscribeRequest {
            accounts_data_slice: slices
                .iter()
                .map(|&(offset, length)| SubscribeRequestAccountsDataSlice { offset, length })
                .collect(),
            ..SubscribeRequest::default()
        };
        Filter::compile(&request, &unlimited()).is_err()
    };
    assert!(refused(&[(0, 2), (1, 1)]) && refused(&[(5, 1), (0, 1)]));
    assert!(refused(&[(u64::MAX, 1)]) && refused(&[(0, 1); 17]));
    assert!(!refused(&[(0, 2), (2, 1)]));
}
