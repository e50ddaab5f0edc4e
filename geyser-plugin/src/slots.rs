//! Slot state machine: what each commitment level may be sent, and what can be replayed.
//!
//! - The processed stream gets every write at once. The confirmed and finalized streams get the
//!   content of a slot when it reaches their level, with only the last write per account.
//! - On every stream the block and its meta follow the content, and the status of the stream's own
//!   level follows the block meta. Slot statuses go to all streams.
//! - A replay consists of frozen blocks alone, in that order, with the last write per account. Of a slot
//!   that is still being built it contains nothing.
//! - The validator reports out of order: a slot may be confirmed before its transactions arrive or
//!   without ever being reported as processed. A slot therefore waits until it is sealed, lower
//!   levels are emitted first, and ancestors are raised with their descendants.

mod buffered_slot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use yellowstone_grpc_proto::{geyser::SlotStatus, prost_types::Timestamp};

use self::buffered_slot::BufferedSlot;
use crate::{
    blocks::{BlockRef, Blocks},
    message::{Commitment, Event, Slot, SlotUpdate, Update},
};

/// How far the chain may move past a slot that was never sealed before the slot's statuses are emitted
/// anyway. Normally a sealed child releases it at once; this covers a chain without any block metas.
const RELEASE_AFTER_SLOTS: Slot = 32;

/// Why a replay is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReplayError {
    /// Replay is turned off.
    #[error("from_slot is not supported")]
    Disabled,
    /// No block has been frozen yet.
    #[error("failed to get replay response")]
    NotReady,
    /// The slot is older than the window.
    #[error("broadcast from {from} is not available, last available: {first}")]
    TooOld {
        /// The slot asked for.
        from: Slot,
        /// The oldest one kept.
        first: Slot,
    },
}

/// Bounds of the ring.
#[derive(Debug, Clone, Copy)]
pub struct RingLimits {
    /// Slots kept for replay; 0 turns replay off.
    pub replay_slots: usize,
    /// Bytes of content above which finalized slots are dropped early.
    pub replay_bytes: usize,
    /// Slots kept while nothing finalizes.
    pub unfinalized_slots: usize,
}

/// What each stream emits in response to one message, by [`Commitment::index`].
#[derive(Debug, Default)]
pub struct Outbox(pub [Vec<Event>; 3]);

impl Outbox {
    fn emit(&mut self, commitment: Commitment, event: Event) {
        self.0[commitment.index()].push(event);
    }

    fn emit_all(&mut self, event: &Event) {
        for batch in &mut self.0 {
            batch.push(event.clone());
        }
    }
}

/// Recent slots; see the module.
#[derive(Debug)]
pub struct SlotRing {
    limits: RingLimits,
    slots: BTreeMap<Slot, BufferedSlot>,
    /// Slots with a reported level that has not been emitted to subscribers.
    waiting: BTreeSet<Slot>,
    /// Slots up to here may lack messages.
    incomplete_through: Option<Slot>,
    /// Slots up to here have left the ring.
    dropped_through: Option<Slot>,
    finalized: Option<Slot>,
    bytes: usize,
    blocks: Blocks,
}

impl SlotRing {
    /// An empty ring.
    pub fn new(limits: RingLimits) -> Self {
        Self {
            limits,
            slots: BTreeMap::new(),
            waiting: BTreeSet::new(),
            incomplete_through: None,
            dropped_through: None,
            finalized: None,
            bytes: 0,
            blocks: Blocks::default(),
        }
    }

    /// Newest blocks and valid blockhashes, as far as emitted to subscribers.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Takes in one message and returns what it lets each stream see.
    pub fn apply(&mut self, event: Event) -> Outbox {
        let mut out = Outbox::default();
        let slot = event.update.slot();
        if self.dropped_through >= Some(slot) {
            // Nothing can be ordered any more, but nothing may be withheld either.
            out.emit_all(&event);
            return out;
        }
        let bytes_before = self.buffered(slot).bytes;
        match &event.update {
            Update::Slot(status) => self.apply_status(status.clone(), event.created_at, &mut out),
            Update::Account(_)
            | Update::Transaction(_)
            | Update::Entry(_)
            | Update::Block(_)
            | Update::BlockMeta(_) => self.apply_content(slot, &event, &mut out),
        }
        self.bytes = self.bytes + self.buffered(slot).bytes - bytes_before;
        self.emit_waiting(event.created_at, &mut out);
        self.prune();
        out
    }

