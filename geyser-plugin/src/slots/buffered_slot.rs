//! One slot, from its first message to finality and through the replay window.

use std::{collections::HashMap, sync::Arc};

use yellowstone_grpc_proto::{
    geyser::{SubscribeUpdateBlockMeta, SubscribeUpdateEntry},
    prost_types::Timestamp,
};

use crate::message::{
    AccountUpdate, Address, Block, Commitment, Event, Slot, TransactionUpdate, Update,
};

/// The content and the progress of a slot.
#[derive(Debug, Default)]
pub(super) struct BufferedSlot {
    pub parent: Option<Slot>,
    /// The highest level the validator reported, directly or through a descendant.
    pub wanted: Option<Commitment>,
    /// The highest level that was emitted to subscribers.
    pub emitted: Option<Commitment>,
    /// Whether messages of it were lost; such a slot is never sealed and never replayed.
    pub incomplete: bool,
    /// Whether it no longer waits for its block meta.
    pub released: bool,
    /// Sum of the weights of its content.
    pub bytes: usize,
    accounts: HashMap<Address, Timed<AccountUpdate>>,
    transactions: Vec<Timed<TransactionUpdate>>,
    entries: Vec<Timed<SubscribeUpdateEntry>>,
    /// The entry of the highest index.
    last_entry: Option<Arc<SubscribeUpdateEntry>>,
    meta: Option<Timed<SubscribeUpdateBlockMeta>>,
    /// The blockhash of the block meta, decoded.
    blockhash: Option<Vec<u8>>,
    statuses: Vec<Event>,
}

impl BufferedSlot {
    pub fn new(incomplete: bool) -> Self {
        Self {
            incomplete,
            ..Self::default()
        }
    }

    /// Keeps a message of the slot's content, unless others were lost already.
    pub fn add_content(&mut self, event: &Event) {
        let at = event.created_at;
        match &event.update {
            Update::BlockMeta(meta) => self.set_meta(meta, at),
            _ if self.incomplete => {}
            Update::Account(account) => self.add_account(account, at),
            Update::Transaction(transaction) => self.add_transaction(transaction, at),
            Update::Entry(entry) => self.add_entry(entry, at),
            // Made here and not received.
            Update::Block(_) | Update::Slot(_) => {}
        }
    }

    /// Keeps a write if it is the account's last one so far.
    fn add_account(&mut self, account: &Arc<AccountUpdate>, created_at: Timestamp) {
        let weight = |account: &Arc<AccountUpdate>| Update::Account(Arc::clone(account)).weight();
        let replaced = match self.accounts.get(&account.address) {
            Some((kept, _)) if kept.write_version > account.write_version => return,
            Some((kept, _)) => weight(kept),
            None => 0,
        };
        self.bytes = self.bytes - replaced + weight(account);
        self.accounts
            .insert(account.address, (Arc::clone(account), created_at));
    }

    fn add_transaction(&mut self, transaction: &Arc<TransactionUpdate>, created_at: Timestamp) {
        self.bytes += Update::Transaction(Arc::clone(transaction)).weight();
        self.transactions
            .push((Arc::clone(transaction), created_at));
    }

    fn add_entry(&mut self, entry: &Arc<SubscribeUpdateEntry>, created_at: Timestamp) {
        self.bytes += Update::Entry(Arc::clone(entry)).weight();
        let is_later = |last: &Arc<SubscribeUpdateEntry>| last.index < entry.index;
        if self.last_entry.as_ref().is_none_or(is_later) {
            self.last_entry = Some(Arc::clone(entry));
        }
        self.entries.push((Arc::clone(entry), created_at));
    }

    pub fn add_status(&mut self, status: Event) {
        self.bytes += status.update.weight();
        self.statuses.push(status);
    }

    fn set_meta(&mut self, meta: &Arc<SubscribeUpdateBlockMeta>, created_at: Timestamp) {
        self.parent = Some(meta.parent_slot);
        self.blockhash = bs58::decode(&meta.blockhash).into_vec().ok();
        self.meta = Some((Arc::clone(meta), created_at));
    }

    /// Frees the content, which is known to be incomplete.
    pub fn mark_incomplete(&mut self) {
        self.incomplete = true;
        self.accounts = HashMap::new();
        self.transactions = Vec::new();
        self.entries = Vec::new();
        self.last_entry = None;
        self.bytes = 0;
    }

