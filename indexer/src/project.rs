//! The content of slots until they are settled (pure).
//!
//! The stream sends a slot's accounts, transactions and block before it says that the slot is
//! confirmed. Only then are they turned into messages, all at once, so that a slot is stored whole.

use std::collections::{BTreeMap, HashMap};

use sluice_geyser::{AccountUpdate, TransactionUpdate};
use solana_pubkey::Pubkey;
use thiserror::Error;

/// Most slots held. Content arrives with its slot's confirmation, so a handful is normal; this many
/// means that confirmations do not arrive, and two minutes of chain are enough to be sure of it.
const MAX_SLOTS: usize = 300;

/// Most bytes held, roughly: several slots of everything that happens on mainnet. Beyond it the stream
/// is opened again from the checkpoint rather than the memory of the machine used up.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// Fixed cost of a buffered update, bytes: its fields, and its place in the maps.
const UPDATE_BYTES: usize = 256;

/// The buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{slots} slots with about {bytes} bytes wait for confirmation, more than may be held \
     ({MAX_SLOTS} slots, {MAX_BYTES} bytes)"
)]
pub struct BufferFull {
    slots: usize,
    bytes: usize,
}

/// What the stream sent of one slot.
#[derive(Debug, Default)]
pub struct SlotContent {
    accounts: HashMap<Pubkey, AccountUpdate>,
    transactions: BTreeMap<u64, TransactionUpdate>,
    block_time: Option<i64>,
    bytes: usize,
}

impl SlotContent {
    /// Accounts, in the order in which they were last written.
    #[must_use]
    pub fn accounts(&self) -> Vec<&AccountUpdate> {
        let mut accounts: Vec<_> = self.accounts.values().collect();
        accounts.sort_unstable_by_key(|account| (account.write_version, account.pubkey));
        accounts
    }

    /// Transactions, in the order of execution.
    pub fn transactions(&self) -> impl Iterator<Item = &TransactionUpdate> {
        self.transactions.values()
    }

    /// Time of the block, unix seconds.
    #[must_use]
    pub const fn block_time(&self) -> Option<i64> {
        self.block_time
    }
}

/// Slots that wait for their confirmation.
#[derive(Debug, Default)]
pub struct SlotBuffer {
    slots: BTreeMap<u64, SlotContent>,
    bytes: usize,
}

impl SlotBuffer {
    /// Keeps the last write of each account of a slot.
    ///
    /// # Errors
    /// [`BufferFull`].
    pub fn account(&mut self, update: AccountUpdate) -> Result<(), BufferFull> {
        let slot = update.slot;
        let bytes = update.data.len().saturating_add(UPDATE_BYTES);
        let accounts = &mut self.slots.entry(slot).or_default().accounts;
        let older = accounts
            .get(&update.pubkey)
            .is_some_and(|held| held.write_version > update.write_version);
        if !older {
            accounts.insert(update.pubkey, update);
        }
        self.grow(slot, bytes)
    }

    /// Keeps a transaction.
    ///
    /// # Errors
    /// [`BufferFull`].
    pub fn transaction(&mut self, update: TransactionUpdate) -> Result<(), BufferFull> {
        let slot = update.slot;
        let logs: usize = update.log_messages.iter().map(String::len).sum();
        let inner = update
            .inner_instructions
            .iter()
            .flat_map(|(_, inner)| inner);
        let data: usize = inner.map(|instruction| instruction.data.len()).sum();
        let bytes = logs.saturating_add(data).saturating_add(UPDATE_BYTES);
        self.slots
            .entry(slot)
            .or_default()
            .transactions
            .insert(update.index, update);
        self.grow(slot, bytes)
    }

    /// Notes the time of a slot's block. A slot of which nothing else was sent needs none.
    pub fn block_meta(&mut self, slot: u64, block_time: Option<i64>) {
        if let Some(content) = self.slots.get_mut(&slot) {
            content.block_time = block_time;
        }
    }

    /// Forgets a slot that the chain abandoned.
    pub fn discard(&mut self, slot: u64) {
        if let Some(content) = self.slots.remove(&slot) {
            self.bytes = self.bytes.saturating_sub(content.bytes);
        }
    }

    /// Takes the content of every slot up to `slot`, in order. Those below it are settled too: only
    /// confirmed content is streamed, and a slot's own confirmation may be left out when a descendant's
    /// follows.
    pub fn take_settled(&mut self, slot: u64) -> Vec<(u64, SlotContent)> {
        let later = match slot.checked_add(1) {
            Some(next) => self.slots.split_off(&next),
            None => BTreeMap::new(),
        };
        let settled = std::mem::replace(&mut self.slots, later);
        self.bytes = self.slots.values().map(|content| content.bytes).sum();
        settled.into_iter().collect()
    }

    fn grow(&mut self, slot: u64, bytes: usize) -> Result<(), BufferFull> {
        if let Some(content) = self.slots.get_mut(&slot) {
            content.bytes = content.bytes.saturating_add(bytes);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.slots.len() > MAX_SLOTS || self.bytes > MAX_BYTES {
            return Err(BufferFull {
                slots: self.slots.len(),
                bytes: self.bytes,
            });
        }
        Ok(())
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fixtures::account, *};

    #[test]
    fn the_last_write_of_an_account_wins_whatever_the_order_of_arrival() {
        let mut buffer = SlotBuffer::default();
        for write_version in [2, 3, 1] {
            buffer.account(account(7, 1, write_version)).expect("room");
        }
        let settled = buffer.take_settled(7);
        let versions: Vec<_> = settled[0]
            .1
            .accounts()
            .iter()
            .map(|account| account.write_version)
            .collect();
        assert_eq!(versions, [3]);
    }

    #[test]
    fn a_confirmation_settles_its_slot_and_those_below() {
        let mut buffer = SlotBuffer::default();
        for slot in [9, 7, 8] {
            buffer.account(account(slot, 1, 1)).expect("room");
        }
        buffer.discard(7);
        let slots: Vec<_> = buffer
            .take_settled(8)
            .into_iter()
            .map(|(slot, _)| slot)
            .collect();
        assert_eq!(slots, [8]);
        assert!(buffer.take_settled(8).is_empty());
        assert_eq!(buffer.take_settled(u64::MAX).len(), 1);
        assert_eq!(buffer.bytes, 0);
    }

    #[test]
    fn the_buffer_is_bounded_in_slots_and_in_bytes() {
        let mut buffer = SlotBuffer::default();
        let slots = u64::try_from(MAX_SLOTS).expect("small");
        for slot in 0..slots {
            buffer.account(account(slot, 1, 1)).expect("room");
        }
        assert!(buffer.account(account(slots, 1, 1)).is_err());

        let mut buffer = SlotBuffer::default();
        let data = bytes::Bytes::from(vec![0; MAX_BYTES - 2 * UPDATE_BYTES]);
        buffer
            .account(AccountUpdate {
                data,
                ..account(7, 1, 1)
            })
            .expect("room");
        buffer
            .account(AccountUpdate {
                data: bytes::Bytes::new(),
                ..account(7, 2, 1)
            })
            .expect("just fits");
        let full = buffer.account(account(7, 3, 1)).expect_err("one too many");
        assert!(full.to_string().contains("wait for confirmation"), "{full}");
        buffer.take_settled(7);
        buffer.account(account(8, 3, 1)).expect("room again");
    }
}
