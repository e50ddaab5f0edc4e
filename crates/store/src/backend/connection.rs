//! Connection to one of the databases: runs statements, and makes what they wrote permanent.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
};

use sqlx::{
    AssertSqlSafe, Postgres, Sqlite, Transaction, migrate::MigrateError, pool::PoolConnection,
    postgres::PgRow, sqlite::SqliteRow,
};
use tokio::{sync::OwnedMutexGuard, task::JoinHandle};

use super::{
    answer::answered,
    file::DatabaseFile,
    folding::Folding,
    row::Row,
    statement::{Sql, Value, postgres_query, sqlite_query},
};
use crate::StoreError;

/// What a write may lose when the machine (not the process) dies right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Nothing.
    Durable,
    /// Itself, when losing it only repeats work.
    Relaxed,
}

/// The writer of this process holds this.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Whether the last transaction was not committed.
    pub(super) undone: bool,
    /// Is told of each that was.
    pub(super) folding: Arc<Folding>,
}

/// A turn with the database. One that writes is a transaction; dropping it undoes it.
pub(crate) enum Connection {
    SqliteRead(PoolConnection<Sqlite>),
    SqliteTransaction {
        transaction: Transaction<'static, Sqlite>,
        file: Arc<DatabaseFile>,
        durability: Durability,
        // Held until the end, and dropped after the transaction. None for a reading one.
        turn: Option<OwnedMutexGuard<Turn>>,
    },
    PostgresRead(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

impl Connection {
    /// Runs a statement and counts the rows that it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self {
            Self::SqliteRead(connection) => sqlite_query(sql, values)
                .execute(&mut **connection)
                .await?
                .rows_affected(),
            Self::SqliteTransaction { transaction, .. } => sqlite_query(sql, values)
                .execute(&mut **transaction)
                .await?
                .rows_affected(),
            Self::PostgresRead(connection) => {
                answered(postgres_query(sql, values).execute(&mut **connection))
                    .await?
                    .rows_affected()
            }
            Self::PostgresTransaction(transaction) => {
                answered(postgres_query(sql, values).execute(&mut **transaction))
                    .await?
                    .rows_affected()
            }
        })
    }

    /// Runs a statement that was put together of names of the schema, and counts the rows that it changed.
    pub(super) async fn execute_text(&mut self, text: String) -> Result<u64, StoreError> {
        let text = AssertSqlSafe(text);
        Ok(match self {
            Self::SqliteRead(connection) => sqlx::query(text)
                .execute(&mut **connection)
                .await?
                .rows_affected(),
            Self::SqliteTransaction { transaction, .. } => sqlx::query(text)
                .execute(&mut **transaction)
                .await?
                .rows_affected(),
            Self::PostgresRead(connection) => {
                answered(sqlx::query(text).execute(&mut **connection))
                    .await?
                    .rows_affected()
            }
            Self::PostgresTransaction(transaction) => {
                answered(sqlx::query(text).execute(&mut **transaction))
                    .await?
                    .rows_affected()
            }
        })
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn rows(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        let sqlite = |rows: Vec<SqliteRow>| rows.into_iter().map(Row::Sqlite).collect();
        let postgres = |rows: Vec<PgRow>| rows.into_iter().map(Row::Postgres).collect();
        Ok(match self {
            Self::SqliteRead(connection) => sqlite(
                sqlite_query(sql, values)
                    .fetch_all(&mut **connection)
                    .await?,
            ),
            Self::SqliteTransaction { transaction, .. } => sqlite(
                sqlite_query(sql, values)
                    .fetch_all(&mut **transaction)
                    .await?,
            ),
            Self::PostgresRead(connection) => {
                postgres(answered(postgres_query(sql, values).fetch_all(&mut **connection)).await?)
            }
            Self::PostgresTransaction(transaction) => {
                postgres(answered(postgres_query(sql, values).fetch_all(&mut **transaction)).await?)
            }
        })
    }

    /// Runs a statement and returns its first row, if there is one.
    pub(crate) async fn row(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement that always answers one row.
    pub(crate) async fn one_row(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Row, StoreError> {
        self.row(sql, values).await?.ok_or(StoreError::Corrupt {
            what: "empty answer",
        })
    }

    /// Locks rows for the rest of the transaction, by a PostgreSQL statement that names them. SQLite has
    /// one writer. Returns the rows that were locked; `None` where no locking was needed.
    pub(crate) async fn lock(
        &mut self,
        postgres: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<Vec<Row>>, StoreError> {
        match self {
            Self::PostgresTransaction(_) | Self::PostgresRead(_) => {
                Ok(Some(self.rows(postgres, values).await?))
            }
            Self::SqliteTransaction { .. } | Self::SqliteRead(_) => Ok(None),
        }
    }

    /// Makes a transaction permanent; SQLite's only if the file is still where it was.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.commit_pending().await?.durable().await
    }

    /// As [`Connection::commit`]. What is returned waits until everything that it could read is on the disk: in SQLite a write
    /// is seen before, in PostgreSQL it is not.
    pub(crate) async fn commit_with_reads_pending(self) -> Result<PendingWrite, StoreError> {
        let file = match &self {
            Self::SqliteTransaction { file, .. } => Some(Arc::clone(file)),
            _ => None,
        };
        self.commit().await?;
        Ok(PendingWrite(file.map(|file| file.sync())))
    }

    /// As [`Connection::commit`], but what is written may not survive the machine before it is on the disk.
    pub(crate) async fn commit_pending(self) -> Result<PendingWrite, StoreError> {
        match self {
            Self::SqliteTransaction {
                transaction,
                file,
                durability,
                turn,
            } => {
                file.check()?;
                transaction.commit().await?;
                if let Some(mut turn) = turn {
                    turn.undone = false;
                    turn.folding.committed();
                }
                let waits = durability == Durability::Durable;
                return Ok(PendingWrite(waits.then(|| file.sync())));
            }
            Self::PostgresTransaction(transaction) => answered(transaction.commit()).await?,
            Self::SqliteRead(_) | Self::PostgresRead(_) => {}
        }
        Ok(PendingWrite(None))
    }
}

/// Something that others can read, and that the process can no longer lose; the machine can.
#[derive(Debug)]
pub(crate) struct PendingWrite(Option<JoinHandle<io::Result<()>>>);

impl PendingWrite {
    /// A sync that has begun.
    pub(super) const fn begun(sync: JoinHandle<io::Result<()>>) -> Self {
        Self(Some(sync))
    }

    /// Waits until it is on the disk, as far as it must be.
    pub(crate) async fn durable(self) -> Result<(), StoreError> {
        if let Some(syncing) = self.0 {
            let synced = syncing.await.map_err(io::Error::from).flatten();
            synced.map_err(|error| match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(error.into()),
                _ => StoreError::Database(error.into()),
            })?;
        }
        Ok(())
    }
}

/// Why the database at this place cannot be opened.
pub(super) fn open_error(place: String, error: sqlx::Error) -> StoreError {
    if let sqlx::Error::Migrate(migration) = &error
        && let MigrateError::VersionMissing(version) = **migration
    {
        return StoreError::NewerSchema { place, version };
    }
    StoreError::Open {
        place,
        source: error.into(),
    }
}

/// What the databases answer when a disk has no room: PostgreSQL's state, and SQLite's code.
const FULL: [&str; 2] = ["53100", "13"];

/// What PostgreSQL answers when it undoes a transaction for the sake of another: a serialization failure, a deadlock.
const CONFLICTS: [&str; 2] = ["40001", "40P01"];

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        match code.as_deref() {
            Some(code) if CONFLICTS.contains(&code) => Self::Conflict(error.into()),
            Some(code) if FULL.contains(&code) => Self::Full(error.into()),
            _ => Self::Database(error.into()),
        }
    }
}
