//! Filter round: one change of the live stream's filter, from its request to the hand-over of webhooks (pure).
//!
//! The filter is replaced on the live stream, so the webhooks that stay notice nothing. What new addresses did in slots
//! that had begun before comes by a side stream: a second connection for the changed webhooks alone, and of these for what the
//! former filter does not select, so that one key beside a hundred thousand is replayed alone. It begins with the slot of the
//! request and has a [`ForkTree`] of its own, which follows the live one's watermarks: what the live stream may still retract is
//! not emitted by the side stream. Meanwhile the live stream serves the changed webhooks as they were, so that it alone emits
//! what their old keys do in these slots, and its tree holds what it has emitted. They are handed over once the side stream has
//! emitted the slots that were cut and are confirmed, and holds the same blocks of the others: how far it is behind by then does
//! not matter. The live stream's tree takes what the side stream's holds of the cut slots, and emits to the webhooks as they are
//! what it has emitted of those that are not confirmed, and of the slots after them. What both emitted has the same ids, so it
//! is stored once.
//!
//! Should another block of a cut slot come after that, from a fork that was still open, the session ends: the next one reads
//! everything above the checkpoint under the new filter.

use std::sync::Arc;

use sluice_geyser::{Assembled, Body, Generation, SlotStatus, SlotUpdate, StreamError};
use sluice_store::{Commitment, FilterState};

use super::session_end::SessionEnd;
use crate::{
    events::subscription_index::Subscriptions,
    slots::{Action, ForkTree, ForkTreeError, ResumePoint},
};

/// How often a side stream may fail in a row before its slots are given up: with the pauses between attempts some five
/// seconds, in which a node that has just started is able to replay.
const MAX_FAILURES: u32 = 6;

/// Text of a server that never replays, so that asking again is in vain.
const NEVER_REPLAYS: &str = "from_slot is not supported";

/// A change of the filter.
#[derive(Debug)]
pub(super) struct FilterRound {
    subscriptions: Arc<Subscriptions>,
    changed: Arc<Subscriptions>,
    /// The generation in which the live stream was asked for the filter; `None` until it was.
    asked: Option<Generation>,
    /// The first slot that the live stream gives out as the new filter selects it, once that is known. The slots before it
    /// are cut: of these, new addresses are seen in part or not at all.
    in_force_slot: Option<u64>,
    backfill: Backfill,
}

/// How the changed webhooks get what the live stream has not.
#[derive(Debug)]
enum Backfill {
    /// Nothing new is watched, or no slot had been read when it was asked for.
    NotNeeded,
    /// By a side stream.
    Side(Box<SideTrack>),
    /// Not at all: no server replays it.
    Impossible,
}

/// The side stream's slots.
#[derive(Debug)]
pub(super) struct SideTrack {
    /// The changed webhooks, with those of their keys alone that the former filter does not do for.
    missing: Arc<Subscriptions>,
    /// The slots it has seen.
    pub(super) tree: ForkTree,
    resume: ResumePoint,
    /// How often it was begun anew.
    attempts: u32,
    /// How often it has failed, its silence while the whole chain stands still not counted.
    failures: u32,
    /// How far the live stream was confirmed when it was begun.
    live_confirmed: Option<u64>,
}

impl SideTrack {
    /// How often it was begun anew.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What it is asked for, and what is matched by it.
    pub(super) const fn missing(&self) -> &Arc<Subscriptions> {
        &self.missing
    }

    /// Takes what came by the side stream for the webhooks that changed. How far the chain is confirmed is learnt from the live
    /// stream alone.
    pub(super) fn take(&mut self, assembled: Vec<Assembled>) -> Result<Vec<Action>, ForkTreeError> {
        let mut actions = Vec::new();
        for each in assembled {
            let mut update = match each {
                Assembled::Update(update) | Assembled::Late { update, .. } => update,
                Assembled::Replaced { slot } => {
                    actions.extend(self.tree.replaced(slot));
                    continue;
                }
                // Nothing is asked for ahead.
                Assembled::InForce { .. } | Assembled::Ahead { .. } | Assembled::Void { .. } => {
                    continue;
                }
            };
            if let Body::Slot(slot) = &mut update.body
                && matches!(slot.status, SlotStatus::Confirmed | SlotStatus::Finalized)
            {
                slot.status = SlotStatus::Processed;
            }
            actions.extend(match update.body {
                Body::Transaction(each) if !self.missing.reads_transaction(&each) => {
                    self.tree.unread(each)?
                }
                _ => self.tree.take(update)?,
            });
        }
        Ok(actions)
    }

    /// Emits what the live stream has emitted, as far as the blocks are known.
    pub(super) fn follow(&mut self, live: &ForkTree) -> Result<Vec<Action>, ForkTreeError> {
        let mut actions = Vec::new();
        for (commitment, status) in [
            (Commitment::Confirmed, SlotStatus::Confirmed),
            (Commitment::Finalized, SlotStatus::Finalized),
        ] {
            let common = live.newest_in_common(&self.tree, commitment);
            if let Some(slot) = common.filter(|slot| self.tree.watermark(commitment) < Some(*slot))
            {
                actions.extend(self.tree.status(&SlotUpdate {
                    slot,
                    parent: None,
                    status,
                    dead_error: None,
                })?);
            }
        }
        Ok(actions)
    }

