//! Statements and their parameters, written once for both databases.

use serde::Serialize;
use sqlx::{AssertSqlSafe, Postgres, Sqlite, postgres::PgArguments, sqlite::SqliteArguments};

use crate::StoreError;

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

/// Now in unix milliseconds, by the clock that all processes on a database share: a PostgreSQL server's, or the
/// machine's.
macro_rules! database_time {
    (sqlite) => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
    (postgres) => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub(crate) use database_time;

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

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bigint,
    Text,
    Bytes,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

/// The parameters of a statement, or the values of a row.
pub(crate) type Values = Vec<Value>;

impl Value {
    /// Bytes that it takes beside the value itself.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Integer(_) => 0,
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
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

pub(super) type SqliteQuery = sqlx::query::Query<'static, Sqlite, SqliteArguments>;
pub(super) type PostgresQuery = sqlx::query::Query<'static, Postgres, PgArguments>;

/// Most statements that are sent to SQLite at once. Every number of them is a text of its own, which is prepared once and kept.
pub(super) const MOST_AT_ONCE: usize = 8;

pub(super) fn sqlite_query(sql: Sql, values: Vec<Value>) -> SqliteQuery {
    #[cfg(feature = "private-cluster")]
    super::recording::record("sqlite", sql.sqlite);
    with_values(sqlx::query(sql.sqlite), values)
}

/// A statement once with each of these parameters, one after the other.
pub(super) fn sqlite_queries(sql: Sql, each: Vec<Vec<Value>>) -> SqliteQuery {
    #[cfg(feature = "private-cluster")]
    super::recording::record("sqlite", sql.sqlite);
    let width = each.first().map_or(0, Vec::len);
    let texts = (0..each.len()).map(|nth| numbered_after(nth * width, sql.sqlite));
    let text = texts.collect::<Vec<_>>().join(";\n");
    with_values(sqlx::query(AssertSqlSafe(text)), each.into_iter().flatten())
}

/// The statement with its parameters counted on from so many.
fn numbered_after(before: usize, statement: &str) -> String {
    let mut parts = statement.split('$');
    let beginning = parts.next().unwrap_or_default().to_owned();
    parts.fold(beginning, |text, part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let number = number.parse().unwrap_or(0_usize) + before;
        format!("{text}${number}{rest}")
    })
}

/// A statement with its parameters.
pub(super) fn with_values(
    query: SqliteQuery,
    values: impl IntoIterator<Item = Value>,
) -> SqliteQuery {
    values.into_iter().fold(query, |query, value| match value {
        Value::Integer(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
        Value::Bytes(value) => query.bind(value),
    })
}

pub(super) fn postgres_query(sql: Sql, values: Vec<Value>) -> PostgresQuery {
    #[cfg(feature = "private-cluster")]
    super::recording::record("postgres", sql.postgres);
    values
        .into_iter()
        .fold(sqlx::query(sql.postgres), |query, value| match value {
            Value::Integer(value) => query.bind(value),
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
        })
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, SqliteConnection};

    use super::*;

    #[test]
    fn the_parameters_of_the_next_follow_those_of_the_one_before() {
        let statement = "UPDATE t SET a = $2, b = NULLIF($3, c) WHERE d BETWEEN $12 AND $3";
        assert_eq!(numbered_after(0, statement), statement);
        assert_eq!(
            numbered_after(12, statement),
            "UPDATE t SET a = $14, b = NULLIF($15, c) WHERE d BETWEEN $24 AND $15"
        );
    }

    #[tokio::test]
    async fn each_runs_with_its_own_and_all_changes_are_counted() {
        let opened = SqliteConnection::connect("sqlite::memory:").await;
        let mut connection = opened.expect("opens");
        let made =
            "CREATE TABLE t AS SELECT value AS n, 'none' AS mark FROM json_each('[1, 2, 3, 4, 5]')";
        sqlx::query(made)
            .execute(&mut connection)
            .await
            .expect("creates");
        let sql = Sql::from("UPDATE t SET mark = $3 WHERE n BETWEEN $1 AND $2 AND $2 > 0");
        let with = |first: i64, last: i64, mark| values![first, last, mark];
        let each = vec![with(1, 2, "a"), with(9, 9, "b"), with(4, 5, "c")];
        let done = sqlite_queries(sql, each).execute(&mut connection).await;
        assert_eq!(done.expect("runs").rows_affected(), 4);
        let marks: Vec<String> = sqlx::query_scalar("SELECT mark FROM t ORDER BY n")
            .fetch_all(&mut connection)
            .await
            .expect("reads");
        assert_eq!(marks, ["a", "a", "none", "c", "c"]);
    }
}
