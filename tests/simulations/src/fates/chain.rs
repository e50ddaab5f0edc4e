//! Chain of blocks as it really is: every block there ever was, and which of them stand (pure).

use std::collections::{BTreeMap, BTreeSet};

/// Tells one event from every other of the script: an account's lamports after a write, or a transaction's fee.
pub type Mark = u64;

/// A place in the list of all blocks.
pub type BlockIndex = usize;

/// A write to an account.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub account: u8,
    /// Its place among all writes.
    pub version: u64,
    pub mark: Mark,
}

/// One block of one slot. A slot may have had several.
#[derive(Clone, Debug)]
pub struct Block {
    pub slot: u64,
    pub hash: String,
    /// None below the first one.
    pub parent: Option<BlockIndex>,
    pub writes: Vec<Write>,
    pub transactions: Vec<Mark>,
    /// Whether it was said that its bank is frozen.
    pub processed: bool,
}

impl Block {
    /// What is emitted of the block in any case: its transactions, and each account as it was last written.
    fn news(&self) -> BTreeSet<Mark> {
        let last: BTreeMap<u8, Mark> = self
            .writes
            .iter()
            .map(|write| (write.account, write.mark))
            .collect();
        last.into_values()
            .chain(self.transactions.iter().copied())
            .collect()
    }

    fn marks(&self) -> impl Iterator<Item = Mark> {
        let writes = self.writes.iter().map(|write| write.mark);
        writes.chain(self.transactions.iter().copied())
    }
}

/// Every block, and which one each slot has at the moment.
pub struct Chain {
    pub blocks: Vec<Block>,
    current: BTreeMap<u64, BlockIndex>,
    pub confirmed: BlockIndex,
    pub finalized: BlockIndex,
}

impl Chain {
    /// The chain of one block, which is final.
    pub fn new(slot: u64) -> Self {
        let first = Block {
            slot,
            hash: format!("hash{slot}"),
            parent: None,
            writes: Vec::new(),
            transactions: Vec::new(),
            processed: true,
        };
        Self {
            blocks: vec![first],
            current: BTreeMap::from([(slot, 0)]),
            confirmed: 0,
            finalized: 0,
        }
    }

    /// Gives a slot a block: its first one, or another one.
    pub fn put(&mut self, block: Block) -> BlockIndex {
        let index = self.blocks.len();
        self.current.insert(block.slot, index);
        self.blocks.push(block);
        index
    }

    /// Gives a slot the block back that it had.
    pub fn put_back(&mut self, index: BlockIndex) {
        self.current.insert(self.blocks[index].slot, index);
    }

    /// The block of the highest slot.
    pub fn highest_slot(&self) -> u64 {
        let slots = self.blocks.iter().map(|block| block.slot);
        slots.max().expect("there is a first block")
    }

    /// A block and those below it, down to the first.
    pub fn ancestry(&self, index: BlockIndex) -> impl Iterator<Item = BlockIndex> {
        std::iter::successors(Some(index), |index| self.blocks[*index].parent)
    }

    /// Whether the block and all below it are the blocks of their slots.
    pub fn lives(&self, index: BlockIndex) -> bool {
        self.ancestry(index)
            .all(|each| self.current.get(&self.blocks[each].slot) == Some(&each))
    }

    /// Living blocks that stand on the confirmed one, or are it.
    pub fn open(&self) -> Vec<BlockIndex> {
        let on_confirmed =
            |index: &&BlockIndex| self.ancestry(**index).any(|at| at == self.confirmed);
        let all = self.current.values().filter(|index| self.lives(**index));
        all.filter(on_confirmed).copied().collect()
    }

    /// The living block of the highest slot.
    pub fn best(&self) -> BlockIndex {
        *self.open().last().expect("the confirmed one lives")
    }

    /// Takes the block away, and with it all that stand on it, which are returned.
    pub fn kill(&mut self, index: BlockIndex) -> Vec<BlockIndex> {
        let all: Vec<BlockIndex> = self.current.values().copied().collect();
        let victims: Vec<BlockIndex> = all
            .into_iter()
            .filter(|each| self.ancestry(*each).any(|at| at == index))
            .collect();
        for victim in &victims {
            self.current.remove(&self.blocks[*victim].slot);
        }
        victims
    }

    /// Blocks that were taken away, could come back, and are the last that their slot had.
    pub fn revivable(&self) -> Vec<BlockIndex> {
        let confirmed = self.blocks[self.confirmed].slot;
        let mut last: BTreeMap<u64, BlockIndex> = BTreeMap::new();
        for (index, block) in self.blocks.iter().enumerate() {
            last.insert(block.slot, index);
        }
        let gone = |index: &BlockIndex| {
            let block = &self.blocks[*index];
            let stands = block.parent.is_some_and(|parent| self.lives(parent));
            block.slot > confirmed && stands && !self.current.contains_key(&block.slot)
        };
        last.into_values().filter(gone).collect()
    }

    /// Whether anything stands on the block.
    pub fn is_leaf(&self, index: BlockIndex) -> bool {
        let mut parents = self.current.values().map(|each| self.blocks[*each].parent);
        !parents.any(|parent| parent == Some(index))
    }

    /// What became of everything that ever happened, once the chain is final.
    pub fn outcome(&self) -> Outcome {
        let final_ones: BTreeSet<BlockIndex> = self.ancestry(self.finalized).collect();
        let mut outcome = Outcome::default();
        for (index, block) in self.blocks.iter().enumerate() {
            let stands = final_ones.contains(&index);
            outcome
                .events
                .extend(block.marks().map(|mark| (mark, (block.slot, stands))));
            if stands {
                let news = block.news();
                outcome
                    .news
                    .extend(news.into_iter().map(|mark| (mark, block.slot)));
            }
        }
        outcome
    }
}

/// What became of everything that ever happened.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of each event its slot, and whether it happened in the end.
    pub events: BTreeMap<Mark, (u64, bool)>,
    /// What every webhook must have been sent, and the slot.
    pub news: BTreeMap<Mark, u64>,
}
