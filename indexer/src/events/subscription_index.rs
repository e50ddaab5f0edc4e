//! Subscription index: finds the active webhooks that an event matches (pure).
//!
//! The index is built once per revision of the webhooks. Matching an event costs one hash look-up per
//! address that the event touches, however many webhooks there are.
//!
//! A watched address takes [`BYTES_PER_ADDRESS`] in the index, up to 2.3 times that when the table has just grown,
//! and nothing more as long as one webhook watches it: a million accounts fit in a hundred megabytes.

use std::collections::{HashMap, HashSet};

use sluice_geyser::TransactionUpdate;
use sluice_store::{ActiveWebhooks, Commitment, EventKinds, Revision, WebhookId};
use solana_pubkey::Pubkey;

use super::subscriber::Subscriber;

/// Index of a webhook for [`Subscriptions::webhook`]: the order of creation.
pub type SubscriberIndex = u32;

/// In which events an address matches a webhook, as bits.
type Criteria = u8;

const CHANGES_OF_ACCOUNT: Criteria = 1;
const CHANGES_BY_OWNER: Criteria = 1 << 1;
const TRANSACTIONS_MENTIONING: Criteria = 1 << 2;
const TRANSACTIONS_INVOKING: Criteria = 1 << 3;
const EVENTS_OF_PROGRAM: Criteria = 1 << 4;
const TRANSACTIONS_OF_TOKEN_OWNER: Criteria = 1 << 5;

/// The webhooks that watch an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    /// This webhook alone.
    One(SubscriberIndex, Criteria),
    /// Those of the shared list at this index.
    Many(u32),
}

/// Size of an entry of the index.
pub const BYTES_PER_ADDRESS: usize = size_of::<(Pubkey, Watching)>() + 1;

/// The webhooks of one commitment, by the addresses that they watch.
#[derive(Debug, Default)]
pub struct SubscriptionIndex {
    addresses: HashMap<Pubkey, Watching>,
    shared: Vec<Vec<(SubscriberIndex, Criteria)>>,
    /// The criteria of all addresses together.
    criteria: Criteria,
    /// Addresses to come while it is built, at most.
    expected: usize,
}

/// Every active webhook.
#[derive(Debug, Default)]
pub struct Subscriptions {
    revision: Revision,
    webhooks: Vec<Subscriber>,
    /// In the order of [`Commitment::ALL`].
    indexes: [SubscriptionIndex; 3],
    /// Programs of which the transactions are not asked for because of what they may take: a server refuses that.
    without_takings: HashSet<Pubkey>,
}

impl Subscriptions {
    /// Builds the index.
    #[must_use]
    pub fn new(active: &ActiveWebhooks) -> Self {
        let mut subscriptions = Self {
            revision: active.revision,
            webhooks: active.webhooks.iter().map(Subscriber::from).collect(),
            ..Self::default()
        };
        // All at once: tables that are outgrown would leave as much memory behind as the last one holds.
        for webhook in &active.webhooks {
            let index = &mut subscriptions.indexes[place(webhook.commitment)];
            index.expected = index.expected.saturating_add(webhook.filters.count());
        }
        for index in &mut subscriptions.indexes {
            index.addresses.reserve(index.expected);
        }
        for (subscriber, webhook) in (0..).zip(&active.webhooks) {
            let index = &mut subscriptions.indexes[place(webhook.commitment)];
            let (of_accounts, of_programs, of_token_owners) = criteria(webhook.events);
            index.add(&webhook.filters.accounts, subscriber, of_accounts);
            index.add(&webhook.filters.programs, subscriber, of_programs);
            index.add(&webhook.filters.token_owners, subscriber, of_token_owners);
        }
        for index in &mut subscriptions.indexes {
            index.addresses.shrink_to_fit();
        }
        subscriptions
    }

