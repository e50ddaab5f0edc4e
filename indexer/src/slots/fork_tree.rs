//! Fork tree: how slots descend from each other, and when each is emitted, retracted or checkpointed (pure).
//!
//! One stream at `processed`, with every status, serves all commitments. The events of a slot are emitted
//! three times, each time to the webhooks that ask for the commitment:
//!
//! - at processed, when the slot is sealed and its block known;
//! - at confirmed, when it or a descendant is: the status of a slot may be left out when a descendant's
//!   follows;
//! - at finalized, likewise.
//!
//! What was emitted at processed is retracted when the slot is declared dead, when it has a replacement block,
//! or when the confirmed chain does not contain it. Events that arrive after their slot was emitted are
//! emitted at once.
//!
//! A server may report a slot as confirmed by its number while its own block of it lost. Its word that this block is
//! dead, followed by a replacement block, is the only sign; then what was emitted at confirmed is retracted, too, and
//! that block takes its place. Without that word the block that was confirmed first stands, and once a slot is
//! finalized nothing replaces its block.
//!
//! The chain is followed by parent links. A block in it that was never announced is a gap in the stream,
//! and is reported as such rather than passed over.

mod hand_over;

use std::collections::BTreeMap;

use sluice_chain_types::Commitment;
use sluice_geyser::{BlockMeta, Body, SlotStatus, SlotUpdate, TransactionUpdate, Update};
use thiserror::Error;

use super::{Action, Block, Gap, ResumePoint, RetractReason, SlotEvent, slot_node::SlotNode};

/// Most slots held: counted in slots, because each takes memory however long it lasts. Finality needs some thirty.
const MAX_SLOTS: usize = 1024;

/// Most bytes held, roughly: many slots of everything that happens on mainnet. Beyond it the stream is
/// opened again from the checkpoint rather than the memory of the machine used up.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// How long blocks are remembered after they were emitted for the last time, in slots: events may be late.
const REMEMBERED_SLOTS: u64 = 64;

/// By how many slots, whatever time they take, the confirmed chain may be ahead of a block that was not announced before that counts
/// as a gap. Announcements overtake each other by a slot or two.
const GAP_PATIENCE_SLOTS: u64 = 16;

/// Why the stream must be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ForkTreeError {
    /// Too much is not confirmed or not finalized yet.
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
    /// Blocks of the confirmed chain never came: from the slot after the last block that did, to the one whose parent
    /// is not known.
    #[error("slots {} to {} belong to the chain but were not streamed", .0.first, .0.last)]
    Gap(Gap),
}

/// The slots above the floor, until they are final.
#[derive(Debug)]
pub struct ForkTree {
    nodes: BTreeMap<u64, SlotNode>,
    bytes: usize,
    /// The slot before the first that this session covers; `None` until a session that began in the
    /// middle of the chain has seen its first block.
    floor: Option<u64>,
    confirmed: Progress,
    finalized: Progress,
    /// The confirmed checkpoint of an earlier session.
    checkpoint: Option<u64>,
    /// The commitment after which events are not needed any more.
    last_commitment: Commitment,
    /// Slots that the server is known not to have.
    gap: Option<Gap>,
    /// Whether a round is under way: nothing that was emitted is forgotten, since it is emitted once more at the hand-over.
    holds_emitted: bool,
}

/// How far a commitment has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The highest slot reported with this status.
    highest_reported: Option<u64>,
    /// The slot up to which everything is emitted.
    watermark: Option<u64>,
}

impl ForkTree {
    /// A tree without slots.
    #[must_use]
    pub fn new(resume: &ResumePoint) -> Self {
        let floor = resume.from_slot.map(|slot| slot.saturating_sub(1));
        let progress = Progress {
            highest_reported: None,
            watermark: floor,
        };
        let covered = |slot: u64| floor.is_none_or(|floor| slot > floor);
        let emitted_earlier = |(slot, blockhash): (&u64, &Option<String>)| {
            (*slot, SlotNode::emitted_earlier(blockhash.clone()))
        };
        Self {
            nodes: resume
                .unconfirmed
                .iter()
                .filter(|(slot, _)| covered(**slot))
                .map(emitted_earlier)
                .collect(),
            bytes: 0,
            floor,
            confirmed: progress,
            finalized: progress,
            checkpoint: resume.confirmed_checkpoint,
            last_commitment: if resume.finality_wanted {
                Commitment::Finalized
            } else {
                Commitment::Confirmed
            },
            gap: resume.gap,
            holds_emitted: false,
        }
    }

