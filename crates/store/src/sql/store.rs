//! [`Store`]: one database, opened, and the ways to read and write it.

use std::{path::Path, sync::Arc};

use super::{epoch::hold_epoch, staged::Staged};
use crate::{
    EncryptionKeys, StoreError,
    backend::{Connection, Durability, PostgresDatabase, SchemaVersion, SqliteDatabase},
};

/// The database. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) database: Database,
    /// The epoch without which nothing is written: of a leader's store alone.
    pub(super) epoch: Option<i64>,
    /// Open and seal what of webhooks is secret.
    pub(super) keys: EncryptionKeys,
    /// What this process has staged.
    pub(super) staged: Arc<Staged>,
}

#[derive(Clone, Debug)]
pub(super) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

impl Store {
    /// Opens the SQLite database at `path`, creates file and folder when absent, and brings the schema up
    /// to date. The file is made readable for its owner only, since it holds signing secrets.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            database: Database::Sqlite(SqliteDatabase::open(path).await?),
            epoch: None,
            keys: EncryptionKeys::default(),
            staged: Arc::default(),
        })
    }

    /// Connects to the PostgreSQL database of `url` (`postgres://user:password@host/database`) and brings
    /// its schema up to date. Any number of processes may do so at once.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Ok(Self {
            database: Database::Postgres(PostgresDatabase::open(url).await?),
            epoch: None,
            keys: EncryptionKeys::default(),
            staged: Arc::default(),
        })
    }

    /// The schema of the SQLite database at `path`, which is only read; `None` when there is no file.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub async fn schema_of_file(path: &Path) -> Result<Option<SchemaVersion>, StoreError> {
        SqliteDatabase::schema(path).await
    }

    /// The schema of the PostgreSQL database of `url`, which is only read.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub async fn schema_of_server(url: &str) -> Result<SchemaVersion, StoreError> {
        PostgresDatabase::schema(url).await
    }

    /// A health probe: the database answers, and an SQLite file is still the one that was opened. It reads one row, however much is
    /// stored or waits.
    ///
    /// # Errors
    /// [`StoreError::FileGone`], or the failure of the database.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.webhook_revision().await.map(drop)
    }

    /// Closes every connection, which folds SQLite's write-ahead log into the database file.
    pub async fn close(&self) {
        match &self.database {
            Database::Sqlite(database) => database.close().await,
            Database::Postgres(database) => database.close().await,
        }
    }

    /// Keeps others from writing to SQLite until what is returned is dropped, for tests of what must not wait for them.
    ///
    /// # Errors
    /// A failure of the database.
    #[cfg(feature = "private-cluster")]
    pub async fn hold_turn_to_write(&self) -> Result<impl Send + use<>, StoreError> {
        self.write(Durability::Relaxed).await
    }

    /// Lets an SQLite file grow no further than to so many pages, for tests of a disk that is full.
    ///
    /// # Errors
    /// A failure of the database.
    #[cfg(feature = "private-cluster")]
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        match &self.database {
            Database::Sqlite(database) => database.limit_pages(pages).await,
            Database::Postgres(_) => Ok(()),
        }
    }

    /// Lets the next waits for an SQLite file's log to be on the disk fail, for tests of a disk that fails.
    #[cfg(feature = "private-cluster")]
    pub fn fail_syncs(&self, count: u32) {
        if let Database::Sqlite(database) = &self.database {
            database.fail_syncs(count);
        }
    }

    pub(super) async fn read(&self) -> Result<Connection, StoreError> {
        match &self.database {
            Database::Sqlite(database) => database.read().await,
            Database::Postgres(database) => database.read().await,
        }
    }

    pub(super) async fn snapshot(&self) -> Result<Connection, StoreError> {
        match &self.database {
            Database::Sqlite(database) => database.snapshot().await,
            Database::Postgres(database) => database.snapshot().await,
        }
    }

    /// Begins a transaction that writes, beside what is staged.
    pub(super) async fn begin(&self, durability: Durability) -> Result<Connection, StoreError> {
        let mut write = match &self.database {
            Database::Sqlite(database) => database.write(durability).await?,
            Database::Postgres(database) => database.write(durability).await?,
        };
        if let Some(epoch) = self.epoch {
            hold_epoch(&mut write, epoch).await?;
        }
        Ok(write)
    }
}
