//! Filter limits of the reference server: what it accepts in a request, and its words where it does not (pure).

use std::collections::BTreeSet;

use sluice_geyser::{AccountFilter, Request, TransactionFilter};
use solana_pubkey::Pubkey;

/// Bytes of a filter's name, `filter_name_size_limit` of a server whose configuration names none.
const DEFAULT_NAME_BYTES: usize = 128;

/// What a server accepts. Without a limit it accepts any number. The default is that of a reference server whose
/// configuration names none. Slices of account data are not limited, since [`Request`] has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Bytes of the name of a filter.
    pub name_max: usize,
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
    /// Whether a transaction filter may restrict nothing.
    pub transactions_any: bool,
    /// Addresses that one transaction filter includes.
    pub account_include_max: Option<usize>,
    /// Addresses that no transaction filter may include.
    pub account_include_reject: BTreeSet<Pubkey>,
    /// Addresses that one transaction filter excludes.
    pub account_exclude_max: Option<usize>,
    /// Addresses that one transaction filter requires.
    pub account_required_max: Option<usize>,
    /// Block metadata filters of one request.
    pub blocks_meta_max: Option<usize>,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self {
            name_max: DEFAULT_NAME_BYTES,
            accounts_max: None,
            accounts_any: true,
            account_max: None,
            account_reject: BTreeSet::new(),
            owner_max: None,
            owner_reject: BTreeSet::new(),
            slots_max: None,
            transactions_max: None,
            transactions_any: true,
            account_include_max: None,
            account_include_reject: BTreeSet::new(),
            account_exclude_max: None,
            account_required_max: None,
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
        self.check_names(request.accounts.keys())?;
        for filter in request.accounts.values() {
            check_any(names_nothing(filter), self.accounts_any)?;
            check_keys(&filter.pubkeys, self.account_max, &self.account_reject)?;
            check_keys(&filter.owners, self.owner_max, &self.owner_reject)?;
        }
        check_filters(usize::from(request.slots.is_some()), self.slots_max)?;
        self.check_names(&request.slots)?;
        check_filters(request.transactions.len(), self.transactions_max)?;
        self.check_names(request.transactions.keys())?;
        for filter in request.transactions.values() {
            self.check_transactions(filter)?;
        }
        let blocks_meta = usize::from(request.blocks_meta.is_some());
        check_filters(blocks_meta, self.blocks_meta_max)?;
        self.check_names(&request.blocks_meta)
    }

    fn check_names<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
        let max = self.name_max;
        let too_long = names.into_iter().find(|name| name.len() > max);
        too_long.map_or(Ok(()), |name| {
            let found = name.len();
            Err(format!(
                "oversized filter name (max allowed size {max}), found {found}"
            ))
        })
    }

    fn check_transactions(&self, filter: &TransactionFilter) -> Result<(), String> {
        check_any(restricts_nothing(filter), self.transactions_any)?;
        let (max, rejected) = (self.account_include_max, &self.account_include_reject);
        check_keys(&filter.account_include, max, rejected)?;
        // No server has a list of what these may not name.
        let none = BTreeSet::new();
        check_keys(&filter.account_exclude, self.account_exclude_max, &none)?;
        check_keys(&filter.account_required, self.account_required_max, &none)
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

fn names_nothing(filter: &AccountFilter) -> bool {
    filter.pubkeys.is_empty() && filter.owners.is_empty()
}

fn restricts_nothing(filter: &TransactionFilter) -> bool {
    let lists = [
        &filter.account_include,
        &filter.account_exclude,
        &filter.account_required,
    ];
    filter.votes.is_none() && filter.failed.is_none() && lists.iter().all(|list| list.is_empty())
}

fn check_any(is_empty: bool, any: bool) -> Result<(), String> {
    if is_empty && !any {
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