    /// The slot before the first that this session covers, once known.
    #[must_use]
    pub const fn floor(&self) -> Option<u64> {
        self.floor
    }

    /// Takes an update of the stream.
    ///
    /// # Errors
    /// [`ForkTreeError`].
    pub fn take(&mut self, update: Update) -> Result<Vec<Action>, ForkTreeError> {
        match update.body {
            // What the validator read from its snapshot at start-up did not happen now.
            Body::Account(account) if account.is_startup => Ok(Vec::new()),
            Body::Account(account) => self.event(account.slot, SlotEvent::Account(account)),
            Body::Transaction(transaction) => {
                self.event(transaction.slot, SlotEvent::Transaction(transaction))
            }
            Body::BlockMeta(block) => self.block(block),
            Body::Slot(slot) => self.status(&slot),
        }
    }

    /// Takes a transaction that no webhook is sent.
    ///
    /// # Errors
    /// [`ForkTreeError::Full`].
    pub fn unread(
        &mut self,
        transaction: Box<TransactionUpdate>,
    ) -> Result<Vec<Action>, ForkTreeError> {
        let slot = transaction.slot;
        match SlotEvent::unread(transaction) {
            Some(event) => self.event(slot, event),
            None => Ok(Vec::new()),
        }
    }

    /// Takes an event of a slot.
    ///
    /// # Errors
    /// [`ForkTreeError::Full`].
    pub fn event(&mut self, slot: u64, event: SlotEvent) -> Result<Vec<Action>, ForkTreeError> {
        if !self.covers(slot) {
            return Ok(Vec::new());
        }
        let bytes = event.bytes();
        let last = (!self.holds_emitted).then_some(self.last_commitment);
        let node = self.nodes.entry(slot).or_default();
        let admission = node.admit(event, last);
        if admission.held {
            node.bytes = node.bytes.saturating_add(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            self.check_limits()?;
        }
        Ok(admission.late)
    }

    /// Takes the block of a slot, which follows its events.
    ///
    /// # Errors
    /// [`ForkTreeError`].
    pub fn block(&mut self, meta: BlockMeta) -> Result<Vec<Action>, ForkTreeError> {
        if self.floor.is_none() {
            self.begin_above(meta.slot.saturating_sub(1));
        }
        if !self.covers(meta.slot) {
            return Ok(Vec::new());
        }
        let slot = meta.slot;
        let block = Block {
            slot,
            hash: meta.blockhash,
            parent: meta.parent_slot,
            time: meta.block_time,
        };
        let mut actions = Vec::new();
        for event in self.repeated(slot, &block.hash) {
            actions.extend(self.event(slot, event)?);
        }
        let node = self.nodes.entry(slot).or_default();
        if node.has_other_block(&block.hash) {
            if !node.may_be_replaced() {
                // Two blocks of one slot cannot both be confirmed; the first one stands.
                node.drop_replacement();
                return Ok(actions);
            }
            actions.extend(node.replace_block(slot));
        }
        node.accept_block(block);
        actions.extend(self.advance(slot)?);
        self.check_limits()?;
        Ok(actions)
    }

    /// What came for a replacement block that turns out to be the block that is known: some of it may not have come before.
    fn repeated(&mut self, slot: u64, hash: &str) -> Vec<SlotEvent> {
        let node = self.nodes.get_mut(&slot);
        let node = node.filter(|node| !node.has_other_block(hash));
        node.map(SlotNode::take_repeated).unwrap_or_default()
    }

    /// Takes a change of a slot's status.
    ///
    /// # Errors
    /// [`ForkTreeError`].
    pub fn status(&mut self, update: &SlotUpdate) -> Result<Vec<Action>, ForkTreeError> {
        let slot = update.slot;
        match update.status {
            SlotStatus::Dead => return Ok(self.give_up(slot, RetractReason::Dead)),
            SlotStatus::Processed => {}
            SlotStatus::Confirmed => self.confirmed.report(slot),
            SlotStatus::Finalized => {
                self.confirmed.report(slot);
                self.finalized.report(slot);
            }
            SlotStatus::CreatedBank => {
                if let Some(node) = self.nodes.get_mut(&slot) {
                    node.bank_created();
                }
                return Ok(Vec::new());
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => return Ok(Vec::new()),
        }
        if self.covers(slot) && self.floor.is_some() {
            self.nodes.entry(slot).or_default().sealed = true;
        }
        let actions = self.advance(slot)?;
        self.check_limits()?;
        Ok(actions)
    }

    /// Takes that a replacement block of a slot follows.
    pub fn replaced(&mut self, slot: u64) -> Vec<Action> {
        self.give_up(slot, RetractReason::Replaced)
    }

    /// Fixes where a session that began with whatever came next has begun. What came before is not complete, and
    /// what was unconfirmed then stays so.
    fn begin_above(&mut self, floor: u64) {
        self.floor = Some(floor);
        self.nodes = self.nodes.split_off(&floor.saturating_add(1));
        self.bytes = self.nodes.values().map(|node| node.bytes).sum();
        for progress in [&mut self.confirmed, &mut self.finalized] {
            progress.watermark = Some(floor);
        }
    }

    fn covers(&self, slot: u64) -> bool {
        // Behind the confirmed chain, only blocks of the chain are still there.
        self.floor.is_none_or(|floor| slot > floor)
            && (self
                .confirmed
                .watermark
                .is_none_or(|watermark| slot > watermark)
                || self.nodes.contains_key(&slot))
    }

    fn give_up(&mut self, slot: u64, reason: RetractReason) -> Vec<Action> {
        if !self.covers(slot) {
            return Vec::new();
        }
        if let Some(node) = self.nodes.get_mut(&slot)
            && node.was_confirmed()
        {
            // Alone it is a contradiction; followed by a replacement block it is a correction.
            node.doubt();
            return Vec::new();
        }
        let retraction = self.remove(slot, reason);
        retraction.into_iter().collect()
    }

    /// Forgets a slot; what was emitted of it is retracted.
    fn remove(&mut self, slot: u64, reason: RetractReason) -> Option<Action> {
        let node = self.nodes.remove(&slot)?;
        self.bytes = self.bytes.saturating_sub(node.bytes);
        node.retraction(slot, reason)
    }

    /// Everything that follows from what is new about `slot`.
    fn advance(&mut self, slot: u64) -> Result<Vec<Action>, ForkTreeError> {
        let mut actions = Vec::new();
        if Some(slot) > self.checkpoint
            && let Some(node) = self.nodes.get_mut(&slot)
            && node.sealed
            && node.emitted.is_none()
        {
            actions.extend(node.emit(Commitment::Processed));
        }
        self.confirm_replacement(slot, &mut actions);
        self.advance_watermark(Commitment::Confirmed, &mut actions)?;
        self.advance_watermark(Commitment::Finalized, &mut actions)?;
        Ok(actions)
    }

    /// Emits the sealed replacement of a block that was emitted at confirmed: the watermark has passed its slot.
    fn confirm_replacement(&mut self, slot: u64, actions: &mut Vec<Action>) {
        if let Some(node) = self.nodes.get_mut(&slot)
            && node.sealed
            && node.was_confirmed()
            && node.emitted < Some(Commitment::Confirmed)
        {
            actions.extend(node.emit_through(Commitment::Confirmed));
            if node.emitted >= Some(self.last_commitment) && !self.holds_emitted {
                self.bytes = self.bytes.saturating_sub(node.drop_events());
            }
        }
    }

    /// Follows the chain from the highest slot reported at a commitment down to its watermark, as far as
    /// blocks are known.
    fn advance_watermark(
        &mut self,
        commitment: Commitment,
        actions: &mut Vec<Action>,
    ) -> Result<(), ForkTreeError> {
        let progress = self.progress(commitment);
        let (Some(slot), Some(watermark)) = (progress.highest_reported, progress.watermark) else {
            return Ok(());
        };
        if watermark >= slot {
            return Ok(());
        }
        if commitment == Commitment::Finalized && self.confirmed.watermark < Some(slot) {
            // What is emitted at finalized counts as emitted at confirmed, so that must come first. It may have to wait
            // for the block of a higher slot.
            return Ok(());
        }
        // Beyond the last commitment there are no events to emit, and the blocks may be forgotten.
        if commitment <= self.last_commitment {
            let Some(ancestry) = self.ancestry(slot, watermark)? else {
                return Ok(());
            };
            self.emit_ancestry(&ancestry, commitment, slot, actions);
        }
        self.progress_mut(commitment).watermark = Some(slot);
        actions.push(Action::Checkpoint { commitment, slot });
        self.forget(commitment, slot);
        Ok(())
    }

    /// A slot and its ancestors above `watermark`, the lowest first; `None` while a block of them is awaited.
    fn ancestry(&self, head: u64, watermark: u64) -> Result<Option<Vec<u64>>, ForkTreeError> {
        let mut ancestry = Vec::new();
        let mut slot = head;
        while slot > watermark {
            let block = self.nodes.get(&slot).and_then(|node| node.block.as_ref());
            let parent = match block {
                Some(block) => block.parent,
                None if self.gap.is_some_and(|gap| gap.contains(slot)) => self.block_below(slot),
                None if head.saturating_sub(slot) < GAP_PATIENCE_SLOTS => return Ok(None),
                None => {
                    return Err(ForkTreeError::Gap(Gap {
                        first: self.block_below(slot).max(watermark).saturating_add(1),
                        last: slot,
                    }));
                }
            };
            ancestry.push(slot);
            // A parent that is not below its child would be a lie, and an endless walk.
            slot = parent.min(slot.saturating_sub(1));
        }
        ancestry.reverse();
        Ok(Some(ancestry))
    }

    /// The nearest block below a slot whose own block never came: the best guess at its parent.
    fn block_below(&self, slot: u64) -> u64 {
        self.nodes
            .range(..slot)
            .rev()
            .find(|(_, node)| node.block.is_some())
            .map(|(slot, _)| *slot)
            .or(self.floor)
            .unwrap_or(0)
    }

    /// Retracts the slots beside an ancestry, and emits those of it.
    fn emit_ancestry(
        &mut self,
        ancestry: &[u64],
        commitment: Commitment,
        head: u64,
        actions: &mut Vec<Action>,
    ) {
        let beside: Vec<u64> = self
            .nodes
            .range(..=head)
            .filter(|(slot, node)| !node.was_confirmed() && ancestry.binary_search(slot).is_err())
            .map(|(slot, _)| *slot)
            .collect();
        for slot in beside {
            actions.extend(self.remove(slot, RetractReason::Abandoned));
        }
        for slot in ancestry {
            let Some(node) = self.nodes.get_mut(slot) else {
                continue;
            };
            actions.extend(node.emit_through(commitment));
            if node.emitted >= Some(self.last_commitment) && !self.holds_emitted {
                self.bytes = self.bytes.saturating_sub(node.drop_events());
            }
        }
    }

    /// Forgets blocks that were emitted for the last time long ago.
    fn forget(&mut self, commitment: Commitment, watermark: u64) {
        if commitment != self.last_commitment || self.holds_emitted {
            return;
        }
        let oldest = watermark.saturating_sub(REMEMBERED_SLOTS);
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

    fn check_limits(&self) -> Result<(), ForkTreeError> {
        if self.nodes.len() > MAX_SLOTS || self.bytes > MAX_BYTES {
            return Err(ForkTreeError::Full {
                slots: self.nodes.len(),
                bytes: self.bytes,
            });
        }
        Ok(())
    }
}

impl Progress {
    fn report(&mut self, slot: u64) {
        self.highest_reported = self.highest_reported.max(Some(slot));
    }
}

#[cfg(test)]
mod tests;
