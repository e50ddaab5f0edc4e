//! Schema of a database: its migrations, and which of them have been applied.

use std::{collections::HashSet, path::Path};

use sqlx::{
    Connection as _, SqlSafeStr as _, SqliteConnection,
    migrate::{Migration, MigrationType, Migrator},
    postgres::PgConnection,
    sqlite::SqliteConnectOptions,
};

// Number, description and SQL of each migration: `SQLITE` and `POSTGRES`.
include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// The table of the migrations that were applied; no row, or NULL, in a database that has no schema.
pub(super) const TABLE_IN_SQLITE: &str =
    "SELECT name FROM sqlite_master WHERE name = '_sqlx_migrations'";
const TABLE_IN_POSTGRES: &str = "SELECT to_regclass('_sqlx_migrations')::TEXT";

/// What a database begins with that had no schema: there is no process of another release that could not read it.
pub(super) const BEGIN_NEW: &str = "UPDATE usage SET shares_bodies = 1";

/// Number of the last migration that was applied; NULL in a table without rows.
const APPLIED: &str = "SELECT MAX(version) FROM _sqlx_migrations";

/// Numbers of the migrations that were applied.
const EACH_APPLIED: &str = "SELECT version FROM _sqlx_migrations";

/// A schema by the numbers of migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Of the last one that was applied to the database; 0 in a database without tables.
    pub applied: i64,
    /// Of the last one that this release knows.
    pub known: i64,
}

impl SchemaVersion {
    fn new(applied: Option<i64>, migrations: &Migrator) -> Self {
        let versions = migrations.iter().map(|migration| migration.version);
        Self {
            applied: applied.unwrap_or(0),
            known: versions.max().unwrap_or(0),
        }
    }
}

/// Steps to the schema of SQLite.
pub(super) fn sqlite_migrations() -> Migrator {
    migrator(SQLITE)
}

/// Steps to the schema of PostgreSQL. The caller holds a lock of its own.
pub(super) fn postgres_migrations() -> Migrator {
    let mut migrations = migrator(POSTGRES);
    migrations.set_locking(false);
    migrations
}

fn migrator(steps: &[(i64, &'static str, &'static str)]) -> Migrator {
    // Each step is a transaction of its own.
    const WITHOUT_TRANSACTION: bool = false;

    let steps = steps.iter().map(|&(version, description, sql)| {
        let kind = MigrationType::Simple;
        let sql = sql.into_sql_str();
        Migration::new(version, description.into(), kind, sql, WITHOUT_TRANSACTION)
    });
    Migrator::with_migrations(steps.collect())
}

/// The schema of a file, which is only read.
pub(super) async fn of_file(path: &Path) -> Result<SchemaVersion, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let table: Option<String> = sqlx::query_scalar(TABLE_IN_SQLITE)
        .fetch_optional(&mut connection)
        .await?;
    let applied = match table {
        Some(_) => {
            sqlx::query_scalar(APPLIED)
                .fetch_one(&mut connection)
                .await?
        }
        None => None,
    };
    connection.close().await?;
    Ok(SchemaVersion::new(applied, &sqlite_migrations()))
}

/// Numbers of the migrations that were applied to a database on a server; None in one that has no schema.
pub(super) async fn applied_to_server(
    connection: &mut PgConnection,
) -> Result<Option<HashSet<i64>>, sqlx::Error> {
    let table: Option<String> = sqlx::query_scalar(TABLE_IN_POSTGRES)
        .fetch_one(&mut *connection)
        .await?;
    if table.is_none() {
        return Ok(None);
    }
    let applied: Vec<i64> = sqlx::query_scalar(EACH_APPLIED)
        .fetch_all(connection)
        .await?;
    Ok(Some(applied.into_iter().collect()))
}

/// The schema of a database on a server.
pub(super) async fn of_server(connection: &mut PgConnection) -> Result<SchemaVersion, sqlx::Error> {
    let applied = applied_to_server(connection).await?;
    let last = applied.and_then(|applied| applied.into_iter().max());
    Ok(SchemaVersion::new(last, &postgres_migrations()))
}
