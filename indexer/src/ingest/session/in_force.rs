//! Filter in force: records from which slot on a session's filter applies.

use sluice_store::{Commitment, FilterState, StoreError};

use super::{Session, SessionEnd};

impl Session<'_> {
    /// Records that the session's first filter is in force, once the stream has shown where it begins. A session that asked
    /// for slots passes all of them through it.
    ///
    /// Slots that are replayed for webhooks that were written meanwhile must be stored before: once the filter is
    /// recorded, they would not be asked for again.
    pub(super) async fn record_in_force(&mut self) -> Result<(), SessionEnd> {
        let (Some(first_whole), None) = (self.first_whole, self.in_force) else {
            return Ok(());
        };
        let in_force_slot = match self.resume.from_slot {
            Some(from_slot) => {
                let stored = self.watermark.or(from_slot.checked_sub(1));
                if stored < self.resume.confirmed_checkpoint {
                    return Ok(());
                }
                from_slot
            }
            None => first_whole,
        };
        if !self.record_floor().await? {
            return Ok(());
        }
        let state = FilterState {
            revision: self.first_revision,
            in_force_slot,
        };
        self.record(state).await
    }

    /// Records that a filter is in force.
    pub(super) async fn record(&mut self, state: FilterState) -> Result<(), SessionEnd> {
        self.context.outbox.store.record_filter_state(state).await?;
        self.in_force = Some(state.revision);
        tracing::info!(
            revision = state.revision.0,
            in_force_slot = state.in_force_slot,
            "the stream's filter is in force"
        );
        Ok(())
    }

    /// Stores the floor as the checkpoint where there is none, so that the next session begins where this one did:
    /// once a filter is in force nothing may be missed, and until the first checkpoint, the finalized one included,
    /// there is none to resume from. False while the floor is not known.
    pub(super) async fn record_floor(&self) -> Result<bool, StoreError> {
        // Finality first: a checkpoint of it alone is not resumed from.
        let checkpoints = [
            (Commitment::Finalized, self.resume.finalized_checkpoint),
            (Commitment::Confirmed, self.resume.confirmed_checkpoint),
        ];
        let unknown = checkpoints.into_iter().filter(|(_, slot)| slot.is_none());
        let unknown: Vec<_> = unknown.map(|(commitment, _)| commitment).collect();
        // A session with a gap reports it before a checkpoint passes it.
        if unknown.is_empty() || !self.resume.complete {
            return Ok(true);
        }
        let requested = self.resume.from_slot.and_then(|slot| slot.checked_sub(1));
        let Some(floor) = requested.or(self.tree.floor()) else {
            return Ok(false);
        };
        for commitment in unknown {
            self.context.outbox.checkpoint(commitment, floor).await?;
        }
        Ok(true)
    }
}
