//! Filters of a subscription, matched with updates as a Geyser server matches them (pure).
//!
//! They stand for the server's own matching, equal to it: what no filter matches is never sent, and what is sent bears the
//! name of every filter that matched.

use cpmm::{TOKEN_ACCOUNT_LEN, ids};
use sluice_geyser::{
    AccountFilter, AccountUpdate, Body, Request, TransactionFilter, TransactionUpdate,
};
use solana_pubkey::Pubkey;

use crate::accounts::Account;

/// Value of the byte behind the base of a token account with extensions.
const EXTENDED_TOKEN_ACCOUNT: u8 = 2;

/// Names of the filters that an update matches, in the server's order.
#[must_use]
pub fn names(request: &Request, body: &Body) -> Vec<String> {
    match body {
        Body::Account(account) => {
            let filters = request.accounts.iter();
            let matching = filters.filter(|(_, filter)| matches_account(filter, account));
            matching.map(|(name, _)| name.clone()).collect()
        }
        Body::Transaction(transaction) => {
            let filters = request.transactions.iter();
            let matching = filters.filter(|(_, filter)| matches_transaction(filter, transaction));
            matching.map(|(name, _)| name.clone()).collect()
        }
        Body::Slot(_) => request.slots.iter().cloned().collect(),
        Body::BlockMeta(_) => request.blocks_meta.iter().cloned().collect(),
    }
}

fn matches_account(filter: &AccountFilter, update: &AccountUpdate) -> bool {
    let any_of = |keys: &[Pubkey], key: &Pubkey| keys.is_empty() || keys.contains(key);
    any_of(&filter.pubkeys, &update.pubkey)
        && any_of(&filter.owners, &update.owner)
        && filter
            .memcmp
            .iter()
            .all(|(at, bytes)| holds(&update.data, *at, bytes))
        && filter
            .datasize
            .is_none_or(|size| u64::try_from(update.data.len()) == Ok(size))
        && (!filter.token_account_state || is_token_account(&update.owner, &update.data))
        && filter
            .lamports
            .is_none_or(|wanted| wanted == update.lamports)
}

fn matches_transaction(filter: &TransactionFilter, update: &TransactionUpdate) -> bool {
    let owns = |key: &Pubkey| update.token_owners().any(|owner| owner == key);
    let names =
        |key: &Pubkey| update.account_keys.contains(key) || (filter.token_owners && owns(key));
    (filter.account_include.is_empty() || filter.account_include.iter().any(names))
        && !filter.account_exclude.iter().any(names)
        && filter.account_required.iter().all(names)
        && filter.votes.is_none_or(|votes| votes == update.is_vote)
        && filter
            .failed
            .is_none_or(|failed| failed == update.error.is_some())
}

/// Whether the account holds these bytes at this offset.
#[must_use]
pub fn has(account: &Account, offset: u64, bytes: &[u8]) -> bool {
    holds(&account.data, offset, bytes)
}

fn holds(data: &[u8], offset: u64, bytes: &[u8]) -> bool {
    usize::try_from(offset)
        .ok()
        .and_then(|offset| data.get(offset..))
        .is_some_and(|rest| rest.starts_with(bytes))
}

fn is_token_account(owner: &Pubkey, data: &[u8]) -> bool {
    let of_token_program = [ids::SPL_TOKEN, ids::TOKEN_2022].contains(owner);
    let shape = data.len() == TOKEN_ACCOUNT_LEN
        || data.get(TOKEN_ACCOUNT_LEN) == Some(&EXTENDED_TOKEN_ACCOUNT);
    of_token_program && shape
}