    /// Records that messages of slots up to `slot` were lost on the way here.
    pub fn lose_through(&mut self, slot: Slot) {
        self.incomplete_through = self.incomplete_through.max(Some(slot));
        for buffered in self.slots.range_mut(..=slot).map(|(_, buffered)| buffered) {
            self.bytes -= buffered.bytes;
            buffered.mark_incomplete();
        }
    }

    /// The oldest slot that a replay can start from.
    pub fn first_available(&self) -> Option<Slot> {
        if self.limits.replay_slots == 0 {
            return None;
        }
        self.slots
            .iter()
            .find(|(_, buffered)| buffered.is_replayed(Commitment::Processed))
            .map(|(slot, _)| *slot)
    }

    /// The frozen blocks from slot `from` on that have reached `commitment`: of each its content with the last write
    /// per account, block, block meta, and its statuses so far.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] when the window does not reach back that far.
    pub fn replay(&self, from: Slot, commitment: Commitment) -> Result<Vec<Event>, ReplayError> {
        if self.limits.replay_slots == 0 {
            return Err(ReplayError::Disabled);
        }
        let first = self.first_available().ok_or(ReplayError::NotReady)?;
        if from < first {
            return Err(ReplayError::TooOld { from, first });
        }
        let mut events = Vec::new();
        let buffered = self.slots.range(from..).map(|(_, buffered)| buffered);
        for block in buffered.filter(|buffered| buffered.is_replayed(commitment)) {
            events.extend(block.content());
            events.extend(block.seal().into_iter().flatten());
            events.extend(block.statuses());
        }
        Ok(events)
    }

    fn buffered(&mut self, slot: Slot) -> &mut BufferedSlot {
        if self.slots.is_empty() && self.incomplete_through.is_none() && slot > 0 {
            // Loaded into a running validator: the first slot seen had probably begun before.
            self.incomplete_through = Some(slot);
        }
        let incomplete = self.incomplete_through >= Some(slot);
        self.slots
            .entry(slot)
            .or_insert_with(|| BufferedSlot::new(incomplete))
    }

    fn apply_content(&mut self, slot: Slot, event: &Event, out: &mut Outbox) {
        let buffered = self.buffered(slot);
        let was_sealed = buffered.is_sealed();
        buffered.add_content(event);
        let seals = !was_sealed && buffered.is_sealed();
        let is_meta = matches!(event.update, Update::BlockMeta(_));
        for commitment in Commitment::ALL {
            // What comes after its status was emitted is emitted late, but it is.
            let late = buffered.has_emitted(commitment);
            if !is_meta && (late || commitment == Commitment::Processed) {
                out.emit(commitment, event.clone());
            }
            if seals && late {
                out.0[commitment.index()].extend(buffered.seal().into_iter().flatten());
            }
        }
        if buffered.is_sealed() {
            self.release_ancestors(slot);
        }
    }

    fn apply_status(&mut self, mut status: SlotUpdate, created_at: Timestamp, out: &mut Outbox) {
        let slot = status.slot;
        let buffered = self.buffered(slot);
        buffered.parent = buffered.parent.or(status.parent);
        status.parent = buffered.parent;
        let level = match status.status {
            SlotStatus::SlotProcessed => Commitment::Processed,
            SlotStatus::SlotConfirmed => Commitment::Confirmed,
            SlotStatus::SlotFinalized => Commitment::Finalized,
            SlotStatus::SlotFirstShredReceived
            | SlotStatus::SlotCompleted
            | SlotStatus::SlotCreatedBank
            | SlotStatus::SlotDead => {
                let event = Event {
                    update: Update::Slot(status),
                    created_at,
                };
                out.emit_all(&event);
                buffered.add_status(event);
                return;
            }
        };
        self.raise(slot, level);
        let overdue = slot.saturating_sub(RELEASE_AFTER_SLOTS);
        for slot in self.waiting.range(..overdue) {
            if let Some(buffered) = self.slots.get_mut(slot) {
                buffered.released = true;
            }
        }
    }

