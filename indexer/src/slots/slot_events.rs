//! Events of one slot, as far as any webhook watches them: account writes and transactions (pure).

use std::collections::{BTreeMap, HashMap, btree_map::Entry};

use foldhash::fast::RandomState;
use indexmap::{IndexMap, map};
use sluice_geyser::{AccountUpdate, TokenBalance, TransactionUpdate};
use solana_pubkey::Pubkey;

/// Fixed cost of an update that is held, bytes: its fields, and its place in the maps.
const UPDATE_BYTES: usize = 256;

/// An event of a slot.
#[derive(Clone, Debug)]
pub enum SlotEvent {
    /// An account was written.
    Account(AccountUpdate),
    /// A transaction was executed.
    Transaction(Box<TransactionUpdate>),
    /// A transaction was executed that no webhook is sent: only what it may have taken from a program counts.
    Unread(Box<TransactionUpdate>),
}

/// An event of a slot, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum SlotEventRef<'a> {
    /// An account was written.
    Account(&'a AccountUpdate),
    /// A transaction was executed.
    Transaction(&'a TransactionUpdate),
    /// Likewise, one that no webhook is sent.
    Unread(&'a TransactionUpdate),
}

impl SlotEvent {
    /// A transaction that no webhook is sent, without what only its message would say: of a busy program there are thousands in
    /// a slot. `None` for one that has taken nothing, because it failed.
    #[must_use]
    pub fn unread(mut transaction: Box<TransactionUpdate>) -> Option<Self> {
        if transaction.error.is_some() || transaction.is_vote {
            return None;
        }
        transaction.inner_instructions = Vec::new();
        transaction.log_messages = Vec::new();
        transaction.pre_balances = Vec::new();
        transaction.pre_token_balances = Vec::new();
        transaction.post_token_balances = Vec::new();
        for instruction in &mut transaction.instructions {
            instruction.accounts = Vec::new();
            instruction.data = Vec::new();
        }
        Some(Self::Unread(transaction))
    }

    /// Memory it takes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = match self {
            Self::Account(account) => account.data.len(),
            Self::Transaction(transaction) | Self::Unread(transaction) => {
                let logs: usize = transaction.log_messages.iter().map(String::len).sum();
                let inner = transaction
                    .inner_instructions
                    .iter()
                    .flat_map(|(_, inner)| inner);
                let inner: usize = inner.map(|instruction| instruction.data.len()).sum();
                let outer = transaction.instructions.iter();
                let outer: usize = outer.map(|instruction| instruction.data.len()).sum();
                let (before, after) = (
                    &transaction.pre_token_balances,
                    &transaction.post_token_balances,
                );
                let tokens = before.len().saturating_add(after.len());
                let tokens = tokens.saturating_mul(size_of::<TokenBalance>());
                let keys = transaction
                    .account_keys
                    .len()
                    .saturating_mul(size_of::<Pubkey>());
                logs.saturating_add(inner)
                    .saturating_add(outer)
                    .saturating_add(tokens)
                    .saturating_add(keys)
            }
        };
        bytes.saturating_add(UPDATE_BYTES)
    }
}

impl From<SlotEventRef<'_>> for SlotEvent {
    fn from(event: SlotEventRef<'_>) -> Self {
        match event {
            SlotEventRef::Account(account) => Self::Account(account.clone()),
            SlotEventRef::Transaction(transaction) => {
                Self::Transaction(Box::new(transaction.clone()))
            }
            SlotEventRef::Unread(transaction) => Self::Unread(Box::new(transaction.clone())),
        }
    }
}

/// The events of one slot: the last write of each account, and the transactions.
#[derive(Clone, Debug, Default)]
pub struct SlotEvents {
    /// In the order in which the accounts came, mostly that of their last writes, which is cheap to sort. Nobody can choose addresses
    /// that exist on the chain so that they hash alike.
    accounts: IndexMap<Pubkey, AccountUpdate, RandomState>,
    /// Owners that an account had in this slot beside that of its last write, in the order in which they became known.
    former_owners: HashMap<Pubkey, Vec<Pubkey>>,
    transactions: BTreeMap<u64, Box<TransactionUpdate>>,
    /// Those that no webhook is sent.
    unread: BTreeMap<u64, Box<TransactionUpdate>>,
    /// Whether they came late, by themselves: the rest of the slot is not among them.
    is_late: bool,
}

impl SlotEvents {
    /// An event that came after those of its slot were emitted.
    #[must_use]
    pub fn late(event: SlotEvent) -> Self {
        let mut late = Self {
            is_late: true,
            ..Self::default()
        };
        late.add(event);
        late
    }

    /// Whether they came late, by themselves.
    #[must_use]
    pub const fn are_late(&self) -> bool {
        self.is_late
    }

    /// Holds an event; false when it was known already, or a later write of the account is, or another
    /// transaction in its place.
    pub fn add(&mut self, event: SlotEvent) -> bool {
        match event {
            SlotEvent::Account(account) => self.add_write(account),
            SlotEvent::Transaction(transaction) => put(&mut self.transactions, transaction),
            SlotEvent::Unread(transaction) => put(&mut self.unread, transaction),
        }
    }

    fn add_write(&mut self, account: AccountUpdate) -> bool {
        let held = match self.accounts.entry(account.pubkey) {
            map::Entry::Vacant(place) => {
                place.insert(account);
                return true;
            }
            map::Entry::Occupied(held) => held.into_mut(),
        };
        let (pubkey, is_later) = (account.pubkey, account.write_version > held.write_version);
        let other = if is_later {
            std::mem::replace(held, account)
        } else {
            account
        };
        if other.owner != held.owner {
            let owners = self.former_owners.entry(pubkey).or_default();
            owners.retain(|owner| *owner != other.owner);
            owners.push(other.owner);
        }
        is_later
    }

