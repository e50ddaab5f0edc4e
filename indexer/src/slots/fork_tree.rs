//! How slots descend from each other, and what follows from it (pure).
//!
//! One stream at `processed`, with every status, serves all commitments. The content of a slot is told
//! three times, each time to those who asked for it:
//!
//! - at processed, when its bank is frozen and its block known;
//! - at confirmed, when it or a descendant is: the status of a slot may be left out when a descendant's
//!   follows;
//! - at finalized, likewise.
//!
//! What was told at processed is taken back when the slot is declared dead, when its block turns out to be
//! another one, or when the confirmed chain passes it by. Content that arrives after its slot was told is
//! told at once.
//!
//! The chain is followed by parent links. A block in it that was never announced is a hole in the stream,
//! and is reported as such rather than passed over.

use std::{collections::BTreeMap, sync::Arc};

use sluice_geyser::{BlockMeta, SlotStatus, SlotUpdate};
use sluice_store::{Commitment, UnconfirmedSlot};
use thiserror::Error;

use super::{
    content::{Item, SlotContent},
    node::Node,
    steps::{Block, RevertReason, Step},
};

/// Most slots held. A slot takes 400 ms and finality thirty of them; this is seven minutes without it.
const MAX_SLOTS: usize = 1024;

/// Most bytes held, roughly: many slots of everything that happens on mainnet. Beyond it the stream is
/// opened again from the checkpoint rather than the memory of the machine used up.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// How long blocks are remembered after they were told for the last time, in slots: content may be late.
const REMEMBERED: u64 = 64;

/// By how many slots the confirmed chain may be ahead of a block that was not announced before that counts
/// as a hole. Announcements overtake each other by a slot or two.
const HOLE_PATIENCE: u64 = 16;

/// Why the stream must be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TreeFault {
    /// Too much waits for its fate.
    #[error(
        "{slots} slots with about {bytes} bytes wait for confirmation or finality, more than may be held \
         ({MAX_SLOTS} slots, {MAX_BYTES} bytes)"
    )]
    Full {
        /// How many slots.
        slots: usize,
        /// How many bytes.
        bytes: usize,
    },
    /// A block of the confirmed chain never came, and it is not known what is below it.
    #[error("slots {first} to {last} belong to the chain but were not streamed")]
    Hole {
        /// The slot after the last block that did come.
        first: u64,
        /// The slot of the block.
        last: u64,
    },
}

/// Slots whose fate is not known.
#[derive(Debug)]
pub struct SlotTree {
    nodes: BTreeMap<u64, Node>,
    bytes: usize,
    /// The last slot that this session has nothing to do with; `None` until a session that began in the
    /// middle of the chain has seen its first block.
    base: Option<u64>,
    confirmed: Progress,
    finalized: Progress,
    /// The slot up to which an earlier session has seen the confirmed chain.
    decided: Option<u64>,
    /// Whether anybody waits for finality: otherwise content is dropped once confirmed.
    finality_wanted: bool,
    /// Slots whose absence is known and accepted.
    missing: Option<(u64, u64)>,
}

/// How far a commitment has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The highest slot with this status.
    reached: Option<u64>,
    /// The slot up to which everything is told.
    settled: Option<u64>,
}

/// Where a session begins.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// The first slot of which everything is streamed; `None` for a session that takes what comes.
    pub from_slot: Option<u64>,
    /// Slots told at processed before, whose fate is not known.
    pub open: Vec<UnconfirmedSlot>,
    /// The slot up to which the confirmed chain is known already. Banks that died before may be streamed once
    /// more, so none is told at processed before the chain reaches it.
    pub decided: Option<u64>,
    /// Whether anybody waits for finality.
    pub finality_wanted: bool,
    /// The first and the last of slots of which it is known that the server does not have them.
    pub missing: Option<(u64, u64)>,
}

