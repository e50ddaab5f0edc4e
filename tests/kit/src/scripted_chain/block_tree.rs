//! Block tree: every block there ever was, which one each slot has, and what happened in each (pure).

use std::collections::{BTreeMap, BTreeSet};

use sluice_geyser::{BlockMeta, TransactionUpdate};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use crate::accounts::{Content, State};

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
    /// The transaction that made it, when one did.
    pub transaction: Option<Signature>,
}

/// A block, among all there ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(usize);

/// One block of one slot. A slot may have had several.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its slot.
    pub slot: u64,
    /// Its hash, which no other block has.
    pub hash: String,
    /// The block it builds on; none below the first one.
    pub parent: Option<BlockId>,
    /// The writes made in it, in order.
    pub writes: Vec<Write>,
    /// The transactions executed in it, in order.
    pub transactions: Vec<TransactionUpdate>,
}

/// A tree of blocks that grows from one with a given state.
pub struct BlockTree {
    blocks: Vec<Block>,
    /// The block that each slot has. Slots whose block was given up have none.
    current: BTreeMap<u64, BlockId>,
    /// The newest block that is final on the chain, whatever was reported.
    confirmed: BlockId,
    finalized: BlockId,
    next_version: u64,
    /// Every account that was ever written.
    written: BTreeSet<Pubkey>,
}

/// The first block.
const GENESIS: BlockId = BlockId(0);

impl BlockTree {
    /// The chain of one block, which is final.
    #[must_use]
    pub fn new(genesis: u64, state: State) -> Self {
        let mut tree = Self {
            blocks: Vec::new(),
            current: BTreeMap::new(),
            confirmed: GENESIS,
            finalized: GENESIS,
            // Far from zero, so that versions of another validator can be smaller.
            next_version: 1_000_000,
            written: BTreeSet::new(),
        };
        tree.put(genesis, None);
        for (key, content) in state {
            tree.write(genesis, key, content);
        }
        tree
    }

    /// The first slot.
    #[must_use]
    pub fn genesis(&self) -> u64 {
        self.block(GENESIS).slot
    }

    /// The highest slot number that a block ever had.
    #[must_use]
    pub fn last(&self) -> u64 {
        let slots = self.blocks.iter().map(|block| block.slot);
        slots.max().unwrap_or_default()
    }

    // What happens on the chain. A slot stands for the block that it has.

    /// Gives a new slot an empty block.
    ///
    /// # Panics
    /// When the slot has a block, or is not younger than its parent, or the parent has none.
    pub fn open(&mut self, slot: u64, parent: u64) -> BlockId {
        assert!(!self.contains(slot), "slot {slot} has a block");
        let parent = self.current(parent).expect("the parent has a block");
        self.open_on(slot, parent)
    }

    /// Gives a slot an empty block: its first one, or another one.
    ///
    /// # Panics
    /// When the slot is not younger than its parent.
    pub fn open_on(&mut self, slot: u64, parent: BlockId) -> BlockId {
        assert!(self.block(parent).slot < slot);
        self.put(slot, Some(parent))
    }

    fn put(&mut self, slot: u64, parent: Option<BlockId>) -> BlockId {
        let id = BlockId(self.blocks.len());
        let first = self.blocks.iter().all(|block| block.slot != slot);
        let hash = if first {
            format!("hash{slot}")
        } else {
            format!("hash{slot}-{}", id.0)
        };
        self.blocks.push(Block {
            slot,
            hash,
            parent,
            writes: Vec::new(),
            transactions: Vec::new(),
        });
        self.current.insert(slot, id);
        id
    }

    /// Makes a write, after all writes made before.
    ///
    /// # Panics
    /// When the slot has no block.
    pub fn write(&mut self, slot: u64, key: Pubkey, content: Content) -> Write {
        let id = self.current(slot).expect("the slot has a block");
        self.write_in(id, key, content, None)
    }