    /// The slot from which it replays.
    pub(super) const fn first_slot(&self) -> Option<u64> {
        self.resume.from_slot
    }
}

impl FilterRound {
    /// A round after which `subscriptions` are served. Those of them that `changed` holds need what `missing` selects of what
    /// happened since `requested_slot`, the first slot of which they miss nothing. `live` is the live stream's tree.
    pub(super) fn new(
        subscriptions: Arc<Subscriptions>,
        (changed, missing): (Subscriptions, Subscriptions),
        requested_slot: Option<u64>,
        live: &ForkTree,
    ) -> Self {
        let needed = requested_slot.filter(|_| !missing.watches_nothing());
        let backfill = needed.map_or(Backfill::NotNeeded, |from_slot| {
            let resume = ResumePoint {
                // It emits nothing that might have to be retracted when it is closed: a slot's events at processed come
                // when the slot is confirmed, or with the hand-over.
                confirmed_checkpoint: Some(u64::MAX),
                from_slot: Some(from_slot),
                complete: true,
                finality_wanted: !missing.at(Commitment::Finalized).is_empty(),
                ..ResumePoint::default()
            };
            Backfill::Side(Box::new(SideTrack {
                missing: Arc::new(missing),
                tree: ForkTree::new(&resume),
                resume,
                attempts: 0,
                failures: 0,
                live_confirmed: live.watermark(Commitment::Confirmed),
            }))
        });
        Self {
            subscriptions,
            changed: Arc::new(changed),
            asked: None,
            in_force_slot: None,
            backfill,
        }
    }

    /// Those of them that changed, as they are now.
    pub(super) fn changed(&self) -> &Arc<Subscriptions> {
        &self.changed
    }

    /// The webhooks that are served after the round.
    pub(super) fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// The side stream's state, while there is one.
    pub(super) fn side(&self) -> Option<&SideTrack> {
        match &self.backfill {
            Backfill::Side(side) => Some(side),
            Backfill::NotNeeded | Backfill::Impossible => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn side_mut(&mut self) -> Option<&mut SideTrack> {
        match &mut self.backfill {
            Backfill::Side(side) => Some(side),
            Backfill::NotNeeded | Backfill::Impossible => None,
        }
    }

    /// The live stream was asked for the filter in this generation.
    pub(super) const fn asked(&mut self, generation: Generation) {
        self.asked = Some(generation);
    }

    /// The live stream gives out everything from `slot` on as the filter of a generation selects it.
    pub(super) fn shown(&mut self, filter: Generation, slot: u64) {
        if self.asked.is_some_and(|asked| filter >= asked) {
            self.in_force_slot.get_or_insert(slot);
        }
    }

    /// Begins the side stream anew after it failed, or gives it up. `live` is the live stream's tree.
    pub(super) fn side_failed(&mut self, fault: &SessionEnd, live: &ForkTree) {
        tracing::warn!(error = %fault, "the side stream of a new filter failed");
        let Backfill::Side(side) = &mut self.backfill else {
            return;
        };
        let live_confirmed = live.watermark(Commitment::Confirmed);
        // A server has nothing to say of a chain that stands still.
        let is_silent = matches!(fault, SessionEnd::Stream(StreamError::Silent(_)));
        let is_excused = is_silent && side.live_confirmed == live_confirmed;
        side.live_confirmed = live_confirmed;
        side.attempts = side.attempts.saturating_add(1);
        side.failures = side.failures.saturating_add(u32::from(!is_excused));
        let mut in_vain = side.failures > MAX_FAILURES;
        if let SessionEnd::Stream(StreamError::ReplayUnavailable {
            first_available,
            message,
        }) = fault
        {
            in_vain |= message.contains(NEVER_REPLAYS);
            side.resume.from_slot = side.resume.from_slot.max(*first_available);
        }
        if in_vain {
            self.backfill = Backfill::Impossible;
        } else {
            side.tree = ForkTree::new(&side.resume);
        }
    }

    /// The filter as it is in force once the changed webhooks are handed over; `None` while that must wait. `live` is
    /// the live stream's tree.
    pub(super) fn ready(&self, live: &ForkTree) -> Option<FilterState> {
        let first_whole = self.in_force_slot?;
        let in_force_slot = match &self.backfill {
            Backfill::NotNeeded | Backfill::Impossible => first_whole,
            Backfill::Side(side) => {
                let is_complete = live.is_held_by(&side.tree, first_whole)
                    && live.is_emitted_by(&side.tree, first_whole);
                side.first_slot().filter(|_| is_complete)?
            }
        };
        Some(FilterState {
            revision: self.subscriptions.revision(),
            in_force_slot,
        })
    }

    /// The first slot that the live stream gives out as the new filter selects it.
    pub(super) const fn in_force_slot(&self) -> Option<u64> {
        self.in_force_slot
    }
}

#[cfg(test)]
mod tests;
