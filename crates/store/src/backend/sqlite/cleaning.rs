//! Cleaning: rids an SQLite file of the plaintext that was replaced in it.
//!
//! SQLite leaves the bytes of what is replaced or deleted where they were: in the free space of pages, in free pages, in pages
//! that other tables have got since, and in the log. Any earlier state of a row may have left some, so to overwrite what is freed
//! from now on would not do. The whole file is written anew from what is in it, and the log emptied.
//!
//! That it is to be done is noted in the header of the file, by the transactions that replace plaintext, so that a process that
//! ends before it is done leaves it to the next one. That it was done is noted there, too: builds that noted neither sealed files
//! and left the plaintext in them, so one that says nothing is cleaned as well.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{SqliteDatabase, is_busy};
use crate::{
    StoreError,
    backend::{
        connection::{Connection, Raw},
        other_writers::Waiting,
    },
};

/// How long it waits for the writes of other processes, which may be cleaning the same file.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the header says of a file that nothing was noted in.
const UNKNOWN: i32 = 0;

/// What it says of one without plaintext: no number that counting reaches, nor one from which a build that knows this one not
/// counts to [`UNKNOWN`].
const CLEAN: i32 = i32::MIN;

impl Connection {
    /// Notes that this transaction replaces plaintext, of which SQLite leaves something in the file until it is cleaned.
    /// PostgreSQL cleans its files by itself, in its own time.
    pub(crate) async fn note_replaced_plaintext(&mut self) -> Result<(), StoreError> {
        if let Raw::Sqlite(connection) = self.raw()? {
            let before = noted(connection).await?.max(UNKNOWN);
            note(connection, before.saturating_add(1)).await?;
        }
        Ok(())
    }
}

impl SqliteDatabase {
    /// Writes the file anew, unless it is known to be clean. That takes as long as copying it, needs twice as much room again on
    /// its disk, for the copy and for the log, and lets nobody else write meanwhile. A file that may be clean, because nothing is
    /// noted in it, stops nobody: where it cannot be written anew, for want of room or because another reads it for long, the next
    /// start tries again.
    pub(crate) async fn clean(&self) -> Result<(), StoreError> {
        // Without a turn to write first: mostly there is nothing to do.
        self.check_file()?;
        let mut reader = self.0.reader.acquire().await?;
        let before = noted(&mut reader).await?;
        if before == CLEAN {
            return Ok(());
        }
        drop(reader);
        let file = self.0.file.path().display();
        match self.clean_now().await {
            Err(error) if before == UNKNOWN => {
                tracing::warn!(%file, %error, "secrets that were stored before there was an encryption key may be left in unused parts \
                    of the file; the next start tries again to write it anew, for which its disk needs room for twice its size");
                Ok(())
            }
            other => other,
        }
    }

    /// Notes that plaintext may be stored from now on: there is no key under which to seal.
    pub(crate) async fn expect_plaintext(&self) -> Result<(), StoreError> {
        let mut reader = self.0.reader.acquire().await?;
        if noted(&mut reader).await? != CLEAN {
            return Ok(());
        }
        drop(reader);
        let mut transaction = self.begin(self.turn().await?).await?;
        note(transaction.connection()?, UNKNOWN).await?;
        Ok(transaction.commit().await?)
    }

    async fn clean_now(&self) -> Result<(), StoreError> {
        let mut turn = self.turn().await?;
        let replaced = self.write_anew(turn.options()).await?;
        self.fold(&mut turn, "the plaintext of secrets that are sealed cannot be removed from its log while another reads it")
            .await?;
        let mut transaction = self.begin(turn).await?;
        // Another process may have replaced more since.
        if noted(transaction.connection()?).await? == replaced {
            note(transaction.connection()?, CLEAN).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Returns what was noted before.
    async fn write_anew(&self, options: &SqliteConnectOptions) -> Result<i32, StoreError> {
        // A copy of the whole file is no matter for the memory in which a writer keeps what is temporary.
        let options = options.clone().pragma("temp_store", "FILE");
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let folder = self.0.file.path().parent().and_then(Path::to_str);
        let waiting = self.0.others.wait();
        let written = written_anew(&mut connection, folder.unwrap_or_default(), waiting).await;
        connection.close().await?;
        Ok(written?)
    }
}

/// Writes the file of a connection anew, by way of a copy in this folder. Returns what was noted before.
async fn written_anew(
    connection: &mut SqliteConnection,
    folder: &str,
    waiting: Waiting<'_>,
) -> Result<i32, sqlx::Error> {
    put_temporary_files(connection, folder).await?;
    let written = vacuum(connection, waiting).await;
    // The folder is one of the whole process, and would stay.
    put_temporary_files(connection, "").await?;
    written
}

async fn vacuum(
    connection: &mut SqliteConnection,
    mut waiting: Waiting<'_>,
) -> Result<i32, sqlx::Error> {
    let begun = Instant::now();
    loop {
        let replaced = noted(connection).await?;
        if replaced == CLEAN {
            // The other process has done it.
            return Ok(replaced);
        }
        match sqlx::query("VACUUM").execute(&mut *connection).await {
            Ok(_) => return Ok(replaced),
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => waiting.pause().await,
            Err(error) => return Err(error),
        }
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

/// How often plaintext was replaced since the file was clean, or [`CLEAN`], or [`UNKNOWN`]. SQLite has no use of its own for this
/// number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::other_writers::OtherWriters;

    #[tokio::test]
    async fn a_file_that_is_not_written_anew_leaves_the_temporary_files_where_they_were() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true);
        let opened = SqliteConnection::connect_with(&options).await;
        let mut connection = opened.expect("opens");
        let others = OtherWriters::of(&path).expect("opens");
        let begun = sqlx::query("BEGIN").execute(&mut connection).await;
        begun.expect("begins");
        let folder = folder.path().to_str().expect("text");
        let written = written_anew(&mut connection, folder, others.wait()).await;
        written.expect_err("not within a transaction");
        let kept: Option<String> = sqlx::query_scalar("PRAGMA temp_store_directory")
            .fetch_optional(&mut connection)
            .await
            .expect("reads");
        assert_eq!(kept.unwrap_or_default(), "");
    }
}