    /// Makes a write in a block, after all writes made before.
    pub fn write_in(
        &mut self,
        id: BlockId,
        key: Pubkey,
        content: Content,
        transaction: Option<Signature>,
    ) -> Write {
        let write = Write {
            version: self.next_version,
            key,
            content,
            transaction,
        };
        self.next_version += 1;
        self.written.insert(key);
        self.blocks[id.0].writes.push(write.clone());
        write
    }

    /// Executes a transaction, after all executed before, and returns it with its place.
    ///
    /// # Panics
    /// When the slot has no block.
    pub fn execute(&mut self, slot: u64, transaction: TransactionUpdate) -> TransactionUpdate {
        let id = self.current(slot).expect("the slot has a block");
        self.execute_in(id, transaction)
    }

    /// Executes a transaction in a block, after all executed before, and returns it with its place.
    pub fn execute_in(&mut self, id: BlockId, transaction: TransactionUpdate) -> TransactionUpdate {
        let slot = self.block(id).slot;
        let executed = &mut self.blocks[id.0].transactions;
        let transaction = TransactionUpdate {
            slot,
            index: executed.len() as u64,
            ..transaction
        };
        executed.push(transaction.clone());
        transaction
    }

    /// The chain decides for a block and all below it.
    pub fn confirm(&mut self, id: BlockId) {
        self.confirmed = id;
    }

    /// The chain decides for good for a block and all below it.
    pub fn finalize(&mut self, id: BlockId) {
        self.finalized = id;
        if self.block(self.confirmed).slot < self.block(id).slot {
            self.confirmed = id;
        }
    }

    /// Gives a block up, and all that build on it, which are returned, the oldest first.
    pub fn kill(&mut self, id: BlockId) -> Vec<BlockId> {
        let slot = self.block(id).slot;
        let above = self.current.range(slot..).map(|(_, each)| *each);
        let victims: Vec<BlockId> = above.filter(|each| self.is_on(*each, id)).collect();
        for victim in &victims {
            self.current.remove(&self.blocks[victim.0].slot);
        }
        victims
    }

    /// Gives a slot the block back that it had.
    pub fn revive(&mut self, id: BlockId) {
        self.current.insert(self.blocks[id.0].slot, id);
    }

    // What is so.

    /// The block that a slot has.
    #[must_use]
    pub fn current(&self, slot: u64) -> Option<BlockId> {
        self.current.get(&slot).copied()
    }

