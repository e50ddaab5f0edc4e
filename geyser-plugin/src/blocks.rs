//! Newest block of each commitment level, and the blockhashes that are still valid.

use std::collections::{HashMap, VecDeque};

use thiserror::Error;

use crate::message::{Commitment, Slot};

/// Blocks for which a blockhash may be used in a transaction, by the runtime's rules.
pub const BLOCKHASH_VALID_BLOCKS: u64 = 150;

/// Blocks remembered: a finalized view lags about 32 blocks behind and still looks 150 blocks back.
const REMEMBERED_BLOCKS: usize = 512;

/// A completed block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRef {
    /// Its slot.
    pub slot: Slot,
    /// Its blockhash in base58.
    pub blockhash: String,
    /// Number of blocks before it.
    pub height: u64,
}

/// The plugin has not seen enough blocks to answer.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("startup: not enough blocks seen at this commitment yet")]
pub struct NotEnoughBlocks;

/// See the module.
#[derive(Debug, Default)]
pub struct Blocks {
    tips: [Option<Slot>; 3],
    newest: [Option<BlockRef>; 3],
    heights: HashMap<String, u64>,
    order: VecDeque<(String, u64)>,
}

impl Blocks {
    /// Records that `slot` reached `commitment`.
    pub fn slot_reached(&mut self, commitment: Commitment, slot: Slot) {
        let tip = &mut self.tips[commitment.index()];
        *tip = (*tip).max(Some(slot));
    }

    /// Records that `block` reached `commitment`.
    pub fn block_reached(&mut self, commitment: Commitment, block: BlockRef) {
        if !self.heights.contains_key(&block.blockhash) {
            self.heights.insert(block.blockhash.clone(), block.height);
            self.order
                .push_back((block.blockhash.clone(), block.height));
            if self.order.len() > REMEMBERED_BLOCKS
                && let Some((oldest, _)) = self.order.pop_front()
            {
                self.heights.remove(&oldest);
            }
        }
        let newest = &mut self.newest[commitment.index()];
        if newest
            .as_ref()
            .is_none_or(|newest| newest.slot < block.slot)
        {
            *newest = Some(block);
        }
    }

    /// The newest slot at `commitment`.
    ///
    /// # Errors
    ///
    /// [`NotEnoughBlocks`] before the first.
    pub fn slot(&self, commitment: Commitment) -> Result<Slot, NotEnoughBlocks> {
        self.tips[commitment.index()].ok_or(NotEnoughBlocks)
    }

    /// The newest block at `commitment`.
    ///
    /// # Errors
    ///
    /// [`NotEnoughBlocks`] before the first.
    pub fn newest(&self, commitment: Commitment) -> Result<&BlockRef, NotEnoughBlocks> {
        self.newest[commitment.index()]
            .as_ref()
            .ok_or(NotEnoughBlocks)
    }

    /// Whether a transaction with `blockhash` would still be accepted by the newest block at
    /// `commitment`, and that block's slot.
    ///
    /// # Errors
    ///
    /// [`NotEnoughBlocks`] when the hash is unknown and might be of a block from before the start.
    pub fn is_valid(
        &self,
        blockhash: &str,
        commitment: Commitment,
    ) -> Result<(Slot, bool), NotEnoughBlocks> {
        let newest = self.newest(commitment)?;
        match self.heights.get(blockhash) {
            Some(&height) => {
                let valid = height <= newest.height
                    && newest.height <= height.saturating_add(BLOCKHASH_VALID_BLOCKS);
                Ok((newest.slot, valid))
            }
            None if self.reaches_back_from(newest.height) => Ok((newest.slot, false)),
            None => Err(NotEnoughBlocks),
        }
    }

    fn reaches_back_from(&self, height: u64) -> bool {
        let oldest_needed = height.saturating_sub(BLOCKHASH_VALID_BLOCKS).max(1);
        self.order
            .front()
            .is_some_and(|(_, oldest)| *oldest <= oldest_needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(height: u64) -> BlockRef {
        BlockRef {
            slot: height * 2,
            blockhash: format!("hash{height}"),
            height,
        }
    }

    fn chain(heights: std::ops::RangeInclusive<u64>) -> Blocks {
        let mut blocks = Blocks::default();
        for height in heights {
            blocks.block_reached(Commitment::Processed, block(height));
        }
        blocks
    }

    #[test]
    fn a_blockhash_is_good_for_150_blocks() {
        let blocks = chain(1..=152);
        let valid = |hash| blocks.is_valid(hash, Commitment::Processed);
        assert_eq!(valid("hash2"), Ok((304, true)));
        assert_eq!(valid("hash1"), Ok((304, false)));
        assert_eq!(valid("nonsense"), Ok((304, false)));
        assert_eq!(
            blocks.is_valid("hash2", Commitment::Confirmed),
            Err(NotEnoughBlocks)
        );
    }

    #[test]
    fn a_hash_above_the_commitment_is_not_valid_there_yet() {
        let mut blocks = chain(1..=10);
        blocks.block_reached(Commitment::Confirmed, block(9));
        assert_eq!(
            blocks.is_valid("hash10", Commitment::Confirmed),
            Ok((18, false))
        );
        assert_eq!(
            blocks.is_valid("hash9", Commitment::Confirmed),
            Ok((18, true))
        );
    }

    #[test]
    fn an_unknown_hash_is_undecided_until_enough_blocks_are_seen() {
        assert_eq!(
            chain(500..=600).is_valid("older", Commitment::Processed),
            Err(NotEnoughBlocks)
        );
        assert_eq!(
            chain(500..=650).is_valid("older", Commitment::Processed),
            Ok((1300, false))
        );
    }

    #[test]
    fn memory_is_bounded_and_tips_never_go_back() {
        let mut blocks = chain(1..=2_000);
        assert_eq!(blocks.heights.len(), REMEMBERED_BLOCKS);
        assert_eq!(blocks.order.len(), REMEMBERED_BLOCKS);
        blocks.slot_reached(Commitment::Confirmed, 7);
        blocks.slot_reached(Commitment::Confirmed, 5);
        assert_eq!(blocks.slot(Commitment::Confirmed), Ok(7));
        assert_eq!(blocks.slot(Commitment::Finalized), Err(NotEnoughBlocks));
    }
}
