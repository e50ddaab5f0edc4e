//! Filter limits of the reference server: what it accepts in a request, and its words where it does not (pure).

use std::collections::BTreeSet;

use sluice_geyser::{AccountFilter, Request};
use solana_pubkey::Pubkey;

/// What a server accepts. Without a limit it accepts any number. The default is that of a reference server whose
/// configuration names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Account filters of one request.
    pub accounts_max: Option<usize>,
    /// Whether an account filter may name neither an address nor an owner.
    pub accounts_any: bool,
    /// Addresses of one account filter.
    pub account_max: Option<usize>,
    /// Addresses that no account filter may name.
    pub account_reject: BTreeSet<Pubkey>,
    /// Owners of one account filter.
    pub owner_max: Option<usize>,
    /// Owners that no account filter may name.
    pub owner_reject: BTreeSet<Pubkey>,
    /// Slots filters of one request.
    pub slots_max: Option<usize>,
    /// Transaction filters of one request.
    pub transactions_max: Option<usize>,
    /// Addresses that one transaction filter includes.
    pub account_include_max: Option<usize>,
    /// Addresses that no transaction filter may include.
    pub account_include_reject: BTreeSet<Pubkey>,
    /// Block metadata filters of one request.
    pub blocks_meta_max: Option<usize>,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self {
            accounts_max: None,
            accounts_any: true,
            account_max: None,
            account_reject: BTreeSet::new(),
            owner_max: None,
            owner_reject: BTreeSet::new(),
            slots_max: None,
            transactions_max: None,
            account_include_max: None,
            account_include_reject: BTreeSet::new(),
            blocks_meta_max: None,
        }
    }
}

impl FilterLimits {
    /// Whether a server takes the request.
    ///
    /// # Errors
    /// What the server says of it.
    pub fn check(&self, request: &Request) -> Result<(), String> {
        check_filters(request.accounts.len(), self.accounts_max)?;
        for filter in request.accounts.values() {
            check_any(filter, self.accounts_any)?;
            check_keys(&filter.pubkeys, self.account_max, &self.account_reject)?;
            check_keys(&filter.owners, self.owner_max, &self.owner_reject)?;
        }
        check_filters(usize::from(request.slots.is_some()), self.slots_max)?;
        check_filters(request.transactions.len(), self.transactions_max)?;
        for filter in request.transactions.values() {
            let (max, rejected) = (self.account_include_max, &self.account_include_reject);
            check_keys(&filter.account_include, max, rejected)?;
        }
        check_filters(
            usize::from(request.blocks_meta.is_some()),
            self.blocks_meta_max,
        )
    }
}

fn check_filters(count: usize, max: Option<usize>) -> Result<(), String> {
    match max {
        Some(max) if count > max => Err(format!(
            "Max amount of filters/data_slices reached, only {max} allowed"
        )),
        _ => Ok(()),
    }
}

fn check_any(filter: &AccountFilter, any: bool) -> Result<(), String> {
    if !any && filter.pubkeys.is_empty() && filter.owners.is_empty() {
        let words =
            "Subscribe on full stream with `any` is not allowed, at least one filter required";
        return Err(words.to_owned());
    }
    Ok(())
}

fn check_keys(
    keys: &[Pubkey],
    max: Option<usize>,
    rejected: &BTreeSet<Pubkey>,
) -> Result<(), String> {
    if let Some(max) = max.filter(|max| keys.len() > *max) {
        return Err(format!("Max amount of Pubkeys reached, only {max} allowed"));
    }
    match keys.iter().find(|key| rejected.contains(key)) {
        Some(key) => Err(format!("Pubkey {key} in filters is not allowed")),
        None => Ok(()),
    }
}
