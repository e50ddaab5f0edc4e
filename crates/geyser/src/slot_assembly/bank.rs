//! Collected bank: the content of one bank of a slot, as one connection delivers it (pure).

use std::collections::{HashMap, HashSet, hash_map::Entry};

use foldhash::fast::RandomState;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use crate::{
    generation::Generation,
    update::{BlockMeta, Body, Update},
};

/// What a connection has delivered of one bank.
#[derive(Debug)]
pub(super) struct CollectedBank {
    /// Its number, where the server sends one. A replay of the bank is collected by itself, under the same number.
    pub(super) id: Option<u64>,
    /// Generation under which the first of it came.
    pub(super) opened_in: Generation,
    /// The filter under which its creation was reported, before any of its content.
    pub(super) witnessed_in: Option<Generation>,
    /// Slot that it builds on.
    pub(super) parent: Option<u64>,
    content: Vec<Update>,
    delivered: Delivered,
    meta: Option<Update>,
    /// Generation under which its metadata came: nothing of its content follows, except in a replay.
    closed_in: Option<Generation>,
    processed: Option<Update>,
    /// Both its block metadata and a commitment have come.
    ended: bool,
    /// Its content was given out, or is known to equal what was.
    spent: bool,
    /// Its content was given out.
    given: bool,
    /// Its content is given ahead, all of it so far.
    pub(super) goes_ahead: bool,
}

/// What became of an account write or a transaction.
pub(super) enum Collected {
    /// It had come before.
    Known,
    /// It is held until its slot is given out.
    Held,
    /// Likewise, and it is given ahead.
    Ahead(Body),
    /// It belongs to what was given out without it.
    TooLate(Update),
}

/// What ends a bank that is given out.
pub(super) struct WholeBank {
    pub(super) meta: Option<Update>,
    pub(super) processed: Option<Update>,
}

impl CollectedBank {
    pub(super) fn new(
        id: Option<u64>,
        generation: Generation,
        witnessed_in: Option<Generation>,
    ) -> Self {
        Self {
            id,
            opened_in: generation,
            witnessed_in,
            parent: None,
            content: Vec::new(),
            delivered: Delivered::default(),
            meta: None,
            closed_in: None,
            processed: None,
            ended: false,
            spent: false,
            given: false,
            goes_ahead: false,
        }
    }

    /// Takes in an account write or a transaction.
    pub(super) fn collect(&mut self, update: Update) -> Collected {
        if !self.delivered.add(&update) {
            return Collected::Known;
        }
        if self.spent {
            return Collected::TooLate(update);
        }
        let ahead = self.goes_ahead.then(|| update.body.clone());
        self.content.push(update);
        ahead.map_or(Collected::Held, Collected::Ahead)
    }

    /// Whether an update came before, or a later write of the same account did.
    pub(super) fn has_delivered(&self, update: &Update) -> bool {
        match &update.body {
            Body::Account(account) => {
                let latest = self.delivered.writes.get(&account.pubkey);
                latest.is_some_and(|latest| *latest >= account.write_version)
            }
            Body::Transaction(transaction) => {
                self.delivered.transactions.contains(&transaction.signature)
            }
            Body::Slot(_) | Body::BlockMeta(_) => false,
        }
    }

    /// Takes in the block metadata. Returns whether the bank has ended with it.
    pub(super) fn set_meta(&mut self, update: Update, generation: Generation) -> bool {
        self.meta = Some(update);
        self.closed_in.get_or_insert(generation);
        self.end()
    }

    /// Takes in the status that says that the writes are over. Returns whether the bank has ended with it.
    pub(super) fn set_processed(&mut self, update: Update) -> bool {
        self.processed = Some(update);
        self.end()
    }

    fn end(&mut self) -> bool {
        let ends = !self.ended && self.meta.is_some() && self.processed.is_some();
        self.ended |= ends;
        ends
    }

    pub(super) const fn closed_in(&self) -> Option<Generation> {
        self.closed_in
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) const fn is_processed(&self) -> bool {
        self.processed.is_some()
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.spent
    }

    /// Whether it was given out as this block, or is known to equal what was.
    pub(super) fn is_copy_of(&self, given: &str) -> bool {
        self.spent && self.blockhash() == Some(given)
    }

    /// Whether it is collected. One of which only the creation came is none perhaps, unless it has a number.
    pub(super) fn is_open(&self) -> bool {
        !self.ended && (self.id.is_some() || !self.is_empty())
    }

