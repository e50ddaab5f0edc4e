//! Shares: divides the keys of a request among strands, so that no request exceeds what a server takes (pure).
//!
//! A key stays where it is as long as it is asked for: were it moved, the slots in which the one strand has it no more and
//! the other one not yet would lack it.

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

use crate::{
    error::StreamError,
    limits::MAX_STRANDS,
    request::{AccountFilter, Request, TransactionFilter},
    request_limits::RequestLimits,
};

/// A list of keys in a request, by the name of its filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Pubkeys(String),
    Owners(String),
    AccountInclude(String),
}

type Lists = BTreeMap<List, BTreeSet<Pubkey>>;

/// Divides a request. `before` are the shares as they are; the new ones are in the same order, `None` where nothing is left of
/// one, and those that are added come after them. At least one share is left.
///
/// # Errors
/// [`StreamError::TooManyKeys`].
pub fn divide(
    request: &Request,
    before: &[&Request],
    limits: &RequestLimits,
) -> Result<Vec<Option<Request>>, StreamError> {
    let mut rest = lists(request);
    let kept = before.iter().map(|share| keep(share, &mut rest));
    let mut shares: Vec<Lists> = kept.collect();
    let too_many = || StreamError::TooManyKeys {
        keys: request.keys(),
    };
    for (list, keys) in rest {
        let mut keys = keys.into_iter().peekable();
        let mut at = 0;
        while keys.peek().is_some() {
            if at == shares.len() {
                if at >= MAX_STRANDS {
                    return Err(too_many());
                }
                shares.push(Lists::new());
            }
            let Some(share) = shares.get_mut(at) else {
                return Err(too_many());
            };
            let room = if takes(share, &list, request, limits) {
                room(share, &list, limits)
            } else {
                0
            };
            if room > 0 {
                let taken = keys.by_ref().take(room);
                share.entry(list.clone()).or_default().extend(taken);
            } else if share.is_empty() {
                // Not even one key fits.
                return Err(too_many());
            }
            at += 1;
        }
    }
    if shares.iter().all(Lists::is_empty) {
        let unshared = std::iter::once(Some(base(request, limits)));
        let others = before.iter().skip(1).map(|_| None);
        return Ok(unshared.chain(others).collect());
    }
    let shares = shares.into_iter().map(|share| {
        let is_left = !share.is_empty();
        is_left.then(|| share_of(request, share, limits))
    });
    Ok(shares.collect())
}

impl RequestLimits {
    /// Divides a request into such as the server takes. Of those that are there `before`, each keeps what it has.
    ///
    /// # Errors
    /// [`StreamError::TooManyKeys`].
    pub fn divide(
        &self,
        request: &Request,
        before: &[Request],
    ) -> Result<Vec<Request>, StreamError> {
        let before: Vec<&Request> = before.iter().collect();
        Ok(divide(request, &before, self)?
            .into_iter()
            .flatten()
            .collect())
    }
}

/// The lists that can be divided. A filter that wants both an address and an owner cannot be.
fn lists(request: &Request) -> Lists {
    let mut lists = Lists::new();
    for (name, filter) in &request.accounts {
        if filter.owners.is_empty() {
            put(&mut lists, List::Pubkeys(name.clone()), &filter.pubkeys);
        } else if filter.pubkeys.is_empty() {
            put(&mut lists, List::Owners(name.clone()), &filter.owners);
        }
    }
    for (name, filter) in &request.transactions {
        let list = List::AccountInclude(name.clone());
        put(&mut lists, list, &filter.account_include);
    }
    lists
}

fn put(lists: &mut Lists, list: List, keys: &[Pubkey]) {
    if !keys.is_empty() {
        lists.insert(list, keys.iter().copied().collect());
    }
}

/// What a share keeps of what is asked for, which is taken out of `rest`.
fn keep(share: &Request, rest: &mut Lists) -> Lists {
    let mut kept = Lists::new();
    for (list, keys) in lists(share) {
        let Some(wanted) = rest.get_mut(&list) else {
            continue;
        };
        let keys: BTreeSet<Pubkey> = keys.into_iter().filter(|key| wanted.remove(key)).collect();
        if !keys.is_empty() {
            kept.insert(list, keys);
        }
    }
    kept
}

/// Whether a share may hold keys of this list: those of another filter may be all that the server takes in one request.
fn takes(share: &Lists, list: &List, request: &Request, limits: &RequestLimits) -> bool {
    if share.contains_key(list) {
        return true;
    }
    let is_of_transactions = |list: &List| matches!(list, List::AccountInclude(_));
    let others = share
        .keys()
        .filter(|other| is_of_transactions(other) == is_of_transactions(list));
    let (in_every_share, most) = if is_of_transactions(list) {
        (0, limits.transaction_filters)
    } else {
        let keyless = request
            .accounts
            .values()
            .filter(|filter| limits.keyless && filter.is_keyless());
        (keyless.count(), limits.account_filters)
    };
    most.is_none_or(|most| others.count() + in_every_share < most)
}

/// How many more keys of a list fit into a share.
fn room(share: &Lists, list: &List, limits: &RequestLimits) -> usize {
    let all: usize = share.values().map(BTreeSet::len).sum();
    let of_list = share.get(list).map_or(0, BTreeSet::len);
    let most = match list {
        List::Pubkeys(_) => limits.pubkeys,
        List::Owners(_) => limits.owners,
        List::AccountInclude(_) => limits.account_include,
    };
    let of_list = most.map_or(usize::MAX, |most| most.saturating_sub(of_list));
    limits.keys.saturating_sub(all).min(of_list)
}

/// A request without the lists that are divided. A filter of which nothing is left goes: without keys it would select
/// everything.
fn base(request: &Request, limits: &RequestLimits) -> Request {
    share_of(request, Lists::new(), limits)
}

/// A request for these keys. Filters without keys are in every share: were they in one of them, they would move when it ends.
fn share_of(request: &Request, share: Lists, limits: &RequestLimits) -> Request {
    let divided = lists(request);
    let mut share: BTreeMap<List, Vec<Pubkey>> = share
        .into_iter()
        .map(|(list, keys)| (list, keys.into_iter().collect()))
        .collect();
    let mut keys_of = |list: List| match (divided.contains_key(&list), share.remove(&list)) {
        (true, None) => None,
        (_, keys) => Some(keys.unwrap_or_default()),
    };
    let taken = request
        .accounts
        .iter()
        .filter(|(_, filter)| limits.keyless || !filter.is_keyless());
    let accounts = taken.filter_map(|(name, filter)| {
        let pubkeys = keys_of(List::Pubkeys(name.clone()))?;
        let owners = keys_of(List::Owners(name.clone()))?;
        let is_divided = !pubkeys.is_empty() || !owners.is_empty();
        let filter = AccountFilter {
            pubkeys: if is_divided {
                pubkeys
            } else {
                filter.pubkeys.clone()
            },
            owners: if is_divided {
                owners
            } else {
                filter.owners.clone()
            },
            ..filter.clone()
        };
        Some((name.clone(), filter))
    });
    let accounts = accounts.collect();
    let transactions = request.transactions.iter().filter_map(|(name, filter)| {
        let account_include = keys_of(List::AccountInclude(name.clone()))?;
        let filter = TransactionFilter {
            account_include,
            ..filter.clone()
        };
        Some((name.clone(), filter))
    });
    let transactions = transactions.collect();
    Request {
        accounts,
        transactions,
        commitment: request.commitment,
        slots: request.slots.clone(),
        blocks_meta: request.blocks_meta.clone(),
        from_slot: request.from_slot,
    }
}

#[cfg(test)]
mod tests;
