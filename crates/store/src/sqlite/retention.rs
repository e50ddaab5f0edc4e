//! Keeping the database from growing for ever.

use super::{Durability, Store};
use crate::{StoreError, Timestamp};

/// Messages removed in one transaction: few enough that nobody waits noticeably for their turn.
const PRUNE_CHUNK: i64 = 500;

impl Store {
    /// Removes messages that were delivered or given up before `before`, with their attempts, and
    /// returns how many. What is pending is never removed. `before` must lie further back than any
    /// replay of the stream reaches, since a removed message is no longer known.
    ///
    /// # Errors
    /// A failure of the database; what was removed until then stays removed.
    pub async fn prune_finished(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut total: u64 = 0;
        loop {
            let mut write = self.write(Durability::Relaxed).await?;
            let removed = sqlx::query(
                "DELETE FROM deliveries WHERE id IN (
                     SELECT id FROM deliveries WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
            )
            .bind(before.unix_millis())
            .bind(PRUNE_CHUNK)
            .execute(&mut *write)
            .await?
            .rows_affected();
            write.commit().await?;
            if removed == 0 {
                return Ok(total);
            }
            total = total.saturating_add(removed);
        }
    }
}
