//! The previous release's processes go on beside this one's: its statements run on the schema of this one.
//!
//! `tests/data/previous-release` holds what a release runs, a statement a line, as its own conformance tests recorded it:
//!
//! ```sh
//! SLUICE_RECORD_STATEMENTS=FOLDER cargo nextest run -p sluice-store --test conformance
//! grep -E "SELECT|INSERT|UPDATE|DELETE" FOLDER/sqlite.jsonl | sort -u > crates/store/tests/data/previous-release/sqlite.jsonl    # and so postgres.jsonl
//! ```
//!
//! They are recorded anew, with [`SCHEMA`], when a release is made.

mod executed;
mod made_up;

use std::{collections::BTreeSet, fs, path::Path};

use sluice_store::{Store, testing::PrivateCluster};
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, SqliteConnection, migrate::Migrator,
    sqlite::SqliteConnectOptions,
};

/// The schema of the release whose statements are recorded.
const SCHEMA: i64 = 17;

/// Columns to which a row must give a value, as `table.column`.
const REQUIRED_IN_SQLITE: &str = "
    SELECT t.name || '.' || c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND c.\"notnull\" = 1 AND c.dflt_value IS NULL AND c.pk = 0 AND t.name <> '_sqlx_migrations'";

const REQUIRED_IN_POSTGRES: &str = "
    SELECT table_name || '.' || column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'
        AND table_name <> '_sqlx_migrations'";

const TABLES_IN_SQLITE: &str = "SELECT name FROM sqlite_master WHERE type = 'table'";

const TABLES_IN_POSTGRES: &str =
    "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()";

/// What a release left a database: its tables, and what their rows must have.
#[derive(Debug)]
struct Schema {
    tables: BTreeSet<String>,
    required: BTreeSet<String>,
}

impl Schema {
    /// What rows must have here that the earlier release's rows do not have.
    fn newly_required<'a>(&'a self, earlier: &'a Self) -> Vec<&'a str> {
        let of_earlier = |column: &&String| {
            let table = column.split('.').next().unwrap_or_default();
            earlier.tables.contains(table) && !earlier.required.contains(*column)
        };
        let columns = self.required.iter().filter(of_earlier);
        columns.map(String::as_str).collect()
    }
}

/// The statements of the previous release.
fn statements(database: &str) -> Vec<String> {
    // From the folder of this package, in which its tests run.
    let path = format!("tests/data/previous-release/{database}.jsonl");
    let text = fs::read_to_string(&path).expect("reads");
    let statements = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let statements: Vec<String> = statements.collect();
    let begins = |word: &str| statements.iter().any(|each| each.contains(word));
    assert!(
        statements.len() > 100 && begins("INSERT INTO messages") && begins("UPDATE deliveries"),
        "they are all there"
    );
    statements
}

async fn names_in_sqlite(
    connection: &mut SqliteConnection,
    query: &'static str,
) -> BTreeSet<String> {
    let names: Vec<String> = sqlx::query_scalar(query)
        .fetch_all(connection)
        .await
        .expect("reads");
    names.into_iter().collect()
}

async fn names_in_postgres(connection: &mut PgConnection, query: &'static str) -> BTreeSet<String> {
    let names: Vec<String> = sqlx::query_scalar(query)
        .fetch_all(connection)
        .await
        .expect("reads");
    names.into_iter().collect()
}

async fn sqlite_schema(connection: &mut SqliteConnection) -> Schema {
    Schema {
        tables: names_in_sqlite(connection, TABLES_IN_SQLITE).await,
        required: names_in_sqlite(connection, REQUIRED_IN_SQLITE).await,
    }
}

async fn postgres_schema(connection: &mut PgConnection) -> Schema {
    Schema {
        tables: names_in_postgres(connection, TABLES_IN_POSTGRES).await,
        required: names_in_postgres(connection, REQUIRED_IN_POSTGRES).await,
    }
}

/// Statements of the previous release that SQLite does not understand.
async fn refused_by_sqlite(connection: &mut SqliteConnection) -> Vec<String> {
    let mut refused = Vec::new();
    for statement in statements("sqlite") {
        let explained = sqlx::query(AssertSqlSafe(format!("EXPLAIN {statement}")));
        if let Err(error) = explained.fetch_all(&mut *connection).await {
            refused.push(format!("{error}: {statement}"));
        }
    }
    refused
}