    pub fn meta(&self) -> Option<&Arc<SubscribeUpdateBlockMeta>> {
        self.meta.as_ref().map(|(meta, _)| meta)
    }

    /// Whether all its content is there. The block meta says how many transactions to expect, and its blockhash is the
    /// hash of the last entry; both come through threads of their own. Account writes always precede the block meta.
    pub fn is_sealed(&self) -> bool {
        !self.incomplete
            && self.meta().is_some_and(|meta| {
                self.transactions.len() as u64 >= meta.executed_transaction_count
                    && self.has_entries()
            })
    }

    /// Whether all entries are there. The block meta's own count does not show it: it is 0 for the blocks that a test
    /// validator produces.
    fn has_entries(&self) -> bool {
        let Some(last) = &self.last_entry else {
            return false;
        };
        self.blockhash.as_ref() == Some(&last.hash) && self.entries.len() as u64 > last.index
    }

    /// Whether its statuses may be emitted.
    pub fn is_ready(&self) -> bool {
        self.is_sealed() || self.released || self.incomplete
    }

    /// Whether its reaching that level was already emitted to subscribers at `commitment`.
    pub fn has_emitted(&self, commitment: Commitment) -> bool {
        self.emitted >= Some(commitment)
    }

    /// Its content so far: last write per account by write version, then transactions and entries by index.
    pub fn content(&self) -> impl Iterator<Item = Event> {
        let event = |update, created_at: &Timestamp| Event {
            update,
            created_at: *created_at,
        };
        let accounts = self.sorted_accounts();
        let transactions = sorted(&self.transactions, |transaction| transaction.info.index);
        let entries = sorted(&self.entries, |entry| entry.index);
        let accounts = accounts
            .into_iter()
            .map(move |(account, at)| event(Update::Account(Arc::clone(account)), at));
        let transactions = transactions
            .into_iter()
            .map(move |(transaction, at)| event(Update::Transaction(Arc::clone(transaction)), at));
        let entries = entries
            .into_iter()
            .map(move |(entry, at)| event(Update::Entry(Arc::clone(entry)), at));
        accounts.chain(transactions).chain(entries)
    }

    fn sorted_accounts(&self) -> Vec<&Timed<AccountUpdate>> {
        let mut accounts: Vec<_> = self.accounts.values().collect();
        accounts.sort_by_key(|(account, _)| account.write_version);
        accounts
    }

    /// Its block and block meta, unless content is missing.
    pub fn seal(&self) -> Option<[Event; 2]> {
        let (meta, created_at) = self.meta.as_ref().filter(|_| self.is_sealed())?;
        let block = Block {
            meta: Arc::clone(meta),
            accounts: cloned(self.sorted_accounts()),
            transactions: cloned(sorted(&self.transactions, |one| one.info.index)),
            entries: cloned(sorted(&self.entries, |entry| entry.index)),
        };
        let updates = [
            Update::Block(Arc::new(block)),
            Update::BlockMeta(Arc::clone(meta)),
        ];
        Some(updates.map(|update| Event {
            update,
            created_at: *created_at,
        }))
    }

    /// Whether a replay at `commitment` contains it: the validator has frozen it, and it has reached that level.
    pub fn is_replayed(&self, commitment: Commitment) -> bool {
        self.is_sealed() && self.has_emitted(commitment)
    }

    /// Its statuses so far, each with the parent, which the validator does not repeat in all of them.
    pub fn statuses(&self) -> impl Iterator<Item = Event> {
        self.statuses.iter().cloned().map(|mut event| {
            if let Update::Slot(status) = &mut event.update {
                status.parent = status.parent.or(self.parent);
            }
            event
        })
    }
}

type Timed<T> = (Arc<T>, Timestamp);

fn sorted<T>(items: &[Timed<T>], index: impl Fn(&T) -> u64) -> Vec<&Timed<T>> {
    let mut items: Vec<_> = items.iter().collect();
    items.sort_by_key(|(item, _)| index(item));
    items
}

fn cloned<T>(items: Vec<&Timed<T>>) -> Vec<Arc<T>> {
    items
        .into_iter()
        .map(|(item, _)| Arc::clone(item))
        .collect()
}
