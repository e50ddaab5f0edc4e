//! Filters of a subscription, matched with account writes as a Geyser server matches them (pure).
//!
//! They stand for the server's own matching, equal to it: a write that no filter matches is never sent.

use cpmm::{TOKEN_ACCOUNT_LEN, ids};
use sluice_geyser::{AccountFilter, Request};
use solana_pubkey::Pubkey;

use crate::accounts::Account;

/// Value of the byte behind the base of a token account with extensions.
const EXTENDED_TOKEN_ACCOUNT: u8 = 2;

/// Names of the account filters that a write matches, in the server's order.
#[must_use]
pub fn names(request: &Request, key: &Pubkey, account: &Account) -> Vec<String> {
    let matching = request
        .accounts
        .iter()
        .filter(|(_, filter)| matches(filter, key, account));
    matching.map(|(name, _)| name.clone()).collect()
}

fn matches(filter: &AccountFilter, key: &Pubkey, account: &Account) -> bool {
    let any_of = |keys: &[Pubkey], key: &Pubkey| keys.is_empty() || keys.contains(key);
    any_of(&filter.pubkeys, key)
        && any_of(&filter.owners, &account.owner)
        && filter
            .memcmp
            .iter()
            .all(|(at, bytes)| has(account, *at, bytes))
        && filter.datasize.is_none_or(|size| size == len(account))
        && (!filter.token_account_state || is_token_account(account))
        && filter
            .lamports
            .is_none_or(|wanted| wanted == account.lamports)
}

/// Whether the data holds these bytes at this offset.
#[must_use]
pub fn has(account: &Account, offset: u64, bytes: &[u8]) -> bool {
    usize::try_from(offset)
        .ok()
        .and_then(|offset| account.data.get(offset..))
        .is_some_and(|rest| rest.starts_with(bytes))
}

fn len(account: &Account) -> u64 {
    u64::try_from(account.data.len()).unwrap_or(u64::MAX)
}

fn is_token_account(account: &Account) -> bool {
    let of_token_program = [ids::SPL_TOKEN, ids::TOKEN_2022].contains(&account.owner);
    let shape = account.data.len() == TOKEN_ACCOUNT_LEN
        || account.data.get(TOKEN_ACCOUNT_LEN) == Some(&EXTENDED_TOKEN_ACCOUNT);
    of_token_program && shape
}