impl SlotTree {
    /// A tree without slots.
    #[must_use]
    pub fn new(beginning: Beginning) -> Self {
        let base = beginning.from_slot.map(|slot| slot.saturating_sub(1));
        let progress = Progress {
            reached: None,
            settled: base,
        };
        let mut tree = Self {
            nodes: BTreeMap::new(),
            bytes: 0,
            base,
            confirmed: progress,
            finalized: progress,
            decided: beginning.decided,
            finality_wanted: beginning.finality_wanted,
            missing: beginning.missing,
        };
        let undecided = |open: &UnconfirmedSlot| base.is_none_or(|base| open.slot > base);
        for open in beginning.open.into_iter().filter(undecided) {
            let node = tree.nodes.entry(open.slot).or_default();
            node.told_before = Some(open.blockhash.unwrap_or_default());
        }
        tree
    }

    /// The last slot that this session has nothing to do with, once known.
    #[must_use]
    pub const fn base(&self) -> Option<u64> {
        self.base
    }

    /// Takes something that happened.
    ///
    /// # Errors
    /// [`TreeFault::Full`].
    pub fn item(&mut self, slot: u64, item: Item) -> Result<Vec<Step>, TreeFault> {
        if !self.concerns(slot) {
            return Ok(Vec::new());
        }
        let bytes = item.bytes();
        let last = last_commitment(self.finality_wanted);
        let node = self.nodes.entry(slot).or_default();
        let mut steps = Vec::new();
        let is_new = if node.block.is_none() {
            Arc::make_mut(&mut node.content).add(item)
        } else if node.reopened {
            node.after_block.add(item)
        } else if node.told >= Some(last) {
            // Nothing is held any more against which it could be compared.
            return Ok(node.tell_late(item));
        } else {
            // What this block has already, another block of the slot may have, too.
            let of_another = node.after_block.add(item.clone());
            let of_this = Arc::make_mut(&mut node.content).add(item.clone());
            if of_this {
                steps = node.tell_late(item);
            }
            of_another || of_this
        };
        if is_new {
            node.bytes = node.bytes.saturating_add(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            self.check_room()?;
        }
        Ok(steps)
    }

    /// Takes the block of a slot, which follows its content.
    ///
    /// # Errors
    /// [`TreeFault`].
    pub fn block(&mut self, meta: BlockMeta) -> Result<Vec<Step>, TreeFault> {
        if self.base.is_none() {
            self.begin(meta.slot.saturating_sub(1));
        }
        if !self.concerns(meta.slot) {
            return Ok(Vec::new());
        }
        let slot = meta.slot;
        let block = Block {
            slot,
            hash: meta.blockhash,
            parent: meta.parent_slot,
            time: meta.block_time,
            revival: 0,
        };
        let node = self.nodes.entry(slot).or_default();
        let mut steps = Vec::new();
        let other = |known: &str| known != block.hash;
        match (&node.block, &node.told_before) {
            (Some(known), _) if other(&known.hash) => {
                if node.told >= Some(Commitment::Confirmed) {
                    // Two blocks of one slot cannot both be confirmed; the first one stands.
                    return Ok(Vec::new());
                }
                let told = node.told.take().is_some() | node.told_before.take().is_some();
                steps.extend(told.then_some(Step::Revert {
                    slot,
                    reason: RevertReason::Replaced,
                }));
                node.content = Arc::new(std::mem::take(&mut node.after_block));
                node.frozen = false;
            }
            (None, Some(before)) if other(before) => {
                node.told_before = None;
                steps.push(Step::Revert {
                    slot,
                    reason: RevertReason::Replaced,
                });
            }
            _ => {}
        }
        node.reopened = false;
        if node.block.as_ref().is_none_or(|known| other(&known.hash)) {
            node.block = Some(Arc::new(block));
        }
        steps.extend(self.advance(slot)?);
        self.check_room()?;
        Ok(steps)
    }

    /// Takes a change of a slot's status.
    ///
    /// # Errors
    /// [`TreeFault`].
    pub fn status(&mut self, update: &SlotUpdate) -> Result<Vec<Step>, TreeFault> {
        let slot = update.slot;
        match update.status {
            SlotStatus::Dead => return Ok(self.dead(slot)),
            SlotStatus::Processed => {}
            SlotStatus::Confirmed => self.confirmed.reach(slot),
            SlotStatus::Finalized => {
                self.confirmed.reach(slot);
                self.finalized.reach(slot);
            }
            SlotStatus::CreatedBank => {
                self.reopen(slot);
                return Ok(Vec::new());
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => return Ok(Vec::new()),
        }
        if self.concerns(slot) && self.base.is_some() {
            self.nodes.entry(slot).or_default().frozen = true;
        }
        let steps = self.advance(slot)?;
        self.check_room()?;
        Ok(steps)
    }

    fn reopen(&mut self, slot: u64) {
        if let Some(node) = self.nodes.get_mut(&slot)
            && node.block.is_some()
        {
            node.reopened = true;
            node.after_block = SlotContent::default();
        }
    }

    /// Fixes where a session that takes what comes has begun. What came before is not complete, and what
    /// was open then stays undecided.
    fn begin(&mut self, base: u64) {
        self.base = Some(base);
        self.nodes = self.nodes.split_off(&base.saturating_add(1));
        self.bytes = self.nodes.values().map(|node| node.bytes).sum();
        for progress in [&mut self.confirmed, &mut self.finalized] {
            progress.settled = Some(base);
        }
    }

    fn concerns(&self, slot: u64) -> bool {
        // Behind the confirmed chain, only blocks of the chain are still there.
        self.base.is_none_or(|base| slot > base)
            && (self.confirmed.settled.is_none_or(|settled| slot > settled)
                || self.nodes.contains_key(&slot))
    }

    fn dead(&mut self, slot: u64) -> Vec<Step> {
        let contradicted = self
            .nodes
            .get(&slot)
            .is_some_and(|node| node.told >= Some(Commitment::Confirmed));
        if contradicted || !self.concerns(slot) {
            return Vec::new();
        }
        let taken_back = self.drop_node(slot, RevertReason::Dead);
        taken_back.into_iter().collect()
    }

    /// Forgets a slot; what was told of it is taken back.
    fn drop_node(&mut self, slot: u64, reason: RevertReason) -> Option<Step> {
        let node = self.nodes.remove(&slot)?;
        self.bytes = self.bytes.saturating_sub(node.bytes);
        (node.told.is_some() || node.told_before.is_some()).then_some(Step::Revert { slot, reason })
    }

    /// Everything that follows from what is new about `slot`.
    fn advance(&mut self, slot: u64) -> Result<Vec<Step>, TreeFault> {
        let mut steps = Vec::new();
        if Some(slot) > self.decided
            && let Some(node) = self.nodes.get_mut(&slot)
            && node.frozen
            && node.told.is_none()
        {
            steps.extend(node.tell(Commitment::Processed));
        }
        self.settle(Commitment::Confirmed, &mut steps)?;
        self.settle(Commitment::Finalized, &mut steps)?;
        Ok(steps)
    }

    /// Follows the chain from the highest slot of a commitment down to what is settled, as far as its
    /// blocks are known.
    fn settle(&mut self, commitment: Commitment, steps: &mut Vec<Step>) -> Result<(), TreeFault> {
        let progress = self.progress(commitment);
        let (Some(target), Some(settled)) = (progress.reached, progress.settled) else {
            return Ok(());
        };
        if settled >= target {
            return Ok(());
        }
        if commitment == Commitment::Finalized && !self.finality_wanted {
            // Nobody to tell, and the blocks may be forgotten.
            if self.confirmed.settled < Some(target) {
                return Ok(());
            }
        } else {
            let Some(chain) = self.chain(target, settled)? else {
                return Ok(());
            };
            self.follow(&chain, commitment, target, steps);
        }
        self.progress_mut(commitment).settled = Some(target);
        steps.push(Step::Settled {
            commitment,
            slot: target,
        });
        self.forget(commitment, target);
        Ok(())
    }

    /// The slots of the chain above `settled`, the lowest first; `None` while a block of it is awaited.
    fn chain(&self, target: u64, settled: u64) -> Result<Option<Vec<u64>>, TreeFault> {
        let mut chain = Vec::new();
        let mut slot = target;
        while slot > settled {
            let block = self.nodes.get(&slot).and_then(|node| node.block.as_ref());
            let accepted = self
                .missing
                .is_some_and(|(first, last)| (first..=last).contains(&slot));
            let below = match block {
                Some(block) => block.parent,
                None if accepted => self.block_below(slot),
                None if target.saturating_sub(slot) < HOLE_PATIENCE => return Ok(None),
                None => {
                    return Err(TreeFault::Hole {
                        first: self.block_below(slot).max(settled).saturating_add(1),
                        last: slot,
                    });
                }
            };
            chain.push(slot);
            // A parent that is not below its child would be a lie, and an endless walk.
            slot = below.min(slot.saturating_sub(1));
        }
        chain.reverse();
        Ok(Some(chain))
    }

    /// The nearest block below a slot whose own block is missing: the best guess at its parent.
    fn block_below(&self, slot: u64) -> u64 {
        self.nodes
            .range(..slot)
            .rev()
            .find(|(_, node)| node.block.is_some())
            .map(|(slot, _)| *slot)
            .or(self.base)
            .unwrap_or(0)
    }

    /// Tells the slots of the chain, and takes back those beside it.
    fn follow(
        &mut self,
        chain: &[u64],
        commitment: Commitment,
        target: u64,
        steps: &mut Vec<Step>,
    ) {
        let beside: Vec<u64> = self
            .nodes
            .range(..=target)
            .filter(|(slot, node)| {
                node.told < Some(Commitment::Confirmed) && chain.binary_search(slot).is_err()
            })
            .map(|(slot, _)| *slot)
            .collect();
        for slot in beside {
            steps.extend(self.drop_node(slot, RevertReason::Abandoned));
        }
        for slot in chain {
            let Some(node) = self.nodes.get_mut(slot) else {
                continue;
            };
            if node.told.is_none() {
                steps.extend(node.tell(Commitment::Processed));
            }
            if node.told < Some(commitment) {
                steps.extend(node.tell(commitment));
            }
            if node.told >= Some(last_commitment(self.finality_wanted)) {
                self.bytes = self.bytes.saturating_sub(std::mem::take(&mut node.bytes));
                node.content = Arc::default();
                node.after_block = SlotContent::default();
            }
        }
    }

    /// Forgets blocks that were told for the last time long ago.
    fn forget(&mut self, commitment: Commitment, settled: u64) {
        if commitment != last_commitment(self.finality_wanted) {
            return;
        }
        let oldest = settled.saturating_sub(REMEMBERED);
        self.nodes = self.nodes.split_off(&oldest);
    }

    const fn progress(&self, commitment: Commitment) -> Progress {
        match commitment {
            Commitment::Finalized => self.finalized,
            _ => self.confirmed,
        }
    }

    const fn progress_mut(&mut self, commitment: Commitment) -> &mut Progress {
        match commitment {
            Commitment::Finalized => &mut self.finalized,
            _ => &mut self.confirmed,
        }
    }

    fn check_room(&self) -> Result<(), TreeFault> {
        if self.nodes.len() > MAX_SLOTS || self.bytes > MAX_BYTES {
            return Err(TreeFault::Full {
                slots: self.nodes.len(),
                bytes: self.bytes,
            });
        }
        Ok(())
    }
}

impl Progress {
    fn reach(&mut self, slot: u64) {
        self.reached = self.reached.max(Some(slot));
    }
}

/// The commitment after which content is not needed any more.
const fn last_commitment(finality_wanted: bool) -> Commitment {
    if finality_wanted {
        Commitment::Finalized
    } else {
        Commitment::Confirmed
    }
}

#[cfg(test)]
mod tests;
