//! Writes subscription requests as messages of the protocol, and refuses what no server accepts (pure).

use std::collections::{BTreeMap, HashMap};

use sluice_chain_types::Commitment;
use solana_pubkey::Pubkey;
use yellowstone_grpc_proto::prelude::{
    CommitmentLevel, SubscribeRequest, SubscribeRequestFilterAccounts,
    SubscribeRequestFilterAccountsFilter, SubscribeRequestFilterAccountsFilterLamports,
    SubscribeRequestFilterAccountsFilterMemcmp, SubscribeRequestFilterBlocksMeta,
    SubscribeRequestFilterSlots, SubscribeRequestFilterTransactions, SubscribeRequestPing,
    TokenAccountExpansionControlFlag, subscribe_request_filter_accounts_filter::Filter,
    subscribe_request_filter_accounts_filter_lamports::Cmp,
    subscribe_request_filter_accounts_filter_memcmp::Data,
};

use crate::{
    error::StreamError,
    limits::MAX_FILTER_NAME_BYTES,
    request::{AccountFilter, Request, TransactionFilter},
};

/// Checks what every server would refuse, or worse, understand as "everything".
pub(crate) fn validate(request: &Request) -> Result<(), StreamError> {
    for name in request.names() {
        if name.len() > MAX_FILTER_NAME_BYTES {
            return Err(StreamError::Refused(format!(
                "the filter name {name:?} is longer than {MAX_FILTER_NAME_BYTES} bytes"
            )));
        }
    }
    for (name, filter) in &request.accounts {
        if *filter == AccountFilter::default() {
            return Err(StreamError::Refused(format!(
                "the account filter {name:?} is empty, which would mean every account"
            )));
        }
        let conditions = data_filters(filter).count();
        if conditions > AccountFilter::MAX_DATA_FILTERS {
            return Err(StreamError::Refused(format!(
                "the account filter {name:?} has {conditions} conditions on the data, more than {}",
                AccountFilter::MAX_DATA_FILTERS
            )));
        }
    }
    Ok(())
}

/// The first request of a stream, and every later one that replaces it.
pub(crate) fn subscribe(request: &Request) -> SubscribeRequest {
    SubscribeRequest {
        accounts: named(&request.accounts, accounts),
        transactions: named(&request.transactions, transactions),
        slots: request
            .slots
            .iter()
            .map(|name| (name.clone(), slots()))
            .collect(),
        blocks_meta: request
            .blocks_meta
            .iter()
            .map(|name| (name.clone(), SubscribeRequestFilterBlocksMeta::default()))
            .collect(),
        commitment: Some(commitment(request.commitment).into()),
        from_slot: request.from_slot,
        ..SubscribeRequest::default()
    }
}

/// The answer to a server's ping: a ping and nothing else. Servers look at the ping alone and keep the subscription; with all its
/// keys the answer would be megabytes every ten seconds, which the server has to decode in order to ignore them.
pub(crate) fn ping_answer(id: i32) -> SubscribeRequest {
    SubscribeRequest {
        ping: Some(SubscribeRequestPing { id }),
        ..SubscribeRequest::default()
    }
}

fn named<F, W>(filters: &BTreeMap<String, F>, convert: fn(&F) -> W) -> HashMap<String, W> {
    filters
        .iter()
        .map(|(name, filter)| (name.clone(), convert(filter)))
        .collect()
}

fn commitment(commitment: Commitment) -> CommitmentLevel {
    match commitment {
        Commitment::Processed => CommitmentLevel::Processed,
        Commitment::Confirmed => CommitmentLevel::Confirmed,
        Commitment::Finalized => CommitmentLevel::Finalized,
    }
}

fn slots() -> SubscribeRequestFilterSlots {
    SubscribeRequestFilterSlots {
        filter_by_commitment: Some(false),
        // Dead slots are announced only among the updates between commitments.
        interslot_updates: Some(true),
    }
}

fn accounts(filter: &AccountFilter) -> SubscribeRequestFilterAccounts {
    SubscribeRequestFilterAccounts {
        account: base58(&filter.pubkeys),
        owner: base58(&filter.owners),
        filters: data_filters(filter)
            .map(|filter| SubscribeRequestFilterAccountsFilter {
                filter: Some(filter),
            })
            .collect(),
        ..SubscribeRequestFilterAccounts::default()
    }
}

fn data_filters(filter: &AccountFilter) -> impl Iterator<Item = Filter> {
    let memcmp = filter.memcmp.iter().map(|(offset, bytes)| {
        Filter::Memcmp(SubscribeRequestFilterAccountsFilterMemcmp {
            offset: *offset,
            data: Some(Data::Bytes(bytes.clone())),
        })
    });
    let lamports = filter.lamports.map(|lamports| {
        Filter::Lamports(SubscribeRequestFilterAccountsFilterLamports {
            cmp: Some(Cmp::Eq(lamports)),
        })
    });
    let data = memcmp.chain(filter.datasize.map(Filter::Datasize));
    data.chain(lamports).chain(
        filter
            .token_account_state
            .then_some(Filter::TokenAccountState(true)),
    )
}

fn transactions(filter: &TransactionFilter) -> SubscribeRequestFilterTransactions {
    SubscribeRequestFilterTransactions {
        vote: filter.votes,
        failed: filter.failed,
        account_include: base58(&filter.account_include),
        account_exclude: base58(&filter.account_exclude),
        account_required: base58(&filter.account_required),
        token_accounts: filter
            .token_owners
            .then(|| TokenAccountExpansionControlFlag::All.into()),
        ..SubscribeRequestFilterTransactions::default()
    }
}

fn base58(keys: &[Pubkey]) -> Vec<String> {
    keys.iter().map(Pubkey::to_string).collect()
}
