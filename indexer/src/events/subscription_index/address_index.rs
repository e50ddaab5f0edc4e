//! Index of one commitment: the webhooks that watch an address, by the events that they want of it (pure).

use std::collections::HashMap;

use foldhash::quality::RandomState;
use solana_pubkey::Pubkey;

use super::SubscriberIndex;

/// In which events an address matches a webhook, as bits.
pub(super) type Criteria = u8;

pub(super) const CHANGES_OF_ACCOUNT: Criteria = 1;
pub(super) const CHANGES_BY_OWNER: Criteria = 1 << 1;
pub(super) const TRANSACTIONS_MENTIONING: Criteria = 1 << 2;
pub(super) const TRANSACTIONS_INVOKING: Criteria = 1 << 3;
pub(super) const EVENTS_OF_PROGRAM: Criteria = 1 << 4;
pub(super) const TRANSACTIONS_OF_TOKEN_OWNER: Criteria = 1 << 5;

/// The webhooks that watch an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watching {
    /// This webhook alone.
    One(SubscriberIndex, Criteria),
    /// Those of the shared list at this index.
    Many(u32),
}

/// The webhooks that watch an account by its address.
#[derive(Clone, Copy, Debug)]
pub struct AccountWatchers(Option<Watching>);

/// The webhooks that watch an address, in order of creation.
enum Watchers<'a> {
    One([(SubscriberIndex, Criteria); 1]),
    Many(&'a [(SubscriberIndex, Criteria)]),
}

impl Watchers<'_> {
    fn iter(&self) -> std::slice::Iter<'_, (SubscriberIndex, Criteria)> {
        match self {
            Self::One(one) => one.iter(),
            Self::Many(many) => many.iter(),
        }
    }
}

/// Size of an entry of the index.
pub const BYTES_PER_ADDRESS: usize = size_of::<(Pubkey, Watching)>() + 1;

/// The webhooks of one commitment, by the addresses that they watch.
#[derive(Debug, Default)]
pub struct SubscriptionIndex {
    /// Tenants choose addresses as they like: the hash is seeded at random, and tells nobody anything.
    pub(super) addresses: HashMap<Pubkey, Watching, RandomState>,
    pub(super) shared: Vec<Vec<(SubscriberIndex, Criteria)>>,
    /// The criteria of all addresses together.
    pub(super) criteria: Criteria,
    /// Addresses to come while it is built, at most.
    pub(super) expected: usize,
}

