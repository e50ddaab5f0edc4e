//! Executes the previous release's statements on rows that are there, each in a transaction that is undone: each does on the new
//! schema what it does on its own.
//!
//! Their parameters are made up, so some are refused for what they hold, on either schema.

use std::{collections::BTreeMap, path::Path};

use sluice_store::{Store, testing::PrivateCluster};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Sqlite, SqliteConnection, migrate::Migrator};

use crate::{
    SCHEMA, TYPES,
    made_up::{Made, ROWS, parameters},
    sqlite, statements,
};

/// Fewest statements that do something with parameters that are made up.
const FEWEST_DONE: usize = 100;

/// What no process can go on without, by words of it: a statement with them changes or returns something.
const VITAL: [&str; 8] = [
    "INSERT INTO messages",
    "INSERT INTO webhooks",
    "INSERT INTO deliveries",
    "INSERT INTO attempts",
    "UPDATE deliveries SET state = v.state",
    "UPDATE deliveries SET lease_token = $3, due_at = $4",
    "DELETE FROM messages",
    "SELECT m.id, m.kind, m.body",
];

/// What statements did, by their text: rows that were returned, and rows that were changed.
type Done = BTreeMap<String, (u64, u64)>;

/// Those that do something else on the new schema than on their own.
fn changed(before: &Done, after: &Done) -> Vec<String> {
    let is_other = |(statement, done): (&String, &(u64, u64))| {
        let now = after.get(statement);
        (now != Some(done)).then(|| format!("{done:?} is {now:?} now: {statement}"))
    };
    before.iter().filter_map(is_other).collect()
}

/// Holds the statements' own schema to being one on which they do something.
fn expect_much(done: &Done) {
    assert!(
        done.len() >= FEWEST_DONE,
        "only {} did anything",
        done.len()
    );
    for vital in VITAL {
        let works = |(statement, (returned, changed)): (&String, &(u64, u64))| {
            statement.contains(vital) && returned + changed > 0
        };
        assert!(done.iter().any(works), "{vital}");
    }
}

/// The statement that inserts messages is among those that do something else.
fn expect_found(changed: &[String]) {
    let found = changed.iter().any(|each| each.contains(VITAL[0]));
    assert!(found, "{changed:?}");
}

/// What describes the schema itself is not the same on another.
fn to_execute(database: &str) -> Vec<String> {
    let mut all = statements(database);
    all.retain(|statement| {
        let describes = |schema: &str| statement.contains(schema);
        !["sqlite_master", "information_schema"]
            .into_iter()
            .any(describes)
    });
    all
}

fn rows(bytes: &str) -> String {
    ROWS.replace("{bytes}", bytes)
        .replace("{hash}", &"a".repeat(64))
}

async fn total_changes(connection: &mut SqliteConnection) -> u64 {
    let total: i64 = sqlx::query_scalar("SELECT total_changes()")
        .fetch_one(connection)
        .await
        .expect("counts");
    total.unsigned_abs()
}

async fn fill_sqlite(connection: &mut SqliteConnection) {
    let filled = sqlx::raw_sql(AssertSqlSafe(rows("zeroblob(32)")));
    filled.execute(connection).await.expect("fills it");
}

async fn done_in_sqlite(connection: &mut SqliteConnection) -> Done {
    let mut done = Done::new();
    for statement in to_execute("sqlite") {
        let mut transaction = connection.begin().await.expect("begins");
        let before = total_changes(&mut transaction).await;
        let query = sqlx::query::<Sqlite>(AssertSqlSafe(statement.clone()));
        let query = parameters(&statement)
            .into_iter()
            .fold(query, |query, made| match made {
                Made::Null => query.bind(None::<i64>),
                Made::Integer(number) => query.bind(number),
                Made::Text(text) => query.bind(text),
                Made::Bytes => query.bind(vec![0_u8; 32]),
            });
        let executed = query.fetch_all(&mut *transaction).await;
        let changes = total_changes(&mut transaction).await - before;
        if let Ok(found) = executed {
            let returned = u64::try_from(found.len()).expect("few");
            done.insert(statement, (returned, changes));
        }
        transaction.rollback().await.expect("undone");
    }
    done
}

/// The parameter as a literal of this type.
fn literal(made: Made, kind: &str) -> String {
    if let Some(of) = kind.strip_suffix("[]") {
        return format!("ARRAY[{}]::{kind}", literal(made, of));
    }
    let text = match made {
        Made::Null => return format!("NULL::{kind}"),
        Made::Integer(number) => number.to_string(),
        Made::Text(text) => text,
        Made::Bytes => format!("\\x{}", "00".repeat(32)),
    };
    format!("'{}'::{kind}", text.replace('\'', "''"))
}