    /// Holds an event unless it holds one in its place, whatever that one says: write versions of two connections
    /// cannot be compared. Whether it did.
    pub fn add_unless_held(&mut self, event: SlotEvent) -> bool {
        if let SlotEvent::Account(account) = &event
            && self.accounts.contains_key(&account.pubkey)
        {
            return false;
        }
        self.add(event)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.transactions.is_empty() && self.unread.is_empty()
    }

    /// All of them, transactions first.
    pub fn iter(&self) -> impl Iterator<Item = SlotEventRef<'_>> {
        let accounts = self.accounts().into_iter().map(SlotEventRef::Account);
        self.transactions()
            .map(SlotEventRef::Transaction)
            .chain(accounts)
            .chain(self.unread.values().map(|each| SlotEventRef::Unread(each)))
    }

    /// Accounts, in the order in which they were last written.
    #[must_use]
    pub fn accounts(&self) -> Vec<&AccountUpdate> {
        let mut accounts: Vec<_> = self.accounts.values().collect();
        accounts.sort_unstable_by_key(|account| (account.write_version, account.pubkey));
        accounts
    }

    /// The last write of each account, in no order.
    pub fn writes(&self) -> impl Iterator<Item = &AccountUpdate> {
        self.accounts.values()
    }

    /// The last write of an account.
    #[must_use]
    pub fn write(&self, account: &Pubkey) -> Option<&AccountUpdate> {
        self.accounts.get(account)
    }

    /// Owners that an account had in this slot before its last write, the last of them at the end.
    #[must_use]
    pub fn former_owners(&self, account: &Pubkey) -> &[Pubkey] {
        self.former_owners.get(account).map_or(&[], Vec::as_slice)
    }

    /// All transactions, the last one first; one that is known in both ways is there twice.
    pub fn backwards(&self) -> impl Iterator<Item = &TransactionUpdate> {
        let mut all: Vec<&TransactionUpdate> = self.transactions().collect();
        all.extend(self.unread.values().map(|each| &**each));
        all.sort_unstable_by_key(|each| std::cmp::Reverse(each.index));
        all.into_iter()
    }

    /// Transactions, in the order of execution.
    pub fn transactions(&self) -> impl Iterator<Item = &TransactionUpdate> {
        self.transactions.values().map(|transaction| &**transaction)
    }
}

/// Puts a transaction in its place, unless there is one.
fn put(
    transactions: &mut BTreeMap<u64, Box<TransactionUpdate>>,
    transaction: Box<TransactionUpdate>,
) -> bool {
    match transactions.entry(transaction.index) {
        Entry::Vacant(place) => {
            place.insert(transaction);
            true
        }
        Entry::Occupied(_) => false,
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Updates as the stream sends them.

    use bytes::Bytes;
    use sluice_geyser::Instruction;
    use solana_signature::Signature;

    use super::*;

    /// Owner of the accounts and program of the transactions below.
    pub(crate) fn program() -> Pubkey {
        Pubkey::new_from_array([100; 32])
    }

    pub(crate) fn account(slot: u64, key: u8, write_version: u64) -> AccountUpdate {
        AccountUpdate {
            slot,
            pubkey: Pubkey::new_from_array([key; 32]),
            owner: program(),
            lamports: 1,
            executable: false,
            rent_epoch: 0,
            data: Bytes::from_static(&[1, 2, 3]),
            write_version,
            txn_signature: None,
            is_startup: false,
        }
    }

    pub(crate) fn transaction(slot: u64, index: u8) -> TransactionUpdate {
        TransactionUpdate {
            slot,
            index: u64::from(index),
            signature: Signature::from([index; 64]),
            is_vote: false,
            error: None,
            account_keys: vec![program()],
            writable: Vec::new(),
            instructions: vec![Instruction {
                program_index: 0,
                accounts: Vec::new(),
                data: Vec::new(),
            }],
            inner_instructions: Vec::new(),
            log_messages: Vec::new(),
            logs_missing: false,
            fee: 5000,
            compute_units: Some(100),
            pre_balances: Vec::new(),
            post_balances: Vec::new(),
            pre_token_balances: Vec::new(),
            post_token_balances: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        fixtures::{account, transaction},
        *,
    };

    #[test]
    fn the_last_write_of_an_account_wins_whatever_the_order_of_arrival() {
        let mut events = SlotEvents::default();
        let news: Vec<_> = [2, 3, 1, 3]
            .into_iter()
            .map(|version| events.add(SlotEvent::Account(account(7, 1, version))))
            .collect();
        assert_eq!(news, [true, true, false, false]);
        let versions: Vec<_> = events
            .accounts()
            .iter()
            .map(|account| account.write_version)
            .collect();
        assert_eq!(versions, [3]);
    }

    #[test]
    fn transactions_are_in_the_order_of_execution_each_once() {
        let mut events = SlotEvents::default();
        assert!(events.is_empty());
        let news: Vec<_> = [4, 2, 4]
            .into_iter()
            .map(|index| events.add(SlotEvent::Transaction(Box::new(transaction(7, index)))))
            .collect();
        assert_eq!(news, [true, true, false]);
        let order: Vec<_> = events.transactions().map(|each| each.index).collect();
        assert_eq!(order, [2, 4]);
    }
}
