//! Backup of the store: one state of everything in one file, and its way back into an empty database.
//!
//! A backup holds messages with the checkpoint of that moment. What the chain has done since is read again from there, and
//! gives the same messages under the same ids; what was delivered since is due again. So receivers may get messages twice,
//! and miss none whose slots a server or the node's ledger still has.

use std::path::Path;

use super::{
    bodies, settling,
    store::{Database, Store},
};
use crate::{
    Backup, StoreError,
    backend::{
        BackupFile, Connection, Durability, Sql, Table, UnfinishedBackup, database_time, number_on,
        unsigned, values,
    },
};

/// How far the epoch of leaders moves with a restore: beyond any that was given out since the backup, so that a leader of
/// before, which may still run, does not pass for one of after.
const EPOCHS_SKIPPED: i64 = 1 << 32;

/// What must not be there: a backup goes into an empty store alone.
const CONTENT: &str = "
    SELECT 'API keys' AS what WHERE EXISTS (SELECT 1 FROM api_keys)
    UNION ALL SELECT 'webhooks' WHERE EXISTS (SELECT 1 FROM webhooks)
    UNION ALL SELECT 'messages' WHERE EXISTS (SELECT 1 FROM messages)
    UNION ALL SELECT 'a checkpoint' WHERE EXISTS (SELECT 1 FROM checkpoints)";

const IS_LED: Sql = Sql {
    sqlite: concat!(
        "SELECT epoch FROM leadership WHERE until >= ",
        database_time!(sqlite)
    ),
    postgres: concat!(
        "SELECT epoch FROM leadership WHERE until >= ",
        database_time!(postgres)
    ),
};

/// Nobody may begin to write while it is decided that the store is empty, and filled.
const LOCK: &str =
    "LOCK TABLE leadership, api_keys, webhooks, messages, checkpoints IN SHARE ROW EXCLUSIVE MODE";

impl Store {
    /// Writes everything, as of one moment, to a new file at `path`, while others read and write. The file is an SQLite
    /// database, of whichever database this is a backup, and readable for its owner only.
    ///
    /// # Errors
    /// [`StoreError::Backup`] when the file exists or cannot be written, or a failure of the database. There is no file then.
    pub async fn back_up(&self, path: &Path) -> Result<Backup, StoreError> {
        let unfinished = UnfinishedBackup::create(path)?;
        match &self.database {
            Database::Sqlite(database) => database.vacuum_into(unfinished.partial()).await?,
            Database::Postgres(_) => {
                let file = unfinished.with_tables().await?;
                let filled = fill(&mut self.snapshot().await?, &file).await;
                file.close().await;
                filled?;
            }
        }
        let file = BackupFile::open(unfinished.partial()).await?;
        let backup = summary(&mut file.connection().await?).await;
        file.close().await;
        let backup = backup?;
        unfinished.finish()?;
        Ok(backup)
    }

    /// Fills an empty store with the backup at `path`, of this or an earlier release and of either database: all of it or
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], [`StoreError::Led`], [`StoreError::NewerSchema`], [`StoreError::Backup`] when the file is none
    /// or is damaged, or a failure of the database.
    pub async fn restore(&self, path: &Path) -> Result<Backup, StoreError> {
        let file = BackupFile::open(path).await?;
        let restored = self.restore_from(&file).await;
        file.close().await;
        restored
    }

    async fn restore_from(&self, file: &BackupFile) -> Result<Backup, StoreError> {
        let mut from = file.connection().await?;
        let backup = summary(&mut from).await?;
        let mut write = self.write(Durability::Durable).await?;
        write.lock(LOCK, values![]).await?;
        if let Some(content) = write.row(CONTENT, values![]).await? {
            return Err(StoreError::NotEmpty {
                what: content.text("what")?,
            });
        }
        if write.row(IS_LED, values![]).await?.is_some() {
            return Err(StoreError::Led);
        }
        let epoch = newest_epoch(&mut write).await?;
        let shares_bodies = bodies::are_shared(&mut write).await?;
        let tables = Table::all(&mut from).await?;
        copy_all(&tables, &mut from, &mut write).await?;
        let epoch = epoch.max(newest_epoch(&mut write).await?);
        write
            .execute(
                "UPDATE leadership SET epoch = $1, until = NULL",
                values![epoch.saturating_add(EPOCHS_SKIPPED)],
            )
            .await?;
        number_on(&mut write).await?;
        settling::settle(&mut write).await?;
        // A backup of the release before says no, and none of its processes is here.
        if shares_bodies {
            bodies::share(&mut write).await?;
        }
        write.commit().await?;
        Ok(backup)
    }
}

async fn fill(from: &mut Connection, file: &BackupFile) -> Result<(), StoreError> {
    let mut to = file.connection().await?;
    to.execute("BEGIN", values![]).await?;
    let tables = Table::all(&mut to).await?;
    copy_all(&tables, from, &mut to).await?;
    to.execute("COMMIT", values![]).await.map(drop)
}

async fn copy_all(
    tables: &[Table],
    from: &mut Connection,
    to: &mut Connection,
) -> Result<(), StoreError> {
    // The schema begins with a few rows, which the backup has too.
    for table in tables.iter().rev() {
        table.clear(to).await?;
    }
    for table in tables {
        table.copy(from, to).await?;
    }
    Ok(())
}

async fn newest_epoch(connection: &mut Connection) -> Result<i64, StoreError> {
    let newest = "SELECT coalesce(max(epoch), 0) AS epoch FROM leadership";
    connection
        .one_row(newest, values![])
        .await?
        .integer("epoch")
}

async fn summary(connection: &mut Connection) -> Result<Backup, StoreError> {
    let row = connection
        .one_row(
            "SELECT (SELECT count(*) FROM webhooks WHERE deleted = 0) AS webhooks,
                (SELECT count(*) FROM messages) AS messages,
                (SELECT count(*) FROM deliveries WHERE state = 'pending') AS pending,
                (SELECT slot FROM checkpoints WHERE commitment = 'confirmed') AS confirmed",
            values![],
        )
        .await?;
    let confirmed = row.optional_integer("confirmed")?;
    Ok(Backup {
        webhooks: row.unsigned("webhooks")?,
        messages: row.unsigned("messages")?,
        pending: row.unsigned("pending")?,
        confirmed: confirmed
            .map(|slot| unsigned(slot, "checkpoint"))
            .transpose()?,
    })
}
