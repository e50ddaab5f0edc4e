//! Write tree: the slots of the scripted chain as they are, each with its writes in the order they were made.

use std::collections::BTreeMap;

use sluice_geyser::{BlockMeta, TransactionUpdate};
use solana_pubkey::Pubkey;

use crate::accounts::Content;

/// Time of slot 0, unix seconds. Each slot lasts one second.
const FIRST_TIME: i64 = 1_700_000_000;

/// One write to one account.
#[derive(Clone, Debug)]
pub struct Write {
    /// Orders the writes of one slot; unique on the whole chain.
    pub version: u64,
    /// The account.
    pub key: Pubkey,
    /// What it holds afterwards.
    pub content: Content,
}

/// Every account in some slot.
pub type State = BTreeMap<Pubkey, Content>;

struct Slot {
    parent: Option<u64>,
    writes: Vec<Write>,
    transactions: Vec<TransactionUpdate>,
}

impl Slot {
    fn on(parent: Option<u64>) -> Self {
        Self {
            parent,
            writes: Vec::new(),
            transactions: Vec::new(),
        }
    }
}

/// A tree of slots that grows from one slot with a given state.
pub struct WriteTree {
    slots: BTreeMap<u64, Slot>,
    genesis: u64,
    next_version: u64,
}

impl WriteTree {
    /// The chain of one slot.
    #[must_use]
    pub fn new(genesis: u64, state: State) -> Self {
        let mut chain = Self {
            slots: BTreeMap::new(),
            genesis,
            // Far from zero, so that versions of another validator can be smaller.
            next_version: 1_000_000,
        };
        chain.slots.insert(genesis, Slot::on(None));
        for (key, content) in state {
            chain.write(genesis, key, content);
        }
        chain
    }

    /// The first slot.
    #[must_use]
    pub fn genesis(&self) -> u64 {
        self.genesis
    }

    /// The highest slot number in use.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.slots
            .last_key_value()
            .map_or(self.genesis, |(slot, _)| *slot)
    }

    /// Adds an empty slot.
    ///
    /// # Panics
    /// When the slot exists, or is not younger than its parent, or the parent does not exist.
    pub fn open(&mut self, slot: u64, parent: u64) {
        assert!(parent < slot && self.slots.contains_key(&parent));
        let before = self.slots.insert(slot, Slot::on(Some(parent)));
        assert!(before.is_none());
    }

    /// Whether there is such a slot.
    #[must_use]
    pub fn contains(&self, slot: u64) -> bool {
        self.slots.contains_key(&slot)
    }

    /// The parent of a slot; `None` for the first one.
    #[must_use]
    pub fn parent(&self, slot: u64) -> Option<u64> {
        self.slots.get(&slot)?.parent
    }

    /// Makes a write, after all writes made before.
    ///
    /// # Panics
    /// When the slot does not exist.
    pub fn write(&mut self, slot: u64, key: Pubkey, content: Content) -> Write {
        let write = Write {
            version: self.next_version,
            key,
            content,
        };
        self.next_version += 1;
        let slot = self.slots.get_mut(&slot).expect("the slot was opened");
        slot.writes.push(write.clone());
        write
    }

    /// Executes a transaction, after all executed before, and returns it with its place.
    ///
    /// # Panics
    /// When the slot does not exist.
    pub fn execute(&mut self, slot: u64, transaction: TransactionUpdate) -> TransactionUpdate {
        let opened = self.slots.get_mut(&slot).expect("the slot was opened");
        let index = opened.transactions.len() as u64;
        let executed = TransactionUpdate {
            slot,
            index,
            ..transaction
        };
        opened.transactions.push(executed.clone());
        executed
    }

    /// The transactions of a slot, in order.
    #[must_use]
    pub fn transactions(&self, slot: u64) -> &[TransactionUpdate] {
        self.slots.get(&slot).map_or(&[], |slot| &slot.transactions)
    }

    /// The block of a slot as it is now.
    #[must_use]
    pub fn block_meta(&self, slot: u64) -> BlockMeta {
        let parent_slot = self.parent(slot).unwrap_or(slot.saturating_sub(1));
        BlockMeta {
            slot,
            parent_slot,
            blockhash: format!("hash{slot}"),
            parent_blockhash: format!("hash{parent_slot}"),
            block_time: Some(FIRST_TIME.saturating_add_unsigned(slot)),
            block_height: Some(slot),
            executed_transaction_count: self.transactions(slot).len() as u64,
        }
    }

    /// The writes of a slot, in order.
    #[must_use]
    pub fn writes(&self, slot: u64) -> &[Write] {
        self.slots.get(&slot).map_or(&[], |slot| &slot.writes)
    }

    /// Every account as it is in this slot.
    #[must_use]
    pub fn state(&self, slot: u64) -> State {
        let mut ancestry = vec![slot];
        while let Some(parent) = ancestry.last().and_then(|slot| self.parent(*slot)) {
            ancestry.push(parent);
        }
        let mut state = State::new();
        for slot in ancestry.into_iter().rev() {
            for write in self.writes(slot) {
                state.insert(write.key, write.content.clone());
            }
        }
        state
    }

    /// One account as it is in this slot.
    #[must_use]
    pub fn get(&self, slot: u64, key: &Pubkey) -> Option<&Content> {
        let mut at = Some(slot);
        while let Some(slot) = at {
            let last = self.writes(slot).iter().rfind(|write| write.key == *key);
            if let Some(write) = last {
                return Some(&write.content);
            }
            at = self.parent(slot);
        }
        None
    }
}
