//! Shares of the keys: complete, disjoint, within the limits, and as few as changes allow.

use super::*;

fn key(number: u16) -> Pubkey {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    Pubkey::new_from_array(bytes)
}

fn request(keys: impl Iterator<Item = u16> + Clone) -> Request {
    let keys: Vec<_> = keys.map(key).collect();
    let accounts = AccountFilter {
        pubkeys: keys.clone(),
        ..AccountFilter::default()
    };
    let transactions = TransactionFilter {
        account_include: keys,
        ..TransactionFilter::default()
    };
    Request {
        slots: Some("slots".to_owned()),
        accounts: BTreeMap::from([("accounts".to_owned(), accounts)]),
        transactions: BTreeMap::from([("transactions".to_owned(), transactions)]),
        ..Request::default()
    }
}

const LIMITS: RequestLimits = RequestLimits {
    pubkeys: Some(60),
    owners: None,
    account_include: None,
    account_filters: None,
    transaction_filters: None,
    keys: 100,
    keyless: true,
};

fn all(shares: &[Option<Request>]) -> Lists {
    let mut all = Lists::new();
    for share in shares.iter().flatten() {
        for (list, keys) in lists(share) {
            for key in keys {
                assert!(all.entry(list.clone()).or_default().insert(key), "twice");
            }
        }
    }
    all
}

#[test]
fn what_fits_stays_one_request() {
    let whole = request(0..50);
    let shares = divide(&whole, &[], &LIMITS).unwrap();
    assert_eq!(shares, [Some(whole)]);
    let nothing = Request::default();
    assert_eq!(divide(&nothing, &[], &LIMITS).unwrap(), [Some(nothing)]);
}

#[test]
fn every_key_is_in_one_share_and_no_share_exceeds_a_limit() {
    let whole = request(0..500);
    let shares = divide(&whole, &[], &LIMITS).unwrap();
    assert_eq!(all(&shares), lists(&whole));
    for share in shares.iter().flatten() {
        let lists = lists(share);
        assert!(lists.values().map(BTreeSet::len).sum::<usize>() <= LIMITS.keys);
        let pubkeys = lists.get(&List::Pubkeys("accounts".to_owned()));
        assert!(pubkeys.is_none_or(|keys| keys.len() <= 60));
        assert!(
            share
                .accounts
                .values()
                .all(|filter| !filter.pubkeys.is_empty())
        );
        assert!(
            share
                .transactions
                .values()
                .all(|f| !f.account_include.is_empty())
        );
        assert_eq!(share.slots.as_deref(), Some("slots"));
    }
}

#[test]
fn keys_that_stay_are_not_moved() {
    let first = divide(&request(0..300), &[], &LIMITS).unwrap();
    let before: Vec<_> = first.iter().flatten().collect();
    let wanted = request((0..300).chain(1000..1050).filter(|key| key % 7 != 0));
    let second = divide(&wanted, &before, &LIMITS).unwrap();
    assert_eq!(all(&second), lists(&wanted));
    for (before, after) in first.iter().zip(&second) {
        let (before, after) = (
            lists(before.as_ref().unwrap()),
            lists(after.as_ref().unwrap()),
        );
        for (list, keys) in before {
            let stay = keys
                .iter()
                .filter(|each| lists(&wanted)[&list].contains(each));
            assert!(stay.clone().all(|key| after[&list].contains(key)));
        }
    }
    let unchanged = divide(
        &wanted,
        &second.iter().flatten().collect::<Vec<_>>(),
        &LIMITS,
    );
    assert_eq!(unchanged.unwrap(), second);
}

#[test]
fn shares_without_keys_end_but_for_the_last() {
    let first = divide(&request(0..300), &[], &LIMITS).unwrap();
    let before: Vec<_> = first.iter().flatten().collect();
    let last = request(299..300);
    let shares = divide(&last, &before, &LIMITS).unwrap();
    assert_eq!(shares.len(), before.len());
    assert_eq!(all(&shares), lists(&last));
    let nothing = Request::default();
    let shares = divide(&nothing, &before, &LIMITS).unwrap();
    assert_eq!(shares.len(), before.len());
    assert_eq!(shares.iter().flatten().count(), 1);
}

#[test]
fn a_filter_without_keys_is_in_every_share_or_where_it_is_not_taken_in_none() {
    let mut whole = request(0..300);
    let closed = AccountFilter {
        lamports: Some(0),
        ..AccountFilter::default()
    };
    whole.accounts.insert("closed".to_owned(), closed);
    let none = RequestLimits {
        keyless: false,
        ..LIMITS
    };
    for (limits, is_there) in [(LIMITS, true), (none, false)] {
        let shares = divide(&whole, &[], &limits).unwrap();
        assert!(shares.len() > 1);
        for share in shares.iter().flatten() {
            assert_eq!(share.accounts.contains_key("closed"), is_there);
        }
    }
}

#[test]
fn too_many_keys_are_refused() {
    let most = u16::try_from(MAX_STRANDS * 50).unwrap();
    assert!(divide(&request(0..most), &[], &LIMITS).is_ok());
    assert!(divide(&request(0..most + 1), &[], &LIMITS).is_err());
    let none = RequestLimits {
        pubkeys: Some(0),
        ..LIMITS
    };
    assert!(divide(&request(0..1), &[], &none).is_err());
}

#[test]
fn filters_beyond_what_a_request_may_hold_go_into_another_share() {
    let filter = |number: u16, token_owners| TransactionFilter {
        account_include: vec![key(number)],
        token_owners,
        ..TransactionFilter::default()
    };
    let mut whole = request(0..2);
    let of_owners = AccountFilter {
        owners: vec![key(3)],
        ..AccountFilter::default()
    };
    let closed = AccountFilter {
        lamports: Some(0),
        ..AccountFilter::default()
    };
    whole.accounts.insert("owners".to_owned(), of_owners);
    whole.accounts.insert("closed".to_owned(), closed);
    whole
        .transactions
        .insert("token_owners".to_owned(), filter(4, true));
    let few = RequestLimits {
        account_filters: Some(2),
        transaction_filters: Some(1),
        ..LIMITS
    };
    let shares = divide(&whole, &[], &few).unwrap();
    assert_eq!(all(&shares), lists(&whole));
    let shares: Vec<Request> = shares.into_iter().flatten().collect();
    assert_eq!(shares.len(), 2);
    for share in &shares {
        assert!(
            share.accounts.len() <= 2 && share.transactions.len() <= 1,
            "{share:?}"
        );
        assert!(share.accounts.contains_key("closed"), "{share:?}");
    }
    let before: Vec<&Request> = shares.iter().collect();
    let again = divide(&whole, &before, &few).unwrap();
    let again: Vec<Request> = again.into_iter().flatten().collect();
    assert_eq!(again, shares, "nothing moves");
    // Where the one that names no key is all that a request may hold, the others have no room at all.
    let one = RequestLimits {
        account_filters: Some(1),
        ..LIMITS
    };
    assert!(matches!(
        divide(&whole, &[], &one),
        Err(StreamError::TooManyKeys { .. })
    ));
    let without_keyless = RequestLimits {
        keyless: false,
        ..one
    };
    let shares = divide(&whole, &[], &without_keyless).unwrap();
    assert_eq!(all(&shares), lists(&whole));
}