    /// The revision of the webhooks this index was built from.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The webhooks, in order of creation.
    #[must_use]
    pub fn webhooks(&self) -> &[Subscriber] {
        &self.webhooks
    }

    /// The webhook at an index that a [`SubscriptionIndex`] found.
    #[must_use]
    pub fn webhook(&self, index: SubscriberIndex) -> Option<&Subscriber> {
        self.webhooks.get(usize::try_from(index).ok()?)
    }

    /// The webhooks to which events are emitted at this commitment.
    #[must_use]
    pub fn at(&self, commitment: Commitment) -> &SubscriptionIndex {
        &self.indexes[place(commitment)]
    }

    /// The webhooks that were not there in `before`, or were something else: what is streamed for `before` does not do
    /// for them. Those that are told of operations alone need no stream.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Self {
        let known: HashMap<_, _> = before
            .webhooks
            .iter()
            .map(|webhook| (&webhook.id, webhook))
            .collect();
        self.only(|webhook| {
            let known = known.get(&webhook.id);
            webhook.watches_something() && known.is_none_or(|known| !known.matches_like(webhook))
        })
    }

    /// The webhooks that are still there in `after`, as they are here; `None` when all are.
    #[must_use]
    pub fn still_in(&self, after: &Self) -> Option<Self> {
        let there: HashSet<_> = after.webhooks.iter().map(|webhook| &webhook.id).collect();
        let stays = |webhook: &Subscriber| there.contains(&webhook.id);
        let all = self.webhooks.iter().all(stays);
        (!all).then(|| self.only(stays))
    }

    /// Those of the webhooks that are named.
    #[must_use]
    pub fn among(&self, named: &HashSet<WebhookId>) -> Self {
        self.only(|webhook| named.contains(&webhook.id))
    }

    /// The same, told of the slots from before they were created or switched on, too.
    #[must_use]
    pub fn for_every_slot(self) -> Self {
        let webhooks = self.webhooks.into_iter();
        Self {
            webhooks: webhooks.map(Subscriber::for_every_slot).collect(),
            ..self
        }
    }

    /// Those of the webhooks that are not among `others` as they are here.
    #[must_use]
    pub fn without(&self, others: &[Subscriber]) -> Option<Self> {
        let others: HashMap<_, _> = others.iter().map(|other| (&other.id, other)).collect();
        let stays = |webhook: &Subscriber| {
            others
                .get(&webhook.id)
                .is_none_or(|other| !other.matches_like(webhook))
        };
        let all = self.webhooks.iter().all(stays);
        (!all).then(|| self.only(stays))
    }

    /// Some of the webhooks, at the same revision. Costs a look at every address.
    fn only(&self, wanted: impl Fn(&Subscriber) -> bool) -> Self {
        let mut webhooks = Vec::new();
        let places: Vec<Option<SubscriberIndex>> = self
            .webhooks
            .iter()
            .map(|webhook| {
                wanted(webhook).then(|| {
                    webhooks.push(webhook.clone());
                    SubscriberIndex::try_from(webhooks.len() - 1).unwrap_or(SubscriberIndex::MAX)
                })
            })
            .collect();
        Self {
            revision: self.revision,
            webhooks,
            indexes: self.indexes.each_ref().map(|index| index.only(&places)),
            without_takings: self.without_takings.clone(),
        }
    }

    /// Accounts whose writes must be streamed.
    pub fn watched_accounts(&self) -> impl Iterator<Item = &Pubkey> {
        self.addresses(CHANGES_OF_ACCOUNT)
    }

    /// Programs whose accounts' writes must be streamed.
    pub fn watched_owners(&self) -> impl Iterator<Item = &Pubkey> {
        self.addresses(CHANGES_BY_OWNER)
    }

    /// Programs whose transactions must be streamed because of what they may take from them.
    pub fn takers(&self) -> impl Iterator<Item = &Pubkey> {
        let is_asked = |program: &&Pubkey| !self.without_takings.contains(*program);
        self.watched_owners().filter(is_asked)
    }

    /// The programs of a webhook whose transactions it does not ask for, and that are streamed because of what they may take.
    #[must_use]
    pub fn takers_of(&self, webhook: &WebhookId) -> HashSet<Pubkey> {
        let alone = self.only(|each| each.id == *webhook);
        let mentioned: HashSet<Pubkey> = alone.mentioned_addresses().copied().collect();
        let takers = alone.takers().copied();
        takers.filter(|each| !mentioned.contains(each)).collect()
    }

    /// The same, without asking for what the transactions of these programs, too, may take.
    #[must_use]
    pub fn without_takings_of(&self, programs: &HashSet<Pubkey>) -> Self {
        let mut without = self.only(|_| true);
        without.without_takings.extend(programs);
        without
    }

    /// Whether accounts of any program are watched.
    #[must_use]
    pub fn watches_owners(&self) -> bool {
        let mut indexes = self.indexes.iter();
        indexes.any(|index| index.criteria & CHANGES_BY_OWNER != 0)
    }

    /// Whether the accounts of this program are watched.
    #[must_use]
    pub fn watches_owner(&self, program: &Pubkey) -> bool {
        let mut indexes = self
            .indexes
            .iter()
            .filter(|index| index.criteria & CHANGES_BY_OWNER != 0);
        indexes.any(|index| index.matches(program, CHANGES_BY_OWNER))
    }

    /// Programs whose events are watched.
    pub fn event_programs(&self) -> impl Iterator<Item = &Pubkey> {
        self.addresses(EVENTS_OF_PROGRAM)
    }

    /// Addresses of which one must be mentioned by a transaction that is streamed. A program that is invoked
    /// is always mentioned.
    pub fn mentioned_addresses(&self) -> impl Iterator<Item = &Pubkey> {
        self.addresses(TRANSACTIONS_MENTIONING | TRANSACTIONS_INVOKING | EVENTS_OF_PROGRAM)
    }

    /// Owners of token accounts, of which a transaction that is streamed must show one in its token balances where it
    /// mentions none of the [addresses](Self::mentioned_addresses).
    pub fn token_owners(&self) -> impl Iterator<Item = &Pubkey> {
        self.addresses(TRANSACTIONS_OF_TOKEN_OWNER)
    }

    /// Whether a transaction must be read.
    #[must_use]
    pub fn reads_transaction(&self, transaction: &TransactionUpdate) -> bool {
        let mut watching = self.indexes.iter();
        let token_owners = if watching.any(SubscriptionIndex::watches_token_owners) {
            transaction.token_owners().copied().collect()
        } else {
            Vec::new()
        };
        self.reads(&transaction.account_keys, &token_owners)
    }

    /// Whether a transaction must be read that mentions these addresses, and has token accounts of these owners.
    #[must_use]
    pub fn reads(&self, mentioned: &[Pubkey], token_owners: &[Pubkey]) -> bool {
        const ANY: Criteria = TRANSACTIONS_MENTIONING | TRANSACTIONS_INVOKING | EVENTS_OF_PROGRAM;
        let any = |index: &SubscriptionIndex, addresses: &[Pubkey], criteria: Criteria| {
            index.criteria & criteria != 0
                && addresses
                    .iter()
                    .any(|address| index.matches(address, criteria))
        };
        self.indexes.iter().any(|index| {
            any(index, mentioned, ANY) || any(index, token_owners, TRANSACTIONS_OF_TOKEN_OWNER)
        })
    }

    /// Accounts that are watched by address at this commitment.
    pub fn watched_accounts_at(&self, commitment: Commitment) -> impl Iterator<Item = &Pubkey> {
        self.at(commitment).addresses_with(CHANGES_OF_ACCOUNT)
    }

    /// Programs whose accounts are watched at a commitment.
    pub fn watched_owners_at(&self, commitment: Commitment) -> impl Iterator<Item = &Pubkey> {
        self.at(commitment).addresses_with(CHANGES_BY_OWNER)
    }

    fn addresses(&self, criteria: Criteria) -> impl Iterator<Item = &Pubkey> {
        self.indexes
            .iter()
            .flat_map(move |index| index.addresses_with(criteria))
    }
}

