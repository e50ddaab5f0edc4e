//! Which webhooks does an event concern (pure).
//!
//! The index is built once per revision of the webhooks. Looking an event up costs one hash look-up per
//! key that the event touches, however many webhooks there are.
//!
//! A watched key takes [`BYTES_PER_KEY`] in the index, up to 2.3 times that when the table has just grown,
//! and nothing more as long as one webhook watches it: a million accounts fit in a hundred megabytes.

use std::{collections::HashMap, time::Duration};

use sluice_store::{ActiveWebhook, ActiveWebhooks, Commitment, EventKinds, Revision, WebhookId};
use solana_pubkey::Pubkey;

/// Position of a webhook in [`Subscriptions::webhook`]: the order of creation.
pub type Position = u32;

/// What a key means to a webhook, as bits.
type Roles = u8;

const CHANGES_OF_ACCOUNT: Roles = 1;
const CHANGES_BY_OWNER: Roles = 1 << 1;
const TRANSACTIONS_MENTIONING: Roles = 1 << 2;
const TRANSACTIONS_INVOKING: Roles = 1 << 3;
const EVENTS_OF_PROGRAM: Roles = 1 << 4;

/// Who wants to hear of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interest {
    /// This webhook alone.
    One(Position, Roles),
    /// Those of the list at this index.
    Many(u32),
}

/// Size of an entry of the index.
pub const BYTES_PER_KEY: usize = size_of::<(Pubkey, Interest)>() + 1;

/// An active webhook as far as messages for it are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// Identifier.
    pub id: WebhookId,
    /// How settled an event must be.
    pub commitment: Commitment,
    /// How often a sign of life is wanted.
    pub heartbeat: Option<Duration>,
    /// Digest of what it watches.
    pub filter_digest: String,
    /// How many accounts it watches.
    pub accounts: usize,
    /// How many programs it watches.
    pub programs: usize,
    events: EventKinds,
}

impl From<&ActiveWebhook> for Subscriber {
    fn from(webhook: &ActiveWebhook) -> Self {
        Self {
            id: webhook.id.clone(),
            commitment: webhook.commitment,
            heartbeat: webhook.heartbeat,
            filter_digest: webhook.filter_digest.clone(),
            accounts: webhook.filters.accounts.len(),
            programs: webhook.filters.programs.len(),
            events: webhook.events,
        }
    }
}

/// The webhooks of one commitment, by what they want to hear of.
#[derive(Debug, Default)]
pub struct Index {
    keys: HashMap<Pubkey, Interest>,
    shared: Vec<Vec<(Position, Roles)>>,
    /// Every role that any key has.
    roles: Roles,
    /// Keys to come while it is built, at most.
    expected: usize,
}

/// Every active webhook.
#[derive(Debug, Default)]
pub struct Subscriptions {
    revision: Revision,
    webhooks: Vec<Subscriber>,
    /// In the order of [`Commitment::ALL`].
    indexes: [Index; 3],
}

