//! Checkpoints, unconfirmed slots, and the messages emitted of them.

use super::{rows, store::Store};
use crate::{
    Commitment, SlotMessage, StoreError, UnconfirmedSlot,
    backend::{signed, values},
};

impl Store {
    /// The slot up to which everything that happened at `commitment` is stored; `None` before the first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn checkpoint(&self, commitment: Commitment) -> Result<Option<u64>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT slot FROM checkpoints WHERE commitment = $1",
                values![commitment.name()],
            )
            .await?;
        row.map(|row| row.unsigned("slot")).transpose()
    }

    /// The slots of which messages were emitted at processed and which are neither confirmed nor retracted,
    /// in order.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn unconfirmed_slots(&self) -> Result<Vec<UnconfirmedSlot>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT slot, blockhash FROM unconfirmed_slots ORDER BY slot",
                values![],
            )
            .await?;
        found
            .iter()
            .map(|row| {
                Ok(UnconfirmedSlot {
                    slot: row.unsigned("slot")?,
                    blockhash: row.optional_text("blockhash")?,
                })
            })
            .collect()
    }

    /// The messages about `slot` that were emitted at processed, retractions included, per webhook in order.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn messages_of_slot(&self, slot: u64) -> Result<Vec<SlotMessage>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT m.id, w.id AS webhook_id, m.sequence, m.kind, m.order_key
                 FROM messages m JOIN webhooks w ON w.ordinal = m.webhook
                 WHERE m.slot = $1 AND m.commitment = 'processed' AND w.deleted = 0
                 ORDER BY m.webhook, m.sequence",
                values![signed(slot, "slot")?],
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