    /// Whether nothing but the creation was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.meta.is_none() && self.processed.is_none()
    }

    pub(super) fn meta(&self) -> Option<&BlockMeta> {
        match &self.meta.as_ref()?.body {
            Body::BlockMeta(meta) => Some(meta),
            _ => None,
        }
    }

    pub(super) fn blockhash(&self) -> Option<&str> {
        self.meta().map(|meta| meta.blockhash.as_str())
    }

    /// Whether everything that `other` delivered was delivered here, in the same or a later version.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self.delivered.contains(&other.delivered)
    }

    /// Gives ahead what is collected, and from here on what comes.
    pub(super) fn go_ahead(&mut self) -> impl Iterator<Item = Body> {
        self.goes_ahead = true;
        self.content.iter().map(|update| update.body.clone())
    }

    /// Hands out what ends it; the content was taken out. What was delivered stays known.
    pub(super) fn spend(&mut self) -> WholeBank {
        self.spent = true;
        self.given = true;
        WholeBank {
            // Its hash still distinguishes this bank from another.
            meta: self.meta.clone(),
            processed: self.processed.take(),
        }
    }

    /// Whether its content was given out.
    pub(super) const fn is_given(&self) -> bool {
        self.given
    }

    /// Takes out the content, which is the same as what was given out, but for what came too late for that.
    pub(super) fn take_content(&mut self) -> Vec<Update> {
        self.spent = true;
        std::mem::take(&mut self.content)
    }

    /// Takes out the content but for writes that a later one of the same account follows: a replay leaves those out.
    pub(super) fn take_last_content(&mut self) -> Vec<Update> {
        let mut content = self.take_content();
        content.retain(|update| self.delivered.is_last(update));
        content
    }

    /// Whether the same transaction, or a write by it of the same account, came before, here or at another server.
    pub(super) fn has_same(&self, update: &Update) -> bool {
        self.delivered.has(update)
    }

    /// What is known to have been delivered.
    pub(super) const fn delivered(&self) -> &Delivered {
        &self.delivered
    }

    /// Takes note of what came too late, by itself or in a copy of the block. Returns whether it had not come before.
    pub(super) fn note_late(&mut self, update: &Update) -> bool {
        self.delivered.add(update)
    }
}

/// Which writes and transactions of a bank have come.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// The latest version of each account.
    writes: HashMap<Pubkey, u64, RandomState>,
    /// Each account with the transactions that wrote it: the same at all servers.
    written: HashSet<(Pubkey, Option<Signature>), RandomState>,
    transactions: HashSet<Signature, RandomState>,
}

impl Delivered {
    /// Notes an update. Returns whether it is new. A write that is older than the last one of its account is not: a live
    /// stream keeps their order, and a replay leaves out all but the last.
    pub(super) fn add(&mut self, update: &Update) -> bool {
        let is_unknown = self.learn(update);
        let Body::Account(account) = &update.body else {
            return is_unknown;
        };
        match self.writes.entry(account.pubkey) {
            Entry::Vacant(entry) => {
                entry.insert(account.write_version);
                true
            }
            Entry::Occupied(mut entry) => {
                let is_new = *entry.get() < account.write_version;
                if is_new {
                    entry.insert(account.write_version);
                }
                is_new
            }
        }
    }

    /// Notes an update, of whatever server. Returns whether it came of none before.
    pub(super) fn learn(&mut self, update: &Update) -> bool {
        match &update.body {
            Body::Account(account) => self.written.insert((account.pubkey, account.txn_signature)),
            Body::Transaction(transaction) => self.transactions.insert(transaction.signature),
            Body::Slot(_) | Body::BlockMeta(_) => true,
        }
    }

    /// Whether an update was noted, of whatever server.
    pub(super) fn has(&self, update: &Update) -> bool {
        match &update.body {
            Body::Account(account) => self
                .written
                .contains(&(account.pubkey, account.txn_signature)),
            Body::Transaction(transaction) => self.transactions.contains(&transaction.signature),
            Body::Slot(_) | Body::BlockMeta(_) => true,
        }
    }

    /// Takes over what another connection to the same server has delivered.
    pub(super) fn merge(&mut self, other: &Self) {
        for (pubkey, version) in &other.writes {
            let latest = self.writes.entry(*pubkey).or_insert(*version);
            *latest = (*version).max(*latest);
        }
        self.written.extend(&other.written);
        self.transactions.extend(&other.transactions);
    }

    /// Whether no later write of the same account was noted.
    fn is_last(&self, update: &Update) -> bool {
        match &update.body {
            Body::Account(account) => {
                self.writes.get(&account.pubkey) == Some(&account.write_version)
            }
            Body::Transaction(_) | Body::Slot(_) | Body::BlockMeta(_) => true,
        }
    }

    fn contains(&self, other: &Self) -> bool {
        let has_write = |(pubkey, version): (&Pubkey, &u64)| {
            let own = self.writes.get(pubkey);
            own.is_some_and(|own| own >= version)
        };
        other.writes.iter().all(has_write) && other.transactions.is_subset(&self.transactions)
    }
}
