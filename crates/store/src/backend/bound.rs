//! Many rows as parameters of one statement, each value bound as it is.
//!
//! For the statements by which messages are inserted, leased and recorded: as JSON ([`super::over_rows`]) their texts
//! would be escaped, parsed and copied several times, which is dearer than what the statements do.

use sqlx::{AssertSqlSafe, Postgres, Sqlite, query::Query, sqlite::SqliteArguments};

use super::{
    answer::answered,
    connection::{Connection, Raw},
    row::Row,
    statement::{Kind, PostgresQuery, SqliteQuery, Value, with_values},
};
use crate::StoreError;

/// Most rows of one statement in SQLite, a power of two: it allows 32,766 parameters, of which the widest of our rows
/// take fifteen.
const MAX_ROWS: usize = 256;

/// A statement about the rows of a table `v`. In SQLite there may be more rows than were given, with nothing but
/// nulls, so `rest` must not take those whose first column is null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) columns: &'a [(&'a str, Kind)],
    pub(crate) rest: &'a str,
}

/// A [`Bound`].
macro_rules! bound_rows {
    ([$($column:ident $kind:ident),+ $(,)?], $rest:literal) => {
        $crate::backend::Bound {
            columns: &[$((stringify!($column), $crate::backend::bound_rows!(@ $kind))),+],
            rest: $rest,
        }
    };
    (@ bigint) => { $crate::backend::Kind::Bigint };
    (@ text) => { $crate::backend::Kind::Text };
}
pub(crate) use bound_rows;

impl Connection {
    /// Runs a statement over rows, each with a value for every column, and returns its rows.
    pub(crate) async fn rows_over(
        &mut self,
        bound: Bound<'_>,
        mut given: Vec<Vec<Value>>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::new();
        while !given.is_empty() {
            let rest = self.split(&mut given);
            found.extend(self.run_over(bound, given).await?);
            given = rest;
        }
        Ok(found)
    }

    /// Runs a statement over rows and counts the rows that it changed.
    pub(crate) async fn execute_over(
        &mut self,
        bound: Bound<'_>,
        mut given: Vec<Vec<Value>>,
    ) -> Result<u64, StoreError> {
        let mut changed = 0_u64;
        while !given.is_empty() {
            let rest = self.split(&mut given);
            changed = changed.saturating_add(match self.raw()? {
                Raw::Sqlite(connection) => {
                    let done = bound.sqlite(given).execute(connection).await?;
                    done.rows_affected()
                }
                Raw::Postgres(connection) => {
                    let done = bound.postgres(given).execute(connection);
                    answered(done).await?.rows_affected()
                }
            });
            given = rest;
        }
        Ok(changed)
    }

    /// Leaves as many rows as one statement takes, and returns the others.
    fn split(&self, given: &mut Vec<Vec<Value>>) -> Vec<Vec<Value>> {
        if self.is_sqlite() {
            given.split_off(given.len().min(MAX_ROWS))
        } else {
            Vec::new()
        }
    }

    async fn run_over(
        &mut self,
        bound: Bound<'_>,
        given: Vec<Vec<Value>>,
    ) -> Result<Vec<Row>, StoreError> {
        Ok(match self.raw()? {
            Raw::Sqlite(connection) => {
                let found = bound.sqlite(given).fetch_all(connection).await?;
                found.into_iter().map(Row::Sqlite).collect()
            }
            Raw::Postgres(connection) => {
                let found = bound.postgres(given).fetch_all(connection);
                let found = answered(found).await?;
                found.into_iter().map(Row::Postgres).collect()
            }
        })
    }
}

impl Bound<'_> {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Every number of rows would be a statement of its own to be prepared. So there are as many as the next power of
    /// two, and those that were not given are null. Parameters have no names or numbers: SQLite looks those up one after
    /// the other.
    fn sqlite(&self, given: Vec<Vec<Value>>) -> SqliteQuery {
        let width = self.columns.len();
        let rows = given.len().next_power_of_two();
        let row = format!("({})", vec!["?"; width].join(", "));
        let text = format!(
            "WITH v ({}) AS (VALUES {}) {}",
            self.names(),
            vec![row.as_str(); rows].join(", "),
            self.rest
        );
        #[cfg(feature = "private-cluster")]
        if rows == 1 {
            super::recording::record("sqlite", &text);
        }
        let query: Query<'static, Sqlite, SqliteArguments> = sqlx::query(AssertSqlSafe(text));
        let missing = (rows - given.len()) * width;
        let values = given.into_iter().flatten();
        let padded = values.chain(std::iter::repeat_n(Value::Integer(None), missing));
        with_values(query, padded)
    }

    /// A column is one array.
    fn postgres(&self, given: Vec<Vec<Value>>) -> PostgresQuery {
        let arrays: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (_, kind))| match kind {
                Kind::Bigint => format!("CAST(${} AS bigint[])", at + 1),
                Kind::Text => format!("CAST(${} AS text[])", at + 1),
                Kind::Bytes => format!("CAST(${} AS bytea[])", at + 1),
            })
            .collect();
        let text = format!(
            "WITH v AS (SELECT * FROM unnest({}) AS t ({})) {}",
            arrays.join(", "),
            self.names(),
            self.rest
        );
        #[cfg(feature = "private-cluster")]
        super::recording::record("postgres", &text);
        let mut rows: Vec<_> = given.into_iter().map(Vec::into_iter).collect();
        let mut query: PostgresQuery = sqlx::query::<Postgres>(AssertSqlSafe(text));
        for (_, kind) in self.columns {
            let column = rows.iter_mut().map(|row| row.next());
            query = match kind {
                Kind::Bigint => query.bind(column.map(integer).collect::<Vec<_>>()),
                Kind::Text => query.bind(column.map(text_of).collect::<Vec<_>>()),
                Kind::Bytes => query.bind(column.map(bytes_of).collect::<Vec<_>>()),
            };
        }
        query
    }
}

fn integer(value: Option<Value>) -> Option<i64> {
    match value {
        Some(Value::Integer(value)) => value,
        _ => None,
    }
}

fn text_of(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::Text(value)) => value,
        _ => None,
    }
}

fn bytes_of(value: Option<Value>) -> Option<Vec<u8>> {
    match value {
        Some(Value::Bytes(value)) => Some(value),
        _ => None,
    }
}
