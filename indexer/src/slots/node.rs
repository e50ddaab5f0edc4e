//! One slot, and what is told of it (pure).

use std::sync::Arc;

use sluice_store::Commitment;

use super::{
    content::{Item, SlotContent},
    steps::{Block, Step},
};

/// A slot.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) block: Option<Arc<Block>>,
    /// Its bank is frozen.
    pub(super) frozen: bool,
    pub(super) content: Arc<SlotContent>,
    /// What came after the block was known: it may belong to another block of the same slot.
    pub(super) after_block: SlotContent,
    /// A bank was created once more since the block was known: what comes belongs to another block.
    pub(super) reopened: bool,
    /// The last commitment at which it was told.
    pub(super) told: Option<Commitment>,
    /// Hash of the block that was told at processed before this session.
    pub(super) told_before: Option<String>,
    pub(super) bytes: usize,
}

impl Node {
    /// Content that comes after its slot was told is told by itself, at every commitment that is over.
    pub(super) fn tell_late(&self, item: Item) -> Vec<Step> {
        let (Some(block), Some(told)) = (&self.block, self.told) else {
            return Vec::new();
        };
        let mut late = SlotContent::default();
        late.add(item);
        let late = Arc::new(late);
        Commitment::ALL
            .into_iter()
            .filter(|commitment| *commitment <= told)
            .map(|commitment| Step::Tell {
                commitment,
                block: Arc::clone(block),
                content: Arc::clone(&late),
            })
            .collect()
    }

    /// What happened in the slot, if its block is known.
    pub(super) fn tell(&mut self, commitment: Commitment) -> Option<Step> {
        let block = Arc::clone(self.block.as_ref()?);
        self.told = Some(commitment);
        Some(Step::Tell {
            commitment,
            block,
            content: Arc::clone(&self.content),
        })
    }
}
