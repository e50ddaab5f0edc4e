//! One way to speak to two databases.
//!
//! The two understand the same SQL nearly everywhere, so a statement is written once, with `$1`, `$2`, …
//! for its parameters, and only where they differ twice ([`Sql`]). Many rows travel as one JSON
//! parameter ([`over_rows`]), or where that is too slow as many parameters ([`Bound`]): one statement for a
//! batch costs little more than one for a row. Every
//! number is a 64-bit integer and every flag 0 or 1, so that there is one way to read a column.

mod bound;
mod file;
mod postgres;
#[cfg(feature = "private-cluster")]
pub mod private_cluster;
mod sqlite;

use std::io;

use serde::Serialize;
use sqlx::{
    Postgres, Row as _, Sqlite, Transaction,
    pool::PoolConnection,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::{sync::OwnedMutexGuard, task::JoinHandle};

pub(crate) use self::{
    bound::{Bound, Kind, bound_rows},
    postgres::{PostgresDatabase, PostgresLead},
    sqlite::{SqliteDatabase, SqliteLead},
};
use crate::{StoreError, Timestamp};

/// What a write may lose when the machine (not the process) dies right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Nothing.
    Durable,
    /// Itself, when losing it only repeats work.
    Relaxed,
}

/// The text of a statement, for either database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }
}

/// A statement about the rows of a table `v` that arrives as the first parameter: a JSON array of objects
/// with these columns.
macro_rules! over_rows {
    ([$($column:ident $kind:ident),+ $(,)?], $rest:literal) => {
        $crate::backend::Sql {
            sqlite: concat!(
                "WITH v AS (SELECT key AS nth",
                $(", value ->> '", stringify!($column), "' AS ", stringify!($column),)+
                " FROM json_each($1)) ",
                $rest
            ),
            postgres: concat!(
                "WITH v AS (SELECT * FROM json_to_recordset(CAST($1 AS json)) AS t (nth bigint",
                $(", ", stringify!($column), " ", stringify!($kind),)+
                ")) ",
                $rest
            ),
        }
    };
}
pub(crate) use over_rows;

/// The JSON parameter of [`over_rows`].
pub(crate) fn json_rows<T: Serialize>(rows: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(rows).map_err(|error| StoreError::Database(error.into()))
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(Some(value.into()))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Integer(Some(value.into()))
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Integer(Some(value.unix_millis()))
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(value: Option<Timestamp>) -> Self {
        Self::Integer(value.map(Timestamp::unix_millis))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

/// The parameters of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::backend::Value::from($value)),*] };
}
pub(crate) use values;

type SqliteQuery = sqlx::query::Query<'static, Sqlite, SqliteArguments>;
type PostgresQuery = sqlx::query::Query<'static, Postgres, PgArguments>;

fn sqlite_query(sql: Sql, values: Vec<Value>) -> SqliteQuery {
    values
        .into_iter()
        .fold(sqlx::query(sql.sqlite), |query, value| match value {
            Value::Integer(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
        })
}

fn postgres_query(sql: Sql, values: Vec<Value>) -> PostgresQuery {
    values
        .into_iter()
        .fold(sqlx::query(sql.postgres), |query, value| match value {
            Value::Integer(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
        })
}

/// One row of an answer.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! column {
    ($row:expr, $name:expr) => {
        Ok(match $row {
            Row::Sqlite(row) => row.try_get($name)?,
            Row::Postgres(row) => row.try_get($name)?,
        })
    };
}

impl Row {
    pub(crate) fn integer(&self, name: &str) -> Result<i64, StoreError> {
        column!(self, name)
    }

    pub(crate) fn optional_integer(&self, name: &str) -> Result<Option<i64>, StoreError> {
        column!(self, name)
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, StoreError> {
        column!(self, name)
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, StoreError> {
        column!(self, name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        column!(self, name)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.integer(name)? != 0)
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Result<u64, StoreError> {
        unsigned(self.integer(name)?, name)
    }

    pub(crate) fn count(&self, name: &'static str) -> Result<u32, StoreError> {
        u32::try_from(self.integer(name)?).map_err(|_| StoreError::Corrupt { what: name })
    }

    pub(crate) fn time(&self, name: &str) -> Result<Timestamp, StoreError> {
        self.integer(name).map(Timestamp::from_unix_millis)
    }

    pub(crate) fn optional_time(&self, name: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self
            .optional_integer(name)?
            .map(Timestamp::from_unix_millis))
    }
}

/// Somebody's turn with the database. One that writes is a transaction; dropping it undoes it.
pub(crate) enum Connection {
    SqliteRead(PoolConnection<Sqlite>),
    SqliteTransaction {
        transaction: Transaction<'static, Sqlite>,
        database: SqliteDatabase,
        durability: Durability,
        // Held until the end, and dropped after the transaction. None for a reading one.
        turn: Option<OwnedMutexGuard<sqlite::Turn>>,
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
            Self::PostgresRead(connection) => postgres_query(sql, values)
                .execute(&mut **connection)
                .await?
                .rows_affected(),
            Self::PostgresTransaction(transaction) => postgres_query(sql, values)
                .execute(&mut **transaction)
                .await?
                .rows_affected(),
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
            Self::PostgresRead(connection) => postgres(
                postgres_query(sql, values)
                    .fetch_all(&mut **connection)
                    .await?,
            ),
            Self::PostgresTransaction(transaction) => postgres(
                postgres_query(sql, values)
                    .fetch_all(&mut **transaction)
                    .await?,
            ),
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

    /// Locks rows for the rest of the transaction, by a PostgreSQL statement that names them. In SQLite
    /// whoever writes is alone. Returns the rows that were locked; `None` where no locking was needed.
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
        self.write_out().await?.on_disk().await
    }

    /// As [`Connection::commit`], and returns only when everything that it could read is on the disk: in SQLite a write
    /// is seen before, in PostgreSQL it is not.
    pub(crate) async fn commit_with_what_was_read(self) -> Result<(), StoreError> {
        let database = match &self {
            Self::SqliteTransaction { database, .. } => Some(database.clone()),
            _ => None,
        };
        self.commit().await?;
        Written(database.map(|database| database.sync()))
            .on_disk()
            .await
    }

    /// As [`Connection::commit`], but what is written may not survive the machine before it is on the disk.
    pub(crate) async fn write_out(self) -> Result<Written, StoreError> {
        match self {
            Self::SqliteTransaction {
                transaction,
                database,
                durability,
                turn,
            } => {
                database.check_file()?;
                transaction.commit().await?;
                drop(turn);
                let waits = durability == Durability::Durable;
                return Ok(Written(waits.then(|| database.sync())));
            }
            Self::PostgresTransaction(transaction) => transaction.commit().await?,
            Self::SqliteRead(_) | Self::PostgresRead(_) => {}
        }
        Ok(Written(None))
    }
}

/// Something that others can read, and that the process can no longer lose; the machine can.
#[derive(Debug)]
pub(crate) struct Written(Option<JoinHandle<io::Result<()>>>);

impl Written {
    /// Waits until it is on the disk, as far as it must be.
    pub(crate) async fn on_disk(self) -> Result<(), StoreError> {
        if let Some(syncing) = self.0 {
            let synced = syncing.await.map_err(io::Error::from).flatten();
            synced.map_err(|error| StoreError::Database(error.into()))?;
        }
        Ok(())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// For the database, whose integers are signed.
pub(crate) fn signed(value: u64, what: &'static str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange { what })
}

/// From the database, where a CHECK keeps the value from being negative.
pub(crate) fn unsigned(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::Corrupt { what })
}
