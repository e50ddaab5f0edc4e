//! Cleaning: rids an SQLite file of the plaintext that was replaced in it.
//!
//! SQLite leaves the bytes of what is replaced or deleted where they were: in the free space of pages, in free pages, in pages
//! that other tables have got since, and in the log. Any earlier state of a row may have left some, so to overwrite what is freed
//! from now on would not do. The whole file is written anew from what is in it, and the log emptied.
//!
//! That it is to be done is noted in the header of the file, by the transactions that replace plaintext, so that a process that
//! ends before it is done leaves it to the next one.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::{SqliteDatabase, is_busy};
use crate::{StoreError, backend::Connection};

/// How long it waits for the writes of other processes, which may be cleaning the same file.
const PATIENCE: Duration = Duration::from_secs(30);

impl Connection {
    /// Notes that this transaction replaces plaintext, of which SQLite leaves something in the file until it is cleaned.
    /// PostgreSQL cleans its files by itself, in its own time.
    pub(crate) async fn note_replaced_plaintext(&mut self) -> Result<(), StoreError> {
        if let Self::SqliteTransaction { transaction, .. } = self {
            let before = noted(transaction).await?;
            note(transaction, before.saturating_add(1)).await?;
        }
        Ok(())
    }
}

impl SqliteDatabase {
    /// Writes the file anew, if plaintext was replaced in it since it was clean. That takes as long as copying it, needs
    /// twice as much room again on its disk, for the copy and for the log, and lets nobody else write meanwhile.
    pub(crate) async fn clean(&self) -> Result<(), StoreError> {
        // Without a turn to write first: mostly there is nothing to do.
        self.check_file()?;
        let mut reader = self.0.reader.acquire().await?;
        if noted(&mut reader).await? == 0 {
            return Ok(());
        }
        drop(reader);
        let _turn = self.turn().await?;
        let replaced = self.write_anew().await?;
        self.fold("the plaintext of secrets that are sealed cannot be removed from its log while another reads it")
            .await?;
        let mut transaction = self.begin().await?;
        // Another process may have replaced more since.
        if noted(&mut transaction).await? == replaced {
            note(&mut transaction, 0).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Returns what was noted before.
    async fn write_anew(&self) -> Result<i32, StoreError> {
        let options = (*self.0.writer.connect_options()).clone();
        // A copy of the whole file is no matter for the memory in which a writer keeps what is temporary.
        let options = options.pragma("temp_store", "FILE");
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let folder = self.0.file.path().parent().and_then(Path::to_str);
        put_temporary_files(&mut connection, folder.unwrap_or_default()).await?;
        let begun = Instant::now();
        let mut waiting = self.0.others.wait();
        let replaced = loop {
            let replaced = noted(&mut connection).await?;
            if replaced == 0 {
                // The other process has done it.
                break replaced;
            }
            match sqlx::query("VACUUM").execute(&mut connection).await {
                Ok(_) => break replaced,
                Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                    waiting.pause().await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        put_temporary_files(&mut connection, "").await?;
        connection.close().await?;
        Ok(replaced)
    }
}

/// Has SQLite put the temporary files of this process into a folder, or where it likes. Beside the file they are on the disk that is
/// meant for it, and where the process may write: in a container that may be the only such place.
async fn put_temporary_files(
    connection: &mut SqliteConnection,
    folder: &str,
) -> Result<(), sqlx::Error> {
    let folder = folder.replace('\'', "''");
    let put = format!("PRAGMA temp_store_directory = '{folder}'");
    let put = sqlx::query(AssertSqlSafe(put)).execute(connection).await;
    put.map(drop)
}

/// How often plaintext was replaced since the file was clean. SQLite has no use of its own for this number.
async fn noted(connection: &mut SqliteConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(connection)
        .await
}

async fn note(connection: &mut SqliteConnection, count: i32) -> Result<(), sqlx::Error> {
    let note = format!("PRAGMA user_version = {count}");
    let noted = sqlx::query(AssertSqlSafe(note)).execute(connection).await;
    noted.map(drop)
}
