//! Checkpoints, unconfirmed slots, and the messages emitted of them.

use super::{active, rows, store::Store};
use crate::{
    Commitment, ResumeState, Revision, SlotMessage, StoreError, UnconfirmedSlots,
    backend::{Connection, signed, values},
};

impl Store {
    /// The slot up to which everything that happened at `commitment` is stored; `None` before the first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn checkpoint(&self, commitment: Commitment) -> Result<Option<u64>, StoreError> {
        select_checkpoint(&mut self.read().await?, commitment).await
    }

    /// What the next session of the indexer resumes from, read in one snapshot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn resume_state(&self) -> Result<ResumeState, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let in_force = active::select_filter_state(&mut snapshot).await?;
        let known = in_force.map_or(Revision(0), |state| state.revision);
        Ok(ResumeState {
            confirmed: select_checkpoint(&mut snapshot, Commitment::Confirmed).await?,
            finalized: select_checkpoint(&mut snapshot, Commitment::Finalized).await?,
            unconfirmed: select_unconfirmed_slots(&mut snapshot).await?,
            filter_changes: active::select_filter_changes(&mut snapshot, known).await?,
        })
    }

    /// The slots of which messages were emitted at processed and which are neither confirmed nor retracted.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn unconfirmed_slots(&self) -> Result<UnconfirmedSlots, StoreError> {
        select_unconfirmed_slots(&mut self.read().await?).await
    }

    /// The messages about `slot` at a commitment, retractions included, per webhook in order.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn messages_of_slot(
        &self,
        slot: u64,
        commitment: Commitment,
    ) -> Result<Vec<SlotMessage>, StoreError> {
        let mut read = self.settled_snapshot().await?;
        let found = read
            .rows(
                "SELECT m.id, w.id AS webhook_id, m.sequence, m.kind, m.order_key
                 FROM messages m JOIN webhooks w ON w.ordinal = m.webhook
                 WHERE m.slot = $1 AND m.commitment = $2 AND w.deleted = 0
                 ORDER BY m.webhook, m.sequence",
                values![signed(slot, "slot")?, commitment.name()],
            )
            .await?;
        found
            .iter()
            .map(|row| {
                Ok(SlotMessage {
                    id: rows::message_id(row)?,
                    webhook: rows::webhook_id(row, "webhook_id")?,
                    sequence: row.unsigned("sequence")?,
                    kind: rows::kind(row)?,
                    order_key: row.optional_text("order_key")?,
                })
            })
            .collect()
    }
}

async fn select_checkpoint(
    read: &mut Connection,
    commitment: Commitment,
) -> Result<Option<u64>, StoreError> {
    let row = read
        .row(
            "SELECT slot FROM checkpoints WHERE commitment = $1",
            values![commitment.name()],
        )
        .await?;
    row.map(|row| row.unsigned("slot")).transpose()
}

async fn select_unconfirmed_slots(read: &mut Connection) -> Result<UnconfirmedSlots, StoreError> {
    let found = read
        .rows("SELECT slot, blockhash FROM unconfirmed_slots", values![])
        .await?;
    found
        .iter()
        .map(|row| {
            let slot = row.unsigned("slot")?;
            Ok((slot, row.optional_text("blockhash")?))
        })
        .collect()
}