impl Subscriptions {
    /// Builds the index.
    #[must_use]
    pub fn new(live: &ActiveWebhooks) -> Self {
        let mut subscriptions = Self {
            revision: live.revision,
            webhooks: live.webhooks.iter().map(Subscriber::from).collect(),
            ..Self::default()
        };
        // All at once: tables that are outgrown would leave as much memory behind as the last one holds.
        for webhook in &live.webhooks {
            let index = &mut subscriptions.indexes[place(webhook.commitment)];
            let keys = webhook.filters.accounts.len() + webhook.filters.programs.len();
            index.expected = index.expected.saturating_add(keys);
        }
        for index in &mut subscriptions.indexes {
            index.keys.reserve(index.expected);
        }
        for (position, webhook) in (0..).zip(&live.webhooks) {
            let index = &mut subscriptions.indexes[place(webhook.commitment)];
            let (of_accounts, of_programs) = roles(webhook.events);
            index.add(&webhook.filters.accounts, position, of_accounts);
            index.add(&webhook.filters.programs, position, of_programs);
        }
        for index in &mut subscriptions.indexes {
            index.keys.shrink_to_fit();
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

    /// The webhook at a position that an [`Index`] found.
    #[must_use]
    pub fn webhook(&self, position: Position) -> Option<&Subscriber> {
        self.webhooks.get(usize::try_from(position).ok()?)
    }

    /// The webhooks that want to hear of events at this commitment.
    #[must_use]
    pub fn at(&self, commitment: Commitment) -> &Index {
        &self.indexes[place(commitment)]
    }

    /// Whether some webhook here was not there in `before`, or was something else: what is streamed for
    /// `before` does not do for it.
    #[must_use]
    pub fn grew_since(&self, before: &Self) -> bool {
        let known: HashMap<_, _> = before
            .webhooks
            .iter()
            .map(|webhook| (&webhook.id, webhook))
            .collect();
        self.webhooks.iter().any(|webhook| {
            known.get(&webhook.id).is_none_or(|known| {
                (known.commitment, known.events, &known.filter_digest)
                    != (webhook.commitment, webhook.events, &webhook.filter_digest)
            })
        })
    }

    /// Accounts whose writes must be streamed.
    pub fn watched_accounts(&self) -> impl Iterator<Item = &Pubkey> {
        self.keys(CHANGES_OF_ACCOUNT)
    }

    /// Programs whose accounts' writes must be streamed.
    pub fn watched_owners(&self) -> impl Iterator<Item = &Pubkey> {
        self.keys(CHANGES_BY_OWNER)
    }

    /// Keys of which one must be mentioned by a transaction that is streamed. A program that is invoked
    /// is always mentioned.
    pub fn mentioned_keys(&self) -> impl Iterator<Item = &Pubkey> {
        self.keys(TRANSACTIONS_MENTIONING | TRANSACTIONS_INVOKING | EVENTS_OF_PROGRAM)
    }

    fn keys(&self, roles: Roles) -> impl Iterator<Item = &Pubkey> {
        self.indexes
            .iter()
            .flat_map(move |index| index.keys_with(roles))
    }
}

impl Index {
    /// Whether nobody listens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whom the write of an account concerns: it is named, or its owner is. `found` is emptied first, and
    /// then holds each webhook once, in order of creation.
    pub fn account_change(&self, account: &Pubkey, owner: &Pubkey, found: &mut Vec<Position>) {
        found.clear();
        self.collect(account, CHANGES_OF_ACCOUNT, found);
        self.collect(owner, CHANGES_BY_OWNER, found);
        in_order(found);
    }

    /// Whom a transaction concerns: it mentions a named account, or invokes a named program.
    pub fn transaction(&self, mentioned: &[Pubkey], invoked: &[Pubkey], found: &mut Vec<Position>) {
        found.clear();
        if self.roles & TRANSACTIONS_MENTIONING != 0 {
            for key in mentioned {
                self.collect(key, TRANSACTIONS_MENTIONING, found);
            }
        }
        for key in invoked {
            self.collect(key, TRANSACTIONS_INVOKING, found);
        }
        in_order(found);
    }

    /// Whom an event of a program concerns: the program is named.
    pub fn program_event(&self, program: &Pubkey, found: &mut Vec<Position>) {
        found.clear();
        self.collect(program, EVENTS_OF_PROGRAM, found);
        in_order(found);
    }

    /// Whether any webhook wants events of programs at all; otherwise nobody needs to look for them.
    #[must_use]
    pub const fn wants_program_events(&self) -> bool {
        self.roles & EVENTS_OF_PROGRAM != 0
    }

    fn collect(&self, key: &Pubkey, role: Roles, found: &mut Vec<Position>) {
        if self.roles & role == 0 {
            return;
        }
        match self.keys.get(key) {
            None => {}
            Some(Interest::One(position, roles)) if roles & role != 0 => found.push(*position),
            Some(Interest::One(..)) => {}
            Some(Interest::Many(list)) => {
                let interested = self
                    .list(*list)
                    .iter()
                    .filter(|(_, roles)| roles & role != 0);
                found.extend(interested.map(|(position, _)| *position));
            }
        }
    }

    fn list(&self, list: u32) -> &[(Position, Roles)] {
        usize::try_from(list)
            .ok()
            .and_then(|list| self.shared.get(list))
            .map_or(&[], Vec::as_slice)
    }

    fn keys_with(&self, roles: Roles) -> impl Iterator<Item = &Pubkey> {
        let has = move |interest: &Interest| match interest {
            Interest::One(_, held) => held & roles != 0,
            Interest::Many(list) => self.list(*list).iter().any(|(_, held)| held & roles != 0),
        };
        self.keys
            .iter()
            .filter(move |(_, interest)| has(interest))
            .map(|(key, _)| key)
    }

    fn add(&mut self, keys: &[Pubkey], position: Position, roles: Roles) {
        if roles == 0 {
            return;
        }
        self.roles |= roles;
        for key in keys {
            let shared = &mut self.shared;
            self.keys
                .entry(*key)
                .and_modify(|interest| join(interest, shared, position, roles))
                .or_insert(Interest::One(position, roles));
        }
    }
}

/// Adds a webhook to those interested in a key. A webhook's keys are added one after the other, so it can
/// only be the last of the list already.
fn join(
    interest: &mut Interest,
    shared: &mut Vec<Vec<(Position, Roles)>>,
    position: Position,
    roles: Roles,
) {
    match interest {
        Interest::One(other, held) if *other == position => *held |= roles,
        Interest::One(other, held) => {
            let list = u32::try_from(shared.len()).unwrap_or(u32::MAX);
            shared.push(vec![(*other, *held), (position, roles)]);
            *interest = Interest::Many(list);
        }
        Interest::Many(list) => {
            let list = usize::try_from(*list)
                .ok()
                .and_then(|list| shared.get_mut(list));
            match list.map(|list| (list.last().copied(), list)) {
                Some((Some((last, held)), list)) if last == position => {
                    list.pop();
                    list.push((position, held | roles));
                }
                Some((_, list)) => list.push((position, roles)),
                None => {}
            }
        }
    }
}

/// What accounts and what programs mean to a webhook that wants these kinds of events.
const fn roles(events: EventKinds) -> (Roles, Roles) {
    let (mut of_accounts, mut of_programs) = (0, 0);
    if events.account_change {
        of_accounts |= CHANGES_OF_ACCOUNT;
        of_programs |= CHANGES_BY_OWNER;
    }
    if events.transaction {
        of_accounts |= TRANSACTIONS_MENTIONING;
        of_programs |= TRANSACTIONS_INVOKING;
    }
    if events.program_event {
        of_programs |= EVENTS_OF_PROGRAM;
    }
    (of_accounts, of_programs)
}

const fn place(commitment: Commitment) -> usize {
    match commitment {
        Commitment::Processed => 0,
        Commitment::Confirmed => 1,
        Commitment::Finalized => 2,
    }
}

fn in_order(found: &mut Vec<Position>) {
    if found.len() > 1 {
        found.sort_unstable();
        found.dedup();
    }
}

#[cfg(test)]
mod tests;
