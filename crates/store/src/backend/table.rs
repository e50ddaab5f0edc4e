//! [`Table`]: a table of the schema as SQLite describes it, copied row by row from one database to another.

use futures::{Stream, TryStreamExt};
use sqlx::AssertSqlSafe;

use super::{
    answer::answered,
    bound::Bound,
    connection::{Connection, Raw},
    row::Row,
    statement::{Kind, Value, values},
};
use crate::StoreError;

/// Most rows, and bytes of texts in them, that are held while a table is copied.
const ROWS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The columns of all tables. A table is made after those to which it refers, so this is an order in which they can be
/// filled.
const COLUMNS: &str = "
    SELECT t.name AS of_table, c.name AS of_column, c.type AS kind
    FROM sqlite_master t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.name <> '_sqlx_migrations'
    ORDER BY t.rowid, c.cid";

/// The columns of PostgreSQL that number rows by themselves.
const NUMBERED: &str = "
    SELECT table_name::text AS of_table, column_name::text AS of_column FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_identity = 'YES'";

/// A table, with its columns. The names are quoted.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    columns: Vec<(String, Kind)>,
}

impl Table {
    /// All tables of an SQLite database, each after those to which it refers.
    pub(crate) async fn all(sqlite: &mut Connection) -> Result<Vec<Self>, StoreError> {
        let mut tables: Vec<Self> = Vec::new();
        for row in sqlite.rows(COLUMNS, values![]).await? {
            let name = quoted(&row.text("of_table")?);
            let column = quoted(&row.text("of_column")?);
            let kind = match row.text("kind")?.as_str() {
                "INTEGER" => Kind::Bigint,
                "TEXT" => Kind::Text,
                "BLOB" => Kind::Bytes,
                _ => return Err(StoreError::Corrupt { what: "schema" }),
            };
            match tables.last_mut().filter(|table| table.name == name) {
                Some(table) => table.columns.push((column, kind)),
                None => tables.push(Self {
                    name,
                    columns: vec![(column, kind)],
                }),
            }
        }
        Ok(tables)
    }

    /// Removes every row.
    pub(crate) async fn clear(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let text = format!("DELETE FROM {}", self.name);
        connection.execute_text(text).await.map(drop)
    }

    /// Copies every row, and holds few of them in memory.
    pub(crate) async fn copy(
        &self,
        from: &mut Connection,
        to: &mut Connection,
    ) -> Result<(), StoreError> {
        let query = AssertSqlSafe(self.selection());
        match from.raw()? {
            Raw::Sqlite(from) => {
                let rows = sqlx::query(query).fetch(from);
                self.pour(rows.map_ok(Row::Sqlite), to).await
            }
            Raw::Postgres(from) => {
                let rows = sqlx::query(query).fetch(from);
                self.pour(rows.map_ok(Row::Postgres), to).await
            }
        }
    }

    async fn pour(
        &self,
        mut rows: impl Stream<Item = Result<Row, sqlx::Error>> + Send + Unpin,
        to: &mut Connection,
    ) -> Result<(), StoreError> {
        let (mut held, mut bytes) = (Vec::new(), 0_usize);
        while let Some(row) = answered(rows.try_next()).await? {
            let row = self.values(&row)?;
            bytes = row
                .iter()
                .map(Value::len)
                .fold(bytes, usize::saturating_add);
            held.push(row);
            if held.len() >= ROWS_AT_ONCE || bytes >= BYTES_AT_ONCE {
                self.insert(std::mem::take(&mut held), to).await?;
                bytes = 0;
            }
        }
        self.insert(held, to).await
    }

    fn values(&self, row: &Row) -> Result<Vec<Value>, StoreError> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(at, (_, kind))| row.value(at, *kind))
            .collect()
    }

    async fn insert(&self, rows: Vec<Vec<Value>>, to: &mut Connection) -> Result<(), StoreError> {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|(name, kind)| (name.as_str(), *kind))
            .collect();
        let names = self.names();
        let first = columns.first().map_or("", |(name, _)| name);
        let rest = format!(
            "INSERT INTO {} ({names}) SELECT {names} FROM v WHERE {first} IS NOT NULL",
            self.name
        );
        let bound = Bound {
            columns: &columns,
            rest: &rest,
        };
        to.execute_over(bound, rows).await.map(drop)
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// Some integers have 32 bits in PostgreSQL.
    fn selection(&self) -> String {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|(name, kind)| match kind {
                Kind::Bigint => format!("CAST({name} AS BIGINT)"),
                Kind::Text | Kind::Bytes => name.clone(),
            })
            .collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.name)
    }
}

/// Lets PostgreSQL number rows after those that were copied. SQLite does so by itself.
pub(crate) async fn number_on(connection: &mut Connection) -> Result<(), StoreError> {
    if connection.is_sqlite() {
        return Ok(());
    }
    for row in connection.rows(NUMBERED, values![]).await? {
        let (table, column) = (row.text("of_table")?, row.text("of_column")?);
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), coalesce(max({column}), 0) + 1, false) FROM {table}"
        );
        connection.execute_text(next).await?;
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
