//! Progress in SQLite.

use sqlx::Row;

use super::{Durability, Store, signed, unsigned};
use crate::{FilterState, Revision, StoreError};

impl Store {
    /// The slot up to which everything is stored; `None` before the first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn checkpoint(&self) -> Result<Option<u64>, StoreError> {
        let mut connection = self.read().await?;
        let slot: Option<i64> = sqlx::query_scalar("SELECT slot FROM checkpoint")
            .fetch_optional(&mut *connection)
            .await?;
        slot.map(|slot| unsigned(slot, "checkpoint.slot"))
            .transpose()
    }

    /// Records that the filter of `state` is proved. Repeating the proof of the same revision, after a
    /// reconnect for example, keeps the first slot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn record_filter_state(&self, state: FilterState) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        sqlx::query(
            "INSERT INTO filter_state (one, revision, since_slot) VALUES (1, ?, ?)
             ON CONFLICT (one) DO UPDATE
             SET revision = excluded.revision, since_slot = excluded.since_slot
             WHERE revision <> excluded.revision",
        )
        .bind(signed(state.revision.0, "revision")?)
        .bind(signed(state.since_slot, "slot")?)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// The filter proved last; `None` before the first proof.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn filter_state(&self) -> Result<Option<FilterState>, StoreError> {
        let mut connection = self.read().await?;
        let row = sqlx::query("SELECT revision, since_slot FROM filter_state")
            .fetch_optional(&mut *connection)
            .await?;
        row.map(|row| {
            Ok(FilterState {
                revision: Revision(unsigned(row.try_get("revision")?, "filter_state.revision")?),
                since_slot: unsigned(row.try_get("since_slot")?, "filter_state.since_slot")?,
            })
        })
        .transpose()
    }
}