/// Types of the first parameters, where PostgreSQL cannot find them by itself: the store's rows are JSON, and what follows them
/// are numbers.
const TYPES: [&str; 2] = ["", "(text, bigint)"];

/// Statements of the previous release that PostgreSQL does not understand.
async fn refused_by_postgres(connection: &mut PgConnection) -> Vec<String> {
    let mut refused = Vec::new();
    for statement in statements("postgres") {
        let mut errors = Vec::new();
        for types in TYPES {
            let prepared = format!("PREPARE earlier {types} AS {statement}; DEALLOCATE earlier");
            let prepared = sqlx::raw_sql(AssertSqlSafe(prepared));
            match prepared.execute(&mut *connection).await {
                Ok(_) => break,
                Err(error) => errors.push(error.to_string()),
            }
        }
        if errors.len() == TYPES.len() {
            refused.push(format!("{errors:?}: {statement}"));
        }
    }
    refused
}

async fn sqlite(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let connection = SqliteConnection::connect_with(&options).await;
    connection.expect("opens")
}

#[tokio::test]
async fn statements_of_the_previous_release_run_on_the_new_schema_of_sqlite() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut earlier = sqlite(&folder.path().join("earlier.db")).await;
    let migrations = Migrator::new(Path::new("migrations/sqlite")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut earlier, false);
    migrated.await.expect("makes the schema");
    assert_eq!(refused_by_sqlite(&mut earlier).await, [""; 0]);
    let before = sqlite_schema(&mut earlier).await;

    let path = folder.path().join("sluice.db");
    Store::open(&path).await.expect("opens").close().await;
    let mut now = sqlite(&path).await;
    assert_eq!(refused_by_sqlite(&mut now).await, [""; 0]);
    let after = sqlite_schema(&mut now).await;
    assert_eq!(after.newly_required(&before), [""; 0]);

    // A migration that takes something away, or asks for more, is found.
    let contracted = "ALTER TABLE webhooks RENAME COLUMN gzip TO compressed;
        ALTER TABLE checkpoints RENAME TO old; CREATE TABLE checkpoints (
            commitment TEXT PRIMARY KEY, slot INTEGER NOT NULL, reader TEXT NOT NULL);";
    let contracted = sqlx::raw_sql(contracted).execute(&mut now).await;
    contracted.expect("migrates");
    let refused = refused_by_sqlite(&mut now).await;
    assert!(
        refused.iter().any(|each| each.contains("gzip")),
        "{refused:?}"
    );
    let after = sqlite_schema(&mut now).await;
    assert_eq!(
        after.newly_required(&before),
        ["checkpoints.reader", "webhooks.compressed"]
    );
}

#[tokio::test]
async fn statements_of_the_previous_release_run_on_the_new_schema_of_postgres() {
    let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let cluster = cluster.expect("PostgreSQL starts");
    let name = |of: &str| format!("{of}_{}", std::process::id());
    let url = cluster.create_database(&name("earlier_statements")).await;
    let mut earlier = PgConnection::connect(&url.expect("creates")).await;
    let earlier = earlier.as_mut().expect("connects");
    let migrations = Migrator::new(Path::new("migrations/postgres")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut *earlier, false);
    migrated.await.expect("makes the schema");
    assert_eq!(refused_by_postgres(earlier).await, [""; 0]);
    let before = postgres_schema(earlier).await;

    let url = cluster.create_database(&name("new_schema")).await;
    let url = url.expect("creates");
    Store::connect(&url).await.expect("connects").close().await;
    let mut now = PgConnection::connect(&url).await.expect("connects");
    assert_eq!(refused_by_postgres(&mut now).await, [""; 0]);
    let after = postgres_schema(&mut now).await;
    assert_eq!(after.newly_required(&before), [""; 0]);

    // A migration that takes something away, or asks for more, is found.
    let contracted = "ALTER TABLE webhooks RENAME COLUMN gzip TO compressed;
        ALTER TABLE checkpoints ADD COLUMN reader TEXT NOT NULL;";
    let contracted = sqlx::raw_sql(contracted).execute(&mut now).await;
    contracted.expect("migrates");
    let refused = refused_by_postgres(&mut now).await;
    assert!(
        refused.iter().any(|each| each.contains("gzip")),
        "{refused:?}"
    );
    let after = postgres_schema(&mut now).await;
    assert_eq!(
        after.newly_required(&before),
        ["checkpoints.reader", "webhooks.compressed"]
    );
}
