//! Settling: staged messages are written to where they belong, behind what is sent (write-behind).
//!
//! What a slot emits must be on the disk before it is sent, and takes most of its time in the look-ups, indexes and constraints
//! of the tables to which it belongs. So in SQLite it is one row of one small table first, and is settled, moved to where it
//! belongs, when it is on its way: by the next transaction that writes anything else, by who reads of it, or by
//! [`Store::settle`]. Numbers, checkpoints and counts of messages are written with what is staged, so nobody but these functions
//! can tell it from the rest. In a lane nothing is staged.

use super::{
    message_rows,
    staged_batch::StagedBatch,
    staged_rows,
    store::{Database, Store},
};
use crate::{
    StoreError,
    backend::{Connection, Durability, values},
};

/// Moves all that is staged to where it belongs.
pub(super) async fn settle(write: &mut Connection) -> Result<(), StoreError> {
    let batches = write
        .rows(
            "SELECT pending, messages, bodies, terms FROM staged_batches ORDER BY ordinal",
            values![],
        )
        .await?;
    for batch in &batches {
        let rows = match batch.optional_text("terms")? {
            Some(terms) => StagedBatch::of(batch, &terms)?.rows(write).await?,
            None => staged_rows::rows(write, batch).await?,
        };
        if !message_rows::insert(write, rows).await? {
            return Err(StoreError::DuplicateMessages);
        }
    }
    write
        .execute("DELETE FROM staged_batches", values![])
        .await
        .map(drop)
}

impl Store {
    /// Writes what is staged, messages of the last commits, to where it belongs, and has the disk take that and all that was
    /// written without waiting for it: the next commit would wait for all of it. Whoever commits does so soon after; everything
    /// else that is written settles first.
    ///
    /// # Errors
    /// A failure of the database; nothing is lost.
    pub async fn settle(&self) -> Result<(), StoreError> {
        self.move_staged().await?;
        if let Database::Sqlite(database) = &self.database {
            // What fails here is known to the next write, which folds the log into the database first.
            let _ = database.sync().await;
        }
        Ok(())
    }

    async fn move_staged(&self) -> Result<(), StoreError> {
        let mut read = self.read().await?;
        if self.is_settled(&mut read).await? {
            return Ok(());
        }
        drop(read);
        self.write(Durability::Relaxed).await?.commit().await
    }

    /// A snapshot in which nothing is staged, for what is read of messages and deliveries.
    pub(super) async fn settled_snapshot(&self) -> Result<Connection, StoreError> {
        loop {
            let mut snapshot = self.snapshot().await?;
            if self.is_settled(&mut snapshot).await? {
                return Ok(snapshot);
            }
            drop(snapshot);
            self.move_staged().await?;
        }
    }

    /// A transaction that writes, in which nothing is staged.
    pub(super) async fn write(&self, durability: Durability) -> Result<Connection, StoreError> {
        let mut write = self.begin(durability).await?;
        if !self.is_settled(&mut write).await? {
            settle(&mut write).await?;
        }
        Ok(write)
    }

    async fn is_settled(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        match self.database {
            Database::Sqlite(_) => {
                let staged =
                    connection.row("SELECT 1 AS one FROM staged_batches LIMIT 1", values![]);
                Ok(staged.await?.is_none())
            }
            Database::Postgres(_) => Ok(true),
        }
    }
}
