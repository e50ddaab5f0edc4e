//! Subscription index: which webhooks an event matches, and what an address costs.

use sluice_store::{ActiveWebhook, EventKind, Filters};

use super::*;
use crate::events::subscriber::fixtures::active_webhook;

fn address(number: u8) -> Pubkey {
    Pubkey::new_from_array([number; 32])
}

/// Kinds, accounts and programs of a webhook.
type Definition<'a> = (&'a [EventKind], &'a [u8], &'a [u8]);

fn live(number: u8, (events, accounts, programs): Definition<'_>) -> ActiveWebhook {
    let addresses = |numbers: &[u8]| numbers.iter().copied().map(address).collect();
    let filters = Filters {
        accounts: addresses(accounts),
        programs: addresses(programs),
        ..Filters::default()
    };
    ActiveWebhook {
        events: events.iter().copied().collect(),
        ..active_webhook(number, Commitment::Confirmed, filters)
    }
}

fn subscriptions(webhooks: Vec<ActiveWebhook>) -> Subscriptions {
    Subscriptions::new(&ActiveWebhooks {
        revision: Revision(5),
        webhooks,
    })
}

fn index(webhooks: &[Definition<'_>]) -> Subscriptions {
    subscriptions(
        (0..)
            .zip(webhooks)
            .map(|(number, each)| live(number, *each))
            .collect(),
    )
}

fn account_change(index: &Subscriptions, account: u8, owner: u8) -> Vec<SubscriberIndex> {
    changed(index.at(Commitment::Confirmed), account, owner)
}

fn changed(index: &SubscriptionIndex, account: u8, owner: u8) -> Vec<SubscriberIndex> {
    let mut found = vec![99];
    for watchers in index.look_up([&address(account)]) {
        index.account_change(watchers, &address(owner), &mut found);
    }
    found
}

fn transaction(index: &Subscriptions, mentioned: &[u8], invoked: &[u8]) -> Vec<SubscriberIndex> {
    let addresses = |numbers: &[u8]| numbers.iter().copied().map(address).collect::<Vec<_>>();
    let mut found = vec![99];
    index.at(Commitment::Confirmed).transaction(
        &addresses(mentioned),
        &addresses(invoked),
        std::iter::empty(),
        &mut found,
    );
    found
}

#[test]
fn an_account_is_matched_by_its_address_or_its_owner() {
    let index = index(&[
        (&[EventKind::AccountChange], &[10], &[]),
        (&[EventKind::AccountChange], &[], &[20]),
        (&[EventKind::AccountChange], &[10, 11], &[20]),
    ]);
    assert_eq!(account_change(&index, 10, 99), [0, 2]);
    assert_eq!(account_change(&index, 11, 99), [2]);
    assert_eq!(account_change(&index, 99, 20), [1, 2]);
    assert_eq!(account_change(&index, 10, 20), [0, 1, 2], "each once");
    assert!(
        account_change(&index, 20, 10).is_empty(),
        "the criteria are not mixed up"
    );
}

#[test]
fn a_transaction_is_matched_by_mention_of_an_account_or_invocation_of_a_program() {
    let index = index(&[
        (&[EventKind::Transaction], &[10], &[]),
        (&[EventKind::Transaction], &[], &[20]),
    ]);
    assert_eq!(transaction(&index, &[9, 10], &[21]), [0]);
    assert_eq!(transaction(&index, &[9], &[20]), [1]);
    assert!(
        transaction(&index, &[20], &[]).is_empty(),
        "mentioning a program is not invoking it"
    );
}

#[test]
fn a_transaction_is_matched_by_the_owner_of_a_token_account_and_not_by_mention_of_him() {
    let mut webhook = live(0, (&[EventKind::Transaction], &[11], &[]));
    webhook.filters.token_owners = vec![address(10)];
    let both = live(1, (&[EventKind::Transaction], &[10], &[]));
    let mut of_changes = live(2, (&[EventKind::AccountChange], &[11], &[]));
    of_changes.filters.token_owners = vec![address(10)];
    let index = subscriptions(vec![webhook, both, of_changes]);
    let matched = |mentioned: &[u8], owners: &[u8]| {
        let addresses = |numbers: &[u8]| numbers.iter().copied().map(address).collect::<Vec<_>>();
        let (mentioned, owners) = (addresses(mentioned), addresses(owners));
        let mut found = vec![99];
        let at = index.at(Commitment::Confirmed);
        at.transaction(&mentioned, &[], owners.iter(), &mut found);
        assert_eq!(index.reads(&mentioned, &owners), !found.is_empty());
        found
    };
    assert_eq!(matched(&[12], &[9, 10, 10]), [0], "each once");
    assert_eq!(matched(&[10], &[9]), [1]);
    assert_eq!(matched(&[10], &[10]), [0, 1]);
    assert!(matched(&[12], &[11]).is_empty());
    let owners: Vec<_> = index.token_owners().collect();
    assert_eq!(owners, [&address(10)]);
}

#[test]
fn an_event_is_matched_by_its_program_alone() {
    let index = index(&[(&EventKind::ALL, &[10], &[20])]);
    let mut found = Vec::new();
    index
        .at(Commitment::Confirmed)
        .program_event(&address(20), &mut found);
    assert_eq!(found, [0]);
    index
        .at(Commitment::Confirmed)
        .program_event(&address(10), &mut found);
    assert!(found.is_empty());
}

#[test]
fn kinds_that_were_not_asked_for_do_not_match() {
    let index = index(&[(&[EventKind::ProgramEvent], &[10], &[20])]);
    assert!(account_change(&index, 10, 20).is_empty());
    assert!(transaction(&index, &[10], &[20]).is_empty());
    assert!(index.watched_accounts().next().is_none());
    assert_eq!(
        index.mentioned_addresses().collect::<Vec<_>>(),
        [&address(20)]
    );
}

#[test]
fn an_address_may_be_account_and_program_of_several() {
    let kinds = &[EventKind::AccountChange, EventKind::Transaction];
    let index = index(&[
        (kinds, &[10], &[10]),
        (kinds, &[10], &[10]),
        (kinds, &[], &[10]),
    ]);
    assert_eq!(account_change(&index, 10, 99), [0, 1]);
    assert_eq!(account_change(&index, 99, 10), [0, 1, 2]);
    assert_eq!(transaction(&index, &[10], &[10]), [0, 1, 2]);
}

#[test]
fn webhooks_match_events_at_their_own_commitment() {
    let kinds: Definition<'_> = (&[EventKind::AccountChange], &[10], &[]);
    let finalized = ActiveWebhook {
        commitment: Commitment::Finalized,
        ..live(1, kinds)
    };
    let subscriptions = subscriptions(vec![live(0, kinds), finalized]);
    for (commitment, expected) in Commitment::ALL.into_iter().zip([vec![], vec![0], vec![1]]) {
        let found = changed(subscriptions.at(commitment), 10, 99);
        assert_eq!(found, expected, "{commitment}");
    }
    assert!(subscriptions.at(Commitment::Processed).is_empty());
}

fn ids(subscriptions: &Subscriptions) -> Vec<WebhookId> {
    let webhooks = subscriptions.webhooks().iter();
    webhooks.map(|webhook| webhook.id.clone()).collect()
}

#[test]
fn only_what_is_new_or_otherwise_is_changed() {
    let kinds: Definition<'_> = (&[EventKind::AccountChange], &[10], &[]);
    let (one, two) = (live(1, kinds), live(2, kinds));
    let before = subscriptions(vec![one.clone(), two.clone()]);
    let changed = |webhooks| ids(&subscriptions(webhooks).changed_since(&before));
    assert_eq!(changed(vec![two.clone()]), []);
    assert_eq!(ids(&before.changed_since(&before)), []);
    let more = live(2, (&[EventKind::AccountChange], &[10, 11], &[]));
    assert_eq!(changed(vec![one.clone(), more]), vec![two.id.clone()]);
    let later = ActiveWebhook {
        commitment: Commitment::Finalized,
        ..two.clone()
    };
    assert_eq!(changed(vec![one.clone(), later]), vec![two.id.clone()]);
    let mut choosier = two.clone();
    choosier.conditions.without_votes = true;
    assert_eq!(changed(vec![one.clone(), choosier]), vec![two.id.clone()]);
    let new = before.changed_since(&Subscriptions::default());
    assert_eq!(ids(&new), [one.id, two.id]);
}

/// What must be streamed for `after` beside what is streamed for `before`: accounts by address, accounts by owner, and addresses
/// that transactions mention.
fn beyond(before: &[ActiveWebhook], after: &[ActiveWebhook]) -> [Vec<Pubkey>; 3] {
    let (before, after) = (
        subscriptions(before.to_vec()),
        subscriptions(after.to_vec()),
    );
    let changed = after.changed_since(&before);
    let beyond = changed.beyond(&before);
    assert_eq!(ids(&beyond), ids(&changed), "the same webhooks");
    let all: [Vec<Pubkey>; 3] = [
        beyond.watched_accounts().copied().collect(),
        beyond.watched_owners().copied().collect(),
        beyond.mentioned_addresses().copied().collect(),
    ];
    let is_nothing = all.iter().all(Vec::is_empty);
    assert_eq!(beyond.watches_nothing(), is_nothing);
    all.map(|mut keys| {
        keys.sort_unstable();
        keys
    })
}

fn addresses(numbers: [&[u8]; 3]) -> [Vec<Pubkey>; 3] {
    numbers.map(|numbers| numbers.iter().copied().map(address).collect())
}

const BOTH: &[EventKind] = &[EventKind::AccountChange, EventKind::Transaction];

#[test]
fn of_a_webhook_with_more_keys_the_new_ones_alone_are_not_streamed_yet() {
    let before = [
        live(1, (BOTH, &[10, 11], &[20])),
        live(2, (BOTH, &[12], &[])),
    ];
    let other = before[1].clone();
    assert_eq!(beyond(&before, &before), addresses([&[], &[], &[]]));
    // One that another webhook watches is new to this one all the same, and one that is gone needs nothing.
    let edited = live(1, (BOTH, &[11, 12, 13], &[20, 21]));
    let new = addresses([&[12, 13], &[21], &[12, 13, 21]]);
    assert_eq!(beyond(&before, &[edited, other.clone()]), new);
    let fewer = live(1, (BOTH, &[10], &[]));
    assert_eq!(beyond(&before, &[fewer, other]), addresses([&[], &[], &[]]));
}

#[test]
fn an_old_key_is_not_streamed_yet_for_other_kinds_of_events_alone() {
    let before = [live(1, (&[EventKind::Transaction], &[10], &[20]))];
    let more = live(1, (BOTH, &[10, 11], &[20]));
    let new = addresses([&[10, 11], &[20], &[11]]);
    assert_eq!(beyond(&before, &[more]), new);
    // An account that becomes a program is matched by other events.
    let program = live(1, (&[EventKind::Transaction], &[], &[10, 20]));
    let new = addresses([&[], &[], &[10]]);
    assert_eq!(beyond(&before, &[program]), new);
}

#[test]
fn nothing_of_a_webhook_is_streamed_yet_that_is_new_or_may_match_more_by_its_old_keys() {
    let one = live(1, (BOTH, &[10, 11], &[]));
    let all = addresses([&[10, 11], &[], &[10, 11]]);
    assert_eq!(beyond(&[], std::slice::from_ref(&one)), all);
    let mut restricted = one.clone();
    restricted.conditions.without_votes = true;
    let earlier = ActiveWebhook {
        commitment: Commitment::Processed,
        ..one.clone()
    };
    for before in [restricted, earlier] {
        assert_eq!(beyond(&[before], std::slice::from_ref(&one)), all);
    }
    let mut after_a_pause = live(1, (BOTH, &[10, 11, 12], &[]));
    after_a_pause.first_slot = Some(7);
    let all = addresses([&[10, 11, 12], &[], &[10, 11, 12]]);
    assert_eq!(beyond(&[one], &[after_a_pause]), all);
}

#[test]
fn what_is_not_streamed_yet_matches_its_webhook_by_new_keys_alone() {
    let before = subscriptions(vec![
        live(0, (BOTH, &[10], &[])),
        live(1, (BOTH, &[10], &[])),
    ]);
    let after = subscriptions(vec![
        live(0, (BOTH, &[10, 11], &[])),
        live(1, (BOTH, &[10, 11, 12], &[])),
    ]);
    let beyond = after.beyond(&before);
    assert_eq!(account_change(&beyond, 10, 99), [] as [u32; 0]);
    assert_eq!(account_change(&beyond, 11, 99), [0, 1]);
    assert_eq!(account_change(&beyond, 12, 99), [1]);
    assert_eq!(transaction(&beyond, &[10, 12], &[]), [1]);
}

#[test]
fn a_part_of_the_webhooks_matches_what_it_matched_in_the_whole() {
    let kinds: Definition<'_> = (&[EventKind::AccountChange], &[10, 11], &[]);
    let of_one: Definition<'_> = (&[EventKind::AccountChange], &[12], &[20]);
    let whole = index(&[of_one, kinds, kinds]);
    let rest = subscriptions(vec![live(1, kinds), live(2, kinds)]);
    assert!(whole.still_in(&whole).is_none());
    let part = whole.still_in(&rest).expect("one is gone");
    assert_eq!(ids(&part), ids(&rest));
    assert_eq!(part.revision(), whole.revision());
    assert_eq!(account_change(&whole, 10, 99), [1, 2]);
    assert_eq!(account_change(&part, 10, 99), [0, 1]);
    let of_the_one_that_is_gone = account_change(&part, 12, 20);
    assert!(of_the_one_that_is_gone.is_empty());
    let watched: Vec<_> = part.watched_accounts().collect();
    assert_eq!(watched.len(), 2, "{watched:?}");
}

#[test]
fn a_million_accounts_take_less_than_two_hundred_bytes_each() {
    const ACCOUNTS: u32 = 1_000_000;
    let account = |number: u32| {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Pubkey::new_from_array(bytes)
    };
    let mut webhook = live(
        1,
        (
            &[EventKind::AccountChange, EventKind::Transaction],
            &[],
            &[],
        ),
    );
    webhook.filters.accounts = (0..ACCOUNTS).map(account).collect();
    let subscriptions = subscriptions(vec![webhook]);
    let index = subscriptions.at(Commitment::Confirmed);
    // The table keeps an eighth of its places free, and their number is a power of two.
    let places = (index.addresses.capacity() * 8)
        .div_ceil(7)
        .next_power_of_two();
    let each = places * BYTES_PER_ADDRESS / usize::try_from(ACCOUNTS).expect("small");
    assert!(each <= 200, "{each}");
    assert!(index.shared.is_empty());
}
