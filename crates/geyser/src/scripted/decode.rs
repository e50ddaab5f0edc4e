//! Decodes requests of the wire to [`Request`], so that scripts can check them (pure).

use sluice_chain_types::Commitment;
use solana_pubkey::Pubkey;
use yellowstone_grpc_proto::geyser::{
    self as proto, CommitmentLevel, TokenAccountExpansionControlFlag,
    subscribe_request_filter_accounts_filter::Filter,
    subscribe_request_filter_accounts_filter_lamports::Cmp,
    subscribe_request_filter_accounts_filter_memcmp::Data,
};

use super::connection::Received;
use crate::request::{AccountFilter, Request, TransactionFilter};

/// What cannot be expressed as a [`Request`] panics: the client under test never sends it, so the
/// test has found a fault.
pub(super) fn received(request: proto::SubscribeRequest) -> Received {
    let ping = request.ping.map(|ping| ping.id);
    let commitment = match request.commitment() {
        CommitmentLevel::Processed => Commitment::Processed,
        CommitmentLevel::Confirmed => Commitment::Confirmed,
        CommitmentLevel::Finalized => Commitment::Finalized,
    };
    let request = Request {
        commitment,
        accounts: request
            .accounts
            .into_iter()
            .map(|(name, f)| (name, account(f)))
            .collect(),
        transactions: request
            .transactions
            .into_iter()
            .map(|(name, f)| (name, transaction(f)))
            .collect(),
        slots: request.slots.into_keys().next(),
        blocks_meta: request.blocks_meta.into_keys().next(),
        from_slot: request.from_slot,
    };
    Received { request, ping }
}

fn keys(texts: Vec<String>) -> Vec<Pubkey> {
    texts
        .iter()
        .map(|text| text.parse().expect("the client sends base58 keys"))
        .collect()
}

fn account(filter: proto::SubscribeRequestFilterAccounts) -> AccountFilter {
    let mut decoded = AccountFilter {
        pubkeys: keys(filter.account),
        owners: keys(filter.owner),
        ..AccountFilter::default()
    };
    for condition in filter.filters {
        match condition.filter {
            Some(Filter::Memcmp(memcmp)) => match memcmp.data {
                Some(Data::Bytes(bytes)) => decoded.memcmp.push((memcmp.offset, bytes)),
                other => panic!("the client compares bytes only, not {other:?}"),
            },
            Some(Filter::Lamports(lamports)) => match lamports.cmp {
                Some(Cmp::Eq(lamports)) => decoded.lamports = Some(lamports),
                other => panic!("the client compares lamports for equality only, not {other:?}"),
            },
            Some(Filter::Datasize(size)) => decoded.datasize = Some(size),
            Some(Filter::TokenAccountState(wanted)) => decoded.token_account_state = wanted,
            other => panic!("the client does not use the condition {other:?}"),
        }
    }
    decoded
}

fn transaction(filter: proto::SubscribeRequestFilterTransactions) -> TransactionFilter {
    TransactionFilter {
        account_include: keys(filter.account_include),
        account_exclude: keys(filter.account_exclude),
        account_required: keys(filter.account_required),
        votes: filter.vote,
        failed: filter.failed,
        token_owners: filter.token_accounts.is_some_and(|flag| {
            assert_eq!(flag, i32::from(TokenAccountExpansionControlFlag::All));
            true
        }),
    }
}