impl SubscriptionIndex {
    /// Whether no address is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The webhooks that the write of an account matches: they watch it, or its owner. `found` is emptied first, and
    /// then holds each webhook once, in order of creation.
    pub fn account_change(
        &self,
        account: &Pubkey,
        owner: &Pubkey,
        found: &mut Vec<SubscriberIndex>,
    ) {
        found.clear();
        self.collect(account, CHANGES_OF_ACCOUNT, found);
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

    const fn watches_token_owners(&self) -> bool {
        self.criteria & TRANSACTIONS_OF_TOKEN_OWNER != 0
    }

    fn collect(&self, address: &Pubkey, criterion: Criteria, found: &mut Vec<SubscriberIndex>) {
        if self.criteria & criterion == 0 {
            return;
        }
        match self.addresses.get(address) {
            None => {}
            Some(Watching::One(subscriber, criteria)) if criteria & criterion != 0 => {
                found.push(*subscriber);
            }
            Some(Watching::One(..)) => {}
            Some(Watching::Many(list)) => {
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

    fn addresses_with(&self, criteria: Criteria) -> impl Iterator<Item = &Pubkey> {
        self.addresses
            .iter()
            .filter(move |(_, watching)| self.is_any(watching, criteria))
            .map(|(address, _)| address)
    }

    /// The index of some of the webhooks; `places` are their new indexes, `None` for those left out.
    fn only(&self, places: &[Option<SubscriberIndex>]) -> Self {
        let mut index = Self::default();
        let place = |subscriber: SubscriberIndex| {
            let subscriber = usize::try_from(subscriber).ok()?;
            places.get(subscriber).copied().flatten()
        };
        for (address, watching) in &self.addresses {
            let one;
            let all = match watching {
                Watching::One(subscriber, criteria) => {
                    one = [(*subscriber, *criteria)];
                    &one[..]
                }
                Watching::Many(list) => self.list(*list),
            };
            for (subscriber, criteria) in all {
                if let Some(subscriber) = place(*subscriber) {
                    index.add(std::slice::from_ref(address), subscriber, *criteria);
                }
            }
        }
        index.addresses.shrink_to_fit();
        index
    }

    fn matches(&self, address: &Pubkey, criteria: Criteria) -> bool {
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

    fn add(&mut self, addresses: &[Pubkey], subscriber: SubscriberIndex, criteria: Criteria) {
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

/// The criteria of the accounts, the programs and the token owners of a webhook that wants these kinds of events.
const fn criteria(events: EventKinds) -> (Criteria, Criteria, Criteria) {
    let (mut of_accounts, mut of_programs, mut of_token_owners) = (0, 0, 0);
    if events.account_change {
        of_accounts |= CHANGES_OF_ACCOUNT;
        of_programs |= CHANGES_BY_OWNER;
    }
    if events.transaction {
        of_accounts |= TRANSACTIONS_MENTIONING;
        of_programs |= TRANSACTIONS_INVOKING;
        of_token_owners |= TRANSACTIONS_OF_TOKEN_OWNER;
    }
    if events.program_event {
        of_programs |= EVENTS_OF_PROGRAM;
    }
    (of_accounts, of_programs, of_token_owners)
}

const fn place(commitment: Commitment) -> usize {
    match commitment {
        Commitment::Processed => 0,
        Commitment::Confirmed => 1,
        Commitment::Finalized => 2,
    }
}

fn in_order(found: &mut Vec<SubscriberIndex>) {
    if found.len() > 1 {
        found.sort_unstable();
        found.dedup();
    }
}

#[cfg(test)]
mod tests;