impl SubscriptionIndex {
    /// Whether no address is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Looks many accounts up, for [`Self::account_change`]. In an index that is larger than the processor's caches, look-ups that
    /// follow each other at once wait for the memory together.
    pub fn look_up<'a>(
        &self,
        accounts: impl IntoIterator<Item = &'a Pubkey>,
    ) -> Vec<AccountWatchers> {
        let accounts = accounts.into_iter();
        if self.criteria & CHANGES_OF_ACCOUNT == 0 {
            return accounts.map(|_| AccountWatchers(None)).collect();
        }
        let watching = accounts.map(|account| self.addresses.get(account).copied());
        watching.map(AccountWatchers).collect()
    }

    /// The webhooks that the write of an account matches: they watch it, or its owner. `found` is emptied first, and
    /// then holds each webhook once, in order of creation.
    pub fn account_change(
        &self,
        account: AccountWatchers,
        owner: &Pubkey,
        found: &mut Vec<SubscriberIndex>,
    ) {
        found.clear();
        if let Some(watching) = &account.0 {
            self.extend(watching, CHANGES_OF_ACCOUNT, found);
        }
        self.collect(owner, CHANGES_BY_OWNER, found);
        in_order(found);
    }

    /// The webhooks that watch an account by its address, in order of creation, into `found`, which is emptied first.
    pub fn watchers_of(&self, account: &Pubkey, found: &mut Vec<SubscriberIndex>) {
        found.clear();
        self.collect(account, CHANGES_OF_ACCOUNT, found);
    }

    /// The webhooks that watch the accounts of a program, in order of creation, into `found`, which is emptied first.
    pub fn watchers_of_program(&self, program: &Pubkey, found: &mut Vec<SubscriberIndex>) {
        found.clear();
        self.collect(program, CHANGES_BY_OWNER, found);
    }

    /// The webhooks that a transaction matches: it mentions an account they watch, invokes a program they watch, or had or has
    /// token accounts of an owner they watch.
    pub fn transaction<'a>(
        &self,
        mentioned: &[Pubkey],
        invoked: &[Pubkey],
        token_owners: impl Iterator<Item = &'a Pubkey>,
        found: &mut Vec<SubscriberIndex>,
    ) {
        found.clear();
        if self.criteria & TRANSACTIONS_MENTIONING != 0 {
            for address in mentioned {
                self.collect(address, TRANSACTIONS_MENTIONING, found);
            }
        }
        for program in invoked {
            self.collect(program, TRANSACTIONS_INVOKING, found);
        }
        if self.watches_token_owners() {
            for owner in token_owners {
                self.collect(owner, TRANSACTIONS_OF_TOKEN_OWNER, found);
            }
        }
        in_order(found);
    }

    /// The webhooks that an event of a program matches: they watch the program.
    pub fn program_event(&self, program: &Pubkey, found: &mut Vec<SubscriberIndex>) {
        found.clear();
        self.collect(program, EVENTS_OF_PROGRAM, found);
        in_order(found);
    }

    /// Whether any webhook wants events of programs at all; otherwise they need not be looked for.
    #[must_use]
    pub const fn wants_program_events(&self) -> bool {
        self.criteria & EVENTS_OF_PROGRAM != 0
    }

    pub(super) const fn watches_token_owners(&self) -> bool {
        self.criteria & TRANSACTIONS_OF_TOKEN_OWNER != 0
    }

    fn collect(&self, address: &Pubkey, criterion: Criteria, found: &mut Vec<SubscriberIndex>) {
        if self.criteria & criterion == 0 {
            return;
        }
        if let Some(watching) = self.addresses.get(address) {
            self.extend(watching, criterion, found);
        }
    }

    /// Adds the webhooks that watch an address in these events.
    fn extend(&self, watching: &Watching, criterion: Criteria, found: &mut Vec<SubscriberIndex>) {
        match watching {
            Watching::One(subscriber, criteria) if criteria & criterion != 0 => {
                found.push(*subscriber);
            }
            Watching::One(..) => {}
            Watching::Many(list) => {
                let matching = self
                    .list(*list)
                    .iter()
                    .filter(|(_, criteria)| criteria & criterion != 0);
                found.extend(matching.map(|(subscriber, _)| *subscriber));
            }
        }
    }

    fn list(&self, list: u32) -> &[(SubscriberIndex, Criteria)] {
        usize::try_from(list)
            .ok()
            .and_then(|list| self.shared.get(list))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn addresses_with(&self, criteria: Criteria) -> impl Iterator<Item = &Pubkey> {
        self.addresses
            .iter()
            .filter(move |(_, watching)| self.is_any(watching, criteria))
            .map(|(address, _)| address)
    }

    /// The index of some of the webhooks; `places` are their new indexes, `None` for those left out.
    pub(super) fn only(&self, places: &[Option<SubscriberIndex>]) -> Self {
        let mut index = Self::default();
        let place = |subscriber: SubscriberIndex| {
            let subscriber = usize::try_from(subscriber).ok()?;
            places.get(subscriber).copied().flatten()
        };
        for (address, watching) in &self.addresses {
            for (subscriber, criteria) in self.watchers(watching).iter() {
                if let Some(subscriber) = place(*subscriber) {
                    index.add(std::slice::from_ref(address), subscriber, *criteria);
                }
            }
        }
        index.addresses.shrink_to_fit();
        index
    }

    /// The index of what is not watched in `before`: an address stays for a webhook in those events in which it did not match
    /// it there. `formers` are the indexes of the webhooks in `before`, `None` for those that nothing there does for.
    pub(super) fn beyond(&self, before: &Self, formers: &[Option<SubscriberIndex>]) -> Self {
        let mut index = Self::default();
        let former = |subscriber: SubscriberIndex| {
            let subscriber = usize::try_from(subscriber).ok()?;
            formers.get(subscriber).copied().flatten()
        };
        for (address, watching) in &self.addresses {
            for (subscriber, criteria) in self.watchers(watching).iter() {
                let former = former(*subscriber);
                let held = former.map_or(0, |former| before.criteria_of(address, former));
                index.add(std::slice::from_ref(address), *subscriber, criteria & !held);
            }
        }
        index.addresses.shrink_to_fit();
        index
    }

    /// In which events an address matches a webhook.
    fn criteria_of(&self, address: &Pubkey, subscriber: SubscriberIndex) -> Criteria {
        let watching = self.addresses.get(address);
        let watchers = watching.map(|watching| self.watchers(watching));
        let watchers = watchers.iter().flat_map(Watchers::iter);
        let mut of_webhook = watchers.filter(|(watcher, _)| *watcher == subscriber);
        of_webhook.next().map_or(0, |(_, criteria)| *criteria)
    }

    fn watchers(&self, watching: &Watching) -> Watchers<'_> {
        match watching {
            Watching::One(subscriber, criteria) => Watchers::One([(*subscriber, *criteria)]),
            Watching::Many(list) => Watchers::Many(self.list(*list)),
        }
    }

    pub(super) fn matches(&self, address: &Pubkey, criteria: Criteria) -> bool {
        let watching = self.addresses.get(address);
        watching.is_some_and(|watching| self.is_any(watching, criteria))
    }

    fn is_any(&self, watching: &Watching, criteria: Criteria) -> bool {
        match watching {
            Watching::One(_, held) => held & criteria != 0,
            Watching::Many(list) => {
                let mut list = self.list(*list).iter();
                list.any(|(_, held)| held & criteria != 0)
            }
        }
    }

    pub(super) fn add(
        &mut self,
        addresses: &[Pubkey],
        subscriber: SubscriberIndex,
        criteria: Criteria,
    ) {
        if criteria == 0 {
            return;
        }
        self.criteria |= criteria;
        for address in addresses {
            let shared = &mut self.shared;
            self.addresses
                .entry(*address)
                .and_modify(|watching| join(watching, shared, subscriber, criteria))
                .or_insert(Watching::One(subscriber, criteria));
        }
    }
}

/// Adds a webhook to those that watch an address. A webhook's addresses are added one after the other, so it can
/// only be the last of the list already.
fn join(
    watching: &mut Watching,
    shared: &mut Vec<Vec<(SubscriberIndex, Criteria)>>,
    subscriber: SubscriberIndex,
    criteria: Criteria,
) {
    match watching {
        Watching::One(other, held) if *other == subscriber => *held |= criteria,
        Watching::One(other, held) => {
            let list = u32::try_from(shared.len()).unwrap_or(u32::MAX);
            shared.push(vec![(*other, *held), (subscriber, criteria)]);
            *watching = Watching::Many(list);
        }
        Watching::Many(list) => {
            let list = usize::try_from(*list)
                .ok()
                .and_then(|list| shared.get_mut(list));
            match list.map(|list| (list.last().copied(), list)) {
                Some((Some((last, held)), list)) if last == subscriber => {
                    list.pop();
                    list.push((subscriber, held | criteria));
                }
                Some((_, list)) => list.push((subscriber, criteria)),
                None => {}
            }
        }
    }
}

fn in_order(found: &mut Vec<SubscriberIndex>) {
    if found.len() > 1 {
        found.sort_unstable();
        found.dedup();
    }
}