    /// Records that `slot`, and by that every ancestor, reached `level`.
    fn raise(&mut self, slot: Slot, level: Commitment) {
        let mut next = Some(slot);
        while let Some(slot) = next {
            let Some(buffered) = self.slots.get_mut(&slot) else {
                return;
            };
            if buffered.wanted >= Some(level) {
                return;
            }
            buffered.wanted = Some(level);
            self.waiting.insert(slot);
            next = buffered
                .parent
                .filter(|parent| *parent < slot && level > Commitment::Processed);
        }
    }

    /// A bank starts only when its parent is frozen, and the validator reports both in order. So
    /// whatever an ancestor of a sealed slot still lacks will not come.
    fn release_ancestors(&mut self, slot: Slot) {
        let mut slot = slot;
        while let Some(parent) = self.slots.get(&slot).and_then(|buffered| buffered.parent) {
            match self.slots.get_mut(&parent) {
                Some(buffered) if parent < slot && !buffered.is_ready() => buffered.released = true,
                _ => return,
            }
            slot = parent;
        }
    }

    fn emit_waiting(&mut self, now: Timestamp, out: &mut Outbox) {
        let waiting: Vec<Slot> = self.waiting.iter().copied().collect();
        for slot in waiting {
            let Some(buffered) = self.slots.get(&slot) else {
                self.waiting.remove(&slot);
                continue;
            };
            if !buffered.is_ready() {
                continue;
            }
            // A slot does not overtake its parent on the way to confirmed and finalized.
            let parent_emitted = buffered
                .parent
                .and_then(|parent| self.slots.get(&parent))
                .map_or(Some(Commitment::Finalized), |parent| parent.emitted);
            let allowed = parent_emitted.max(Some(Commitment::Processed));
            let (emitted, target) = (buffered.emitted, buffered.wanted.min(allowed));
            for level in Commitment::ALL {
                if Some(level) > emitted && Some(level) <= target {
                    self.emit(slot, level, now, out);
                }
            }
            if target == self.slots.get(&slot).and_then(|buffered| buffered.wanted) {
                self.waiting.remove(&slot);
            }
        }
    }

    fn emit(&mut self, slot: Slot, level: Commitment, now: Timestamp, out: &mut Outbox) {
        let Some(buffered) = self.slots.get_mut(&slot) else {
            return;
        };
        if level > Commitment::Processed {
            out.0[level.index()].extend(buffered.content());
        }
        out.0[level.index()].extend(buffered.seal().into_iter().flatten());
        let status = Event {
            update: Update::Slot(SlotUpdate {
                slot,
                parent: buffered.parent,
                status: level.slot_status(),
                dead_error: None,
            }),
            created_at: now,
        };
        out.emit_all(&status);
        buffered.emitted = Some(level);
        self.bytes += status.update.weight();
        buffered.add_status(status);
        self.blocks.slot_reached(level, slot);
        if let Some(meta) = buffered.meta() {
            let block = BlockRef {
                slot,
                blockhash: meta.blockhash.clone(),
                height: meta.block_height.map_or(0, |height| height.block_height),
            };
            self.blocks.block_reached(level, block);
        }
        if level == Commitment::Finalized {
            self.finalized = self.finalized.max(Some(slot));
        }
    }

    fn prune(&mut self) {
        let most = self.limits.replay_slots + self.limits.unfinalized_slots;
        while let Some(slot) = self.slots.keys().next().copied() {
            let is_finalized = self.finalized >= Some(slot);
            let crowded = self.slots.len() > self.limits.replay_slots
                || self.bytes > self.limits.replay_bytes;
            if !(is_finalized && crowded || self.slots.len() > most) {
                return;
            }
            if let Some(buffered) = self.slots.remove(&slot) {
                self.bytes -= buffered.bytes;
            }
            self.waiting.remove(&slot);
            self.dropped_through = Some(slot);
            if !is_finalized {
                log::error!("slot {slot} was dropped before it was finalized: too many slots");
            }
        }
    }
}