    /// Every block there ever was.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        (0..).map(BlockId).zip(&self.blocks)
    }

    /// A block.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0]
    }

    /// The newest block that the chain has decided for.
    #[must_use]
    pub const fn confirmed(&self) -> BlockId {
        self.confirmed
    }

    /// The newest block that the chain has decided for, for good.
    #[must_use]
    pub const fn finalized(&self) -> BlockId {
        self.finalized
    }

    /// The blocks that are part of the chain for good.
    #[must_use]
    pub fn canonical(&self) -> BTreeSet<BlockId> {
        self.ancestry(self.finalized).collect()
    }

    /// A block and those below it, down to the first.
    pub fn ancestry(&self, id: BlockId) -> impl Iterator<Item = BlockId> {
        std::iter::successors(Some(id), |id| self.block(*id).parent)
    }

    /// Whether a block is this one, or builds on it.
    fn is_on(&self, block: BlockId, floor: BlockId) -> bool {
        let slot = self.block(floor).slot;
        let mut ancestry = self.ancestry(block);
        ancestry.find(|at| self.block(*at).slot <= slot) == Some(floor)
    }

    /// Whether the block and all below it are the blocks of their slots.
    #[must_use]
    pub fn lives(&self, id: BlockId) -> bool {
        self.ancestry(id)
            .all(|each| self.current(self.block(each).slot) == Some(each))
    }

    /// Living blocks that build on the confirmed one, or are it, by slot.
    #[must_use]
    pub fn candidates(&self) -> Vec<BlockId> {
        let on_confirmed = |id: &BlockId| self.is_on(*id, self.confirmed);
        let all = self.current.values().copied();
        all.filter(|id| self.lives(*id) && on_confirmed(id))
            .collect()
    }

    /// The living block of the highest slot.
    ///
    /// # Panics
    /// When the confirmed block was given up.
    #[must_use]
    pub fn best(&self) -> BlockId {
        *self.candidates().last().expect("the confirmed one lives")
    }

    /// Blocks that were given up, could come back, and are the last that their slot had.
    #[must_use]
    pub fn revivable(&self) -> Vec<BlockId> {
        let confirmed = self.block(self.confirmed).slot;
        let last: BTreeMap<u64, BlockId> =
            self.blocks().map(|(id, block)| (block.slot, id)).collect();
        let gone = |id: &BlockId| {
            let block = self.block(*id);
            let stands = block.parent.is_some_and(|parent| self.lives(parent));
            block.slot > confirmed && stands && !self.contains(block.slot)
        };
        last.into_values().filter(gone).collect()
    }

    /// Whether nothing that a slot has builds on the block.
    #[must_use]
    pub fn is_leaf(&self, id: BlockId) -> bool {
        let mut parents = self.current.values().map(|each| self.block(*each).parent);
        !parents.any(|parent| parent == Some(id))
    }

    /// Whether the slot has a block.
    #[must_use]
    pub fn contains(&self, slot: u64) -> bool {
        self.current.contains_key(&slot)
    }

    /// The slot of the parent; `None` for the first one.
    #[must_use]
    pub fn parent(&self, slot: u64) -> Option<u64> {
        let parent = self.block(self.current(slot)?).parent?;
        Some(self.block(parent).slot)
    }

    /// The metadata of a block as it is now.
    #[must_use]
    pub fn block_meta(&self, id: BlockId) -> BlockMeta {
        let block = self.block(id);
        let parent = block.parent.map(|parent| self.block(parent));
        let below = block.slot.saturating_sub(1);
        BlockMeta {
            slot: block.slot,
            parent_slot: parent.map_or(below, |parent| parent.slot),
            blockhash: block.hash.clone(),
            parent_blockhash: parent.map_or(format!("hash{below}"), |parent| parent.hash.clone()),
            block_time: Some(FIRST_TIME.saturating_add_unsigned(block.slot)),
            block_height: Some(block.slot),
            executed_transaction_count: block.transactions.len() as u64,
        }
    }

    /// The writes of a slot, in order.
    #[must_use]
    pub fn writes(&self, slot: u64) -> &[Write] {
        self.current(slot)
            .map_or(&[], |id| self.block(id).writes.as_slice())
    }

    /// Every account as it is in this slot.
    #[must_use]
    pub fn state(&self, slot: u64) -> State {
        let block = self.current(slot);
        block.map_or_else(State::new, |block| self.state_before(block, u64::MAX))
    }

    /// The version that the next write gets.
    #[must_use]
    pub const fn next_version(&self) -> u64 {
        self.next_version
    }

    /// Every account as it is in a block, by the writes before this version.
    #[must_use]
    pub fn state_before(&self, block: BlockId, version: u64) -> State {
        let mut state = State::new();
        for id in self.ancestry(block) {
            // A long chain is not walked to its beginning for accounts that are written all the time.
            if state.len() == self.written.len() {
                break;
            }
            let writes = self.block(id).writes.iter().rev();
            for write in writes.filter(|write| write.version < version) {
                let newest = state.entry(write.key);
                newest.or_insert_with(|| write.content.clone());
            }
        }
        state
    }

    /// One account as it is in this slot.
    #[must_use]
    pub fn get(&self, slot: u64, key: &Pubkey) -> Option<&Content> {
        let ancestry = self.ancestry(self.current(slot)?);
        let mut newest_first = ancestry.flat_map(|id| self.block(id).writes.iter().rev());
        let last = newest_first.find(|write| write.key == *key)?;
        Some(&last.content)
    }
}
