//! Connection to one of the databases: runs statements, and makes what they wrote permanent.

use std::{io, mem, sync::Arc};

use sqlx::{
    AssertSqlSafe, PgConnection, Postgres, Sqlite, SqliteConnection, Transaction,
    migrate::MigrateError, pool::PoolConnection,
};
use tokio::task::JoinHandle;

use super::{
    answer::answered,
    file::DatabaseFile,
    room::lacks_room,
    row::Row,
    statement::{MOST_AT_ONCE, Sql, Value, postgres_query, sqlite_queries, sqlite_query},
    turn::WriteTransaction,
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

/// A turn with the database. One that writes is a transaction; dropping it undoes it.
pub(crate) enum Connection {
    SqliteRead(PoolConnection<Sqlite>),
    /// Reads one state of everything.
    SqliteSnapshot(Transaction<'static, Sqlite>),
    SqliteWrite {
        transaction: WriteTransaction,
        file: Arc<DatabaseFile>,
        durability: Durability,
    },
    PostgresRead(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

/// A connection as its library has it.
pub(super) enum Raw<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

impl Connection {
    pub(super) fn raw(&mut self) -> Result<Raw<'_>, sqlx::Error> {
        Ok(match self {
            Self::SqliteRead(connection) => Raw::Sqlite(connection),
            Self::SqliteSnapshot(transaction) => Raw::Sqlite(transaction),
            Self::SqliteWrite { transaction, .. } => Raw::Sqlite(transaction.connection()?),
            Self::PostgresRead(connection) => Raw::Postgres(connection),
            Self::PostgresTransaction(transaction) => Raw::Postgres(transaction),
        })
    }

    pub(crate) const fn is_sqlite(&self) -> bool {
        match self {
            Self::SqliteRead(_) | Self::SqliteSnapshot(_) | Self::SqliteWrite { .. } => true,
            Self::PostgresRead(_) | Self::PostgresTransaction(_) => false,
        }
    }

    /// The file that it writes.
    fn written(&self) -> Option<Arc<DatabaseFile>> {
        match self {
            Self::SqliteWrite { file, .. } => Some(Arc::clone(file)),
            _ => None,
        }
    }

    /// Runs a statement and counts the rows that it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self.raw()? {
            Raw::Sqlite(connection) => {
                let done = sqlite_query(sql, values).execute(connection).await;
                known(self.written(), done).await?.rows_affected()
            }
            Raw::Postgres(connection) => {
                let done = postgres_query(sql, values).execute(connection);
                answered(done).await?.rows_affected()
            }
        })
    }

    /// Runs a statement with each of these parameters, and counts the rows that all of them changed. SQLite's thread is given
    /// several at once: of a short statement the way there and back takes a good part of the time.
    pub(crate) async fn execute_each(
        &mut self,
        sql: impl Into<Sql>,
        mut each: Vec<Vec<Value>>,
    ) -> Result<u64, StoreError> {
        let sql = sql.into();
        let mut changed = 0_u64;
        let written = self.written();
        match self.raw()? {
            Raw::Sqlite(connection) => {
                while !each.is_empty() {
                    let rest = each.split_off(each.len().min(MOST_AT_ONCE));
                    let queries = sqlite_queries(sql, mem::replace(&mut each, rest));
                    let done = queries.execute(&mut *connection).await;
                    let done = known(written.clone(), done).await?;
                    changed = changed.saturating_add(done.rows_affected());
                }
            }
            Raw::Postgres(connection) => {
                for values in each {
                    let done = postgres_query(sql, values).execute(&mut *connection);
                    changed = changed.saturating_add(answered(done).await?.rows_affected());
                }
            }
        }
        Ok(changed)
    }

    /// Runs a statement that was put together of names of the schema, and counts the rows that it changed.
    pub(super) async fn execute_text(&mut self, text: String) -> Result<u64, StoreError> {
        let text = AssertSqlSafe(text);
        Ok(match self.raw()? {
            Raw::Sqlite(connection) => {
                let done = sqlx::query(text).execute(connection).await;
                known(self.written(), done).await?.rows_affected()
            }
            Raw::Postgres(connection) => {
                let done = sqlx::query(text).execute(connection);
                answered(done).await?.rows_affected()
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
        Ok(match self.raw()? {
            Raw::Sqlite(connection) => {
                let found = sqlite_query(sql, values).fetch_all(connection).await;
                let found = known(self.written(), found).await?;
                found.into_iter().map(Row::Sqlite).collect()
            }
            Raw::Postgres(connection) => {
                let found = postgres_query(sql, values).fetch_all(connection);
                let found = answered(found).await?;
                found.into_iter().map(Row::Postgres).collect()
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
        if self.is_sqlite() {
            return Ok(None);
        }
        Ok(Some(self.rows(postgres, values).await?))
    }

    /// Makes a transaction permanent; SQLite's only if the file is still where it was.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.commit_pending().await?.durable().await
    }

    /// As [`Connection::commit`]. What is returned waits until everything that it could read is on the disk: in SQLite a write
    /// is seen before, in PostgreSQL it is not.
    pub(crate) async fn commit_with_reads_pending(self) -> Result<PendingWrite, StoreError> {
        let file = self.written();
        self.commit().await?;
        Ok(PendingWrite(file.map(|file| file.sync())))
    }

    /// As [`Connection::commit`], but what is written may not survive the machine before it is on the disk.
    pub(crate) async fn commit_pending(self) -> Result<PendingWrite, StoreError> {
        match self {
            Self::SqliteWrite {
                transaction,
                file,
                durability,
            } => {
                file.check()?;
                file.known(transaction.commit().await).await?;
                let waits = durability == Durability::Durable;
                return Ok(PendingWrite(waits.then(|| file.sync())));
            }
            Self::PostgresTransaction(transaction) => answered(transaction.commit()).await?,
            Self::SqliteSnapshot(transaction) => transaction.commit().await?,
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
            synced.map_err(|error| {
                if lacks_room(&error) {
                    StoreError::Full(error.into())
                } else {
                    StoreError::Database(error.into())
                }
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

/// The answer of SQLite to what was to write to this file, if it was.
async fn known<T>(
    written: Option<Arc<DatabaseFile>>,
    done: Result<T, sqlx::Error>,
) -> Result<T, StoreError> {
    match written {
        Some(file) => file.known(done).await,
        None => Ok(done?),
    }
}

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
