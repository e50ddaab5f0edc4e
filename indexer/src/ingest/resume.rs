//! Resume policy: where the next session begins, after how the last ones ended and what is stored (pure).

use sluice_geyser::StreamError;
use sluice_store::{Commitment, FilterChange, ResumeState, Revision};

use super::session_end::SessionEnd;
use crate::{
    events::subscription_index::Subscriptions,
    slots::{ForkTreeError, Gap, ResumePoint},
};

/// How often a server may refuse to replay without saying from where it could, before the slots it does not have
/// are given up. A node that has just started refuses so until it has caught up; with the pauses between
/// attempts this gives it about five seconds, which a server that never replays costs at every reconnect.
const UNEXPLAINED_REFUSALS: u32 = 6;

/// Where the next session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResumePolicy {
    from: ResumeFrom,
    /// The gap that ended a session last. A server that leaves out blocks, or does not replay one, is asked for them once more:
    /// what came before them is stored meanwhile.
    last_gap: Option<Gap>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResumeFrom {
    /// After the checkpoint.
    Checkpoint {
        /// How often this was refused in a row without a reason that helps.
        refusals: u32,
    },
    /// After the checkpoint, without these slots, which two sessions did not get.
    CheckpointAfterGap(Gap),
    /// At the first slot the server can still replay. There is a gap before it.
    FirstAvailable(u64),
    /// After the checkpoint again, because what the server could not replay has been read by RPC.
    AfterBackfill,
    /// With whatever comes next. There may be a gap before it.
    Tip,
    /// With whatever comes next, and what is missing before it is read by RPC.
    CompletedTip,
}

impl ResumeFrom {
    const CHECKPOINT: Self = Self::Checkpoint { refusals: 0 };
}

impl ResumePolicy {
    /// That of the first session of a process.
    pub(super) const fn new() -> Self {
        Self {
            from: ResumeFrom::CHECKPOINT,
            last_gap: None,
        }
    }

    /// Where to begin after the session that began here ended with `end`. A server that cannot even
    /// replay the slot it named itself is not asked to replay again.
    pub(super) fn next(self, end: &SessionEnd) -> Self {
        let (from, last_gap) = match end {
            SessionEnd::Tree(ForkTreeError::Gap(gap)) if self.last_gap == Some(*gap) => {
                (ResumeFrom::CheckpointAfterGap(*gap), self.last_gap)
            }
            SessionEnd::Tree(ForkTreeError::Gap(gap)) => (ResumeFrom::CHECKPOINT, Some(*gap)),
            SessionEnd::Stream(StreamError::NotReplayed { slot }) => {
                let gap = Gap {
                    first: *slot,
                    last: *slot,
                };
                let from = if self.last_gap == Some(gap) {
                    ResumeFrom::FirstAvailable(slot.saturating_add(1))
                } else {
                    ResumeFrom::CHECKPOINT
                };
                (from, Some(gap))
            }
            SessionEnd::Stream(StreamError::ReplayUnavailable {
                first_available, ..
            }) => (self.after_refusal(*first_available), self.last_gap),
            // Slots were stored, or another beginning would not have changed anything.
            _ => (ResumeFrom::CHECKPOINT, self.last_gap),
        };
        Self { from, last_gap }
    }

    /// That of slots that are read by RPC, without some that the node does not have.
    pub(super) const fn after_gap(gap: Gap) -> Self {
        Self {
            from: ResumeFrom::CheckpointAfterGap(gap),
            last_gap: None,
        }
    }

    /// That of slots that are read by RPC, from the first that the node has.
    pub(super) const fn from_first_available(slot: u64) -> Self {
        Self {
            from: ResumeFrom::FirstAvailable(slot),
            last_gap: None,
        }
    }

    /// Whether the next session would leave out slots.
    pub(super) const fn lacks_slots(self) -> bool {
        matches!(
            self.from,
            ResumeFrom::CheckpointAfterGap(_) | ResumeFrom::FirstAvailable(_) | ResumeFrom::Tip
        )
    }

    /// The last slot that the next session would leave out, where it is known.
    pub(super) const fn last_lacking(self) -> Option<u64> {
        match self.from {
            ResumeFrom::CheckpointAfterGap(gap) => Some(gap.last),
            ResumeFrom::FirstAvailable(slot) => slot.checked_sub(1),
            _ => None,
        }
    }

    /// Whether what is missing before the next session's first block is to be read by RPC.
    pub(super) fn is_completed(self) -> bool {
        self.from == ResumeFrom::CompletedTip
    }

    /// Where to begin once everything up to some moment ago has been read by RPC.
    pub(super) fn caught_up(self) -> Self {
        let from = match self.from {
            ResumeFrom::Tip => ResumeFrom::CompletedTip,
            _ => ResumeFrom::AfterBackfill,
        };
        Self { from, ..self }
    }

    fn after_refusal(self, first_available: Option<u64>) -> ResumeFrom {
        match (self.from, first_available) {
            (ResumeFrom::Checkpoint { .. } | ResumeFrom::CheckpointAfterGap(_), Some(slot)) => {
                ResumeFrom::FirstAvailable(slot)
            }
            (ResumeFrom::Checkpoint { refusals }, None) if refusals < UNEXPLAINED_REFUSALS => {
                ResumeFrom::Checkpoint {
                    refusals: refusals.saturating_add(1),
                }
            }
            _ => ResumeFrom::Tip,
        }
    }

    /// Where a session for `subscriptions` begins, given what is stored.
    pub(super) fn resume_point(
        self,
        state: ResumeState,
        subscriptions: &Subscriptions,
    ) -> ResumePoint {
        let finality_wanted = !subscriptions.at(Commitment::Finalized).is_empty();
        let needed = first_needed(&state, subscriptions, finality_wanted);
        let (from_slot, gap, complete) = match self.from {
            ResumeFrom::Checkpoint { .. }
            | ResumeFrom::AfterBackfill
            | ResumeFrom::CompletedTip => (needed, None, true),
            ResumeFrom::CheckpointAfterGap(gap) => (needed, Some(gap), true),
            ResumeFrom::FirstAvailable(slot) => (Some(slot.max(needed.unwrap_or(0))), None, false),
            ResumeFrom::Tip => (None, None, false),
        };
        ResumePoint {
            confirmed_checkpoint: state.confirmed,
            finalized_checkpoint: state.finalized,
            from_slot,
            gap,
            complete,
            finality_wanted,
            unconfirmed: state.unconfirmed,
        }
    }
}

/// The first slot that a session must read; `None` when nothing was read before. It at least goes on where the last
/// one was; it goes further back for finality, and for webhooks that were written since and that the last one did not
/// serve.
fn first_needed(
    state: &ResumeState,
    subscriptions: &Subscriptions,
    finality_wanted: bool,
) -> Option<u64> {
    let resume = state.confirmed?.saturating_add(1);
    let for_finality = state
        .finalized
        .filter(|_| finality_wanted)
        .map(|slot| slot.saturating_add(1));
    let for_changes = first_requested(&state.filter_changes, subscriptions.revision());
    let needed = [Some(resume), for_finality, for_changes];
    needed.into_iter().flatten().min()
}

/// The first slot that the changes up to a revision need and that are not in force; `None` when no slot had been read
/// when they were made.
pub(super) fn first_requested(changes: &[FilterChange], revision: Revision) -> Option<u64> {
    changes
        .iter()
        .filter(|change| change.revision <= revision && change.in_force_slot.is_none())
        .filter_map(|change| change.requested_slot)
        .min()
}

#[cfg(test)]
mod tests;