/// Executes a statement; returns how many rows it returned or changed. `None` when it is refused.
async fn executed_by_postgres(connection: &mut PgConnection, statement: &str) -> Option<u64> {
    for types in TYPES {
        let mut transaction = connection.begin().await.expect("begins");
        let prepared = format!("PREPARE earlier {types} AS {statement}");
        let prepared = sqlx::raw_sql(AssertSqlSafe(prepared));
        if prepared.execute(&mut *transaction).await.is_err() {
            transaction.rollback().await.expect("undone");
            continue;
        }
        let kinds: Vec<String> = sqlx::query_scalar(
            "SELECT unnest(parameter_types)::TEXT FROM pg_prepared_statements WHERE name = 'earlier'",
        )
        .fetch_all(&mut *transaction)
        .await
        .expect("reads");
        let literals: Vec<_> = parameters(statement)
            .into_iter()
            .zip(&kinds)
            .map(|(made, kind)| literal(made, kind))
            .collect();
        let execute = if literals.is_empty() {
            "EXECUTE earlier".to_owned()
        } else {
            format!("EXECUTE earlier ({})", literals.join(", "))
        };
        let executed = sqlx::raw_sql(AssertSqlSafe(execute));
        let executed = executed.execute(&mut *transaction).await;
        transaction.rollback().await.expect("undone");
        let forgotten = sqlx::raw_sql("DEALLOCATE earlier");
        forgotten.execute(&mut *connection).await.expect("forgets");
        return executed.ok().map(|done| done.rows_affected());
    }
    None
}

async fn fill_postgres(connection: &mut PgConnection) {
    // It numbers rows on from those that it has numbered itself.
    let numbers = "SELECT setval(pg_get_serial_sequence('webhooks', 'ordinal'), 9);
        SELECT setval(pg_get_serial_sequence('api_keys', 'ordinal'), 9);";
    let rows = rows("decode(repeat('00', 32), 'hex')");
    let filled = sqlx::raw_sql(AssertSqlSafe(rows + numbers));
    filled.execute(connection).await.expect("fills it");
}

async fn done_in_postgres(connection: &mut PgConnection) -> Done {
    let mut done = Done::new();
    for statement in to_execute("postgres") {
        if let Some(rows) = executed_by_postgres(connection, &statement).await {
            done.insert(statement, (rows, 0));
        }
    }
    done
}

#[tokio::test]
async fn statements_of_the_previous_release_do_on_the_new_schema_of_sqlite_what_they_did() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut earlier = sqlite(&folder.path().join("earlier.db")).await;
    let migrations = Migrator::new(Path::new("migrations/sqlite")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut earlier, false);
    migrated.await.expect("makes the schema");
    fill_sqlite(&mut earlier).await;
    let before = done_in_sqlite(&mut earlier).await;
    expect_much(&before);

    let path = folder.path().join("sluice.db");
    Store::open(&path).await.expect("opens").close().await;
    let mut now = sqlite(&path).await;
    fill_sqlite(&mut now).await;
    assert_eq!(changed(&before, &done_in_sqlite(&mut now).await), [""; 0]);

    // A migration that refuses what was stored before is found, though every statement can be prepared.
    let contracted = "CREATE TRIGGER short BEFORE INSERT ON messages WHEN length(new.body) < 100
        BEGIN SELECT RAISE(ABORT, 'too short'); END";
    let contracted = sqlx::raw_sql(contracted).execute(&mut now).await;
    contracted.expect("migrates");
    expect_found(&changed(&before, &done_in_sqlite(&mut now).await));
}

#[tokio::test]
async fn statements_of_the_previous_release_do_on_the_new_schema_of_postgres_what_they_did() {
    let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let cluster = cluster.expect("PostgreSQL starts");
    let name = |of: &str| format!("{of}_{}", std::process::id());
    let url = cluster.create_database(&name("earlier_executed")).await;
    let mut earlier = PgConnection::connect(&url.expect("creates")).await;
    let earlier = earlier.as_mut().expect("connects");
    let migrations = Migrator::new(Path::new("migrations/postgres")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut *earlier, false);
    migrated.await.expect("makes the schema");
    fill_postgres(earlier).await;
    let before = done_in_postgres(earlier).await;
    expect_much(&before);

    let url = cluster.create_database(&name("new_executed")).await;
    let url = url.expect("creates");
    Store::connect(&url).await.expect("connects").close().await;
    let mut now = PgConnection::connect(&url).await.expect("connects");
    fill_postgres(&mut now).await;
    assert_eq!(changed(&before, &done_in_postgres(&mut now).await), [""; 0]);

    // A migration that refuses what was stored before is found, though every statement can be prepared.
    let contracted = "ALTER TABLE messages ADD CHECK (length(body) > 100) NOT VALID";
    let contracted = sqlx::raw_sql(contracted).execute(&mut now).await;
    contracted.expect("migrates");
    expect_found(&changed(&before, &done_in_postgres(&mut now).await));
}
