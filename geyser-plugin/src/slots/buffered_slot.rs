//! One slot, from its first message to finality and through the replay window.

use std::{collections::HashMap, sync::Arc};

use yellowstone_grpc_proto::{geyser::SubscribeUpdateBlockMeta, prost_types::Timestamp};

use crate::message::{AccountUpdate, Address, Commitment, Event, Slot, TransactionUpdate, Update};

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
    accounts: HashMap<Address, (Arc<AccountUpdate>, Timestamp)>,
    transactions: Vec<(Arc<TransactionUpdate>, Timestamp)>,
    meta: Option<(Arc<SubscribeUpdateBlockMeta>, Timestamp)>,
    statuses: Vec<Event>,
}

impl BufferedSlot {
    pub fn new(incomplete: bool) -> Self {
        Self {
            incomplete,
            ..Self::default()
        }
    }

    /// Keeps a write if it is the account's last one so far.
    pub fn add_account(&mut self, account: &Arc<AccountUpdate>, created_at: Timestamp) {
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

    pub fn add_transaction(&mut self, transaction: &Arc<TransactionUpdate>, created_at: Timestamp) {
        self.bytes += Update::Transaction(Arc::clone(transaction)).weight();
        self.transactions
            .push((Arc::clone(transaction), created_at));
    }

    pub fn add_status(&mut self, status: Event) {
        self.bytes += status.update.weight();
        self.statuses.push(status);
    }

    pub fn set_meta(&mut self, meta: &Arc<SubscribeUpdateBlockMeta>, created_at: Timestamp) {
        self.parent = Some(meta.parent_slot);
        self.meta = Some((Arc::clone(meta), created_at));
    }

    /// Frees the content, which is known to be incomplete.
    pub fn mark_incomplete(&mut self) {
        self.incomplete = true;
        self.accounts = HashMap::new();
        self.transactions = Vec::new();
        self.bytes = 0;
    }

    pub fn meta(&self) -> Option<&Arc<SubscribeUpdateBlockMeta>> {
        self.meta.as_ref().map(|(meta, _)| meta)
    }

    /// Whether all its content is there. The block meta says how many transactions to expect, which
    /// come through another thread; account writes always precede the block meta.
    pub fn is_sealed(&self) -> bool {
        self.meta()
            .is_some_and(|meta| self.transactions.len() as u64 >= meta.executed_transaction_count)
    }

    /// Whether its statuses may be emitted.
    pub fn is_ready(&self) -> bool {
        self.is_sealed() || self.released || self.incomplete
    }

    /// Whether its reaching that level was already emitted to subscribers at `commitment`.
    pub fn has_emitted(&self, commitment: Commitment) -> bool {
        self.emitted >= Some(commitment)
    }

    /// Its content so far: last write per account by write version, then transactions by index.
    pub fn content(&self) -> impl Iterator<Item = Event> {
        let mut accounts: Vec<_> = self.accounts.values().collect();
        accounts.sort_by_key(|(account, _)| account.write_version);
        let mut transactions: Vec<_> = self.transactions.iter().collect();
        transactions.sort_by_key(|(transaction, _)| transaction.info.index);
        let accounts = accounts.into_iter().map(|(account, created_at)| Event {
            update: Update::Account(Arc::clone(account)),
            created_at: *created_at,
        });
        let transactions = transactions
            .into_iter()
            .map(|(transaction, created_at)| Event {
                update: Update::Transaction(Arc::clone(transaction)),
                created_at: *created_at,
            });
        accounts.chain(transactions)
    }

    /// Its block meta, unless content is missing.
    pub fn seal(&self) -> Option<Event> {
        let (meta, created_at) = self.meta.as_ref().filter(|_| !self.incomplete)?;
        Some(Event {
            update: Update::BlockMeta(Arc::clone(meta)),
            created_at: *created_at,
        })
    }

    pub fn statuses(&self) -> &[Event] {
        &self.statuses
    }
}
