//! Subscription index: finds the active webhooks that an event matches (pure).
//!
//! The index is built once per revision of the webhooks. Matching an event costs one hash look-up per
//! address that the event touches, however many webhooks there are.
//!
//! A watched address takes [`BYTES_PER_ADDRESS`] in the index, up to 2.3 times that when the table has just grown,
//! and nothing more as long as one webhook watches it: a million accounts fit in a hundred megabytes.

mod address_index;

use std::collections::{HashMap, HashSet};

use sluice_geyser::TransactionUpdate;
use sluice_store::{ActiveWebhooks, Commitment, EventKinds, Revision, WebhookId};
use solana_pubkey::Pubkey;

pub use self::address_index::{AccountWatchers, BYTES_PER_ADDRESS, SubscriptionIndex};
use self::address_index::{
    CHANGES_BY_OWNER, CHANGES_OF_ACCOUNT, Criteria, EVENTS_OF_PROGRAM, TRANSACTIONS_INVOKING,
    TRANSACTIONS_MENTIONING, TRANSACTIONS_OF_TOKEN_OWNER,
};
use super::subscriber::Subscriber;

/// Index of a webhook for [`Subscriptions::webhook`]: the order of creation.
pub type SubscriberIndex = u32;

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

    /// The same webhooks, with those of their addresses alone that what is streamed for `before` does not do for: new ones, and old
    /// ones in events in which they did not match. All of a webhook that was not there, or that other events of its old addresses
    /// may match now.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> Self {
        let known: HashMap<_, _> = (0..)
            .zip(&before.webhooks)
            .map(|(index, webhook)| (&webhook.id, (index, webhook)))
            .collect();
        let former = |webhook: &Subscriber| {
            let (index, former) = known.get(&webhook.id)?;
            webhook.judges_like(former).then_some(*index)
        };
        let formers: Vec<Option<SubscriberIndex>> = self.webhooks.iter().map(former).collect();
        let indexes = Commitment::ALL.map(|each| self.at(each).beyond(before.at(each), &formers));
        Self {
            revision: self.revision,
            webhooks: self.webhooks.clone(),
            indexes,
            without_takings: self.without_takings.clone(),
        }
    }

    /// Whether no address is watched at any commitment.
    #[must_use]
    pub fn watches_nothing(&self) -> bool {
        self.indexes.iter().all(SubscriptionIndex::is_empty)
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

#[cfg(test)]
mod tests;
