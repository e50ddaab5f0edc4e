//! Settling: staged messages are written to where they belong, behind what is sent (write-behind).
//!
//! What a slot emits must be on the disk before it is sent, and takes most of its time in the look-ups, indexes and constraints
//! of the tables to which it belongs. So in SQLite it is one row of one small table first, and is settled, moved to where it
//! belongs, when it is on its way: by the next transaction that writes anything else, by who reads of it, or by
//! [`Store::settle`]. Numbers, checkpoints and counts of messages are written with what is staged, so nobody but these functions
//! can tell it from the rest. In a lane nothing is staged.

use std::collections::HashSet;

use super::{
    endpoint_data::webhooks_json,
    message_rows,
    staged_batch::StagedBatch,
    store::{Database, Store},
};
use crate::{
    StoreError,
    backend::{Connection, Durability, over_rows, values},
};

/// Moves all that is staged to where it belongs.
pub(super) async fn settle(write: &mut Connection) -> Result<(), StoreError> {
    let batches = write
        .rows(
            "SELECT messages, bodies FROM staged_batches ORDER BY ordinal",
            values![],
        )
        .await?;
    for row in &batches {
        let messages = StagedBatch::of(row)?.into_messages()?;
        let webhooks: HashSet<i64> = messages.iter().map(|(row, _)| row.webhook).collect();
        let webhooks = existing(write, webhooks).await?;
        let kept = messages
            .into_iter()
            .filter(|(row, _)| webhooks.contains(&row.webhook));
        let rows = kept.map(|(row, body)| row.with_body(body)).collect();
        if !message_rows::insert(write, rows).await? {
            return Err(StoreError::DuplicateMessages);
        }
    }
    write
        .execute("DELETE FROM staged_batches", values![])
        .await
        .map(drop)
}

/// Those of the webhooks that there still are. One that is deleted has its messages settled first, but not by a process of a release
/// that stages nothing.
async fn existing(
    write: &mut Connection,
    webhooks: HashSet<i64>,
) -> Result<HashSet<i64>, StoreError> {
    let found = write
        .rows(
            over_rows!(
                [webhook bigint],
                "SELECT w.ordinal FROM v JOIN webhooks w ON w.ordinal = v.webhook"
            ),
            values![webhooks_json(webhooks)?],
        )
        .await?;
    found.iter().map(|row| row.integer("ordinal")).collect()
}

impl Store {
    /// Writes what is staged, leased messages of the last commits, to where it belongs. Whoever commits does so soon after;
    /// everything else that is written does so first.
    ///
    /// # Errors
    /// A failure of the database; nothing is lost.
    pub async fn settle(&self) -> Result<(), StoreError> {
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
            self.settle().await?;
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
