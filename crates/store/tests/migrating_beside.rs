//! Migrations on a server beside processes of the release before, which go on reading and writing.

use std::{fs, path::Path, time::Duration};

use sluice_store::{Store, StoreError, testing::PrivateCluster};
use sqlx::{AssertSqlSafe, Connection, PgConnection, migrate::Migrator};
use tokio::task::JoinHandle;

/// The last schema before three steps that each change one of the tables of a dispatcher: 27 `webhooks`, 28 `messages` and
/// `usage`, 30 `deliveries`.
const EARLIER: i64 = 26;

/// Longer than anything takes unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    _cluster: PrivateCluster,
    url: String,
    /// A process of the release before.
    old: PgConnection,
    /// Sees at any time what the others do, which a transaction does not.
    observer: PgConnection,
}

impl Stage {
    /// A database of the earlier schema.
    async fn set(name: &str) -> Self {
        Self::of_schema(EARLIER, name).await
    }

    async fn of_schema(version: i64, name: &str) -> Self {
        let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let cluster = cluster.expect("PostgreSQL starts");
        let name = format!("{name}_{}", std::process::id());
        let url = cluster.create_database(&name).await.expect("creates");
        let mut old = PgConnection::connect(&url).await.expect("connects");
        // From the folder of this package, in which its tests run.
        Migrator::new(Path::new("migrations/postgres"))
            .await
            .expect("reads the migrations")
            .run_direct(Some(version), &mut old, false)
            .await
            .expect("makes the schema");
        Self {
            observer: PgConnection::connect(&url).await.expect("connects"),
            _cluster: cluster,
            url,
            old,
        }
    }

    /// Opens the store, as a process of this release does when it starts.
    fn opening(&self) -> JoinHandle<Result<Store, StoreError>> {
        let url = self.url.clone();
        tokio::spawn(async move { Store::connect(&url).await })
    }

    async fn old_runs(&mut self, statement: &str) {
        let run = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
        let run = tokio::time::timeout(PATIENCE, run.execute(&mut self.old)).await;
        let run = run.expect("in time");
        run.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Waits until as many sessions as this wait for a lock on a table.
    async fn waiting(&mut self, table: &str, count: i64) {
        let waiting = "SELECT count(*) FROM pg_locks
            WHERE relation = to_regclass($1) AND NOT granted";
        let looks = async {
            loop {
                let waiting = sqlx::query_scalar::<_, i64>(waiting).bind(table);
                if waiting.fetch_one(&mut self.observer).await.expect("looks") == count {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let looked = tokio::time::timeout(PATIENCE, looks).await;
        looked.unwrap_or_else(|_| panic!("{count} wait for {table}"));
    }

    /// Number of the last migration.
    async fn applied(&mut self) -> i64 {
        let applied = "SELECT MAX(version) FROM _sqlx_migrations";
        let applied = sqlx::query_scalar(applied).fetch_one(&mut self.observer);
        applied.await.expect("reads")
    }
}

async fn opened(opening: JoinHandle<Result<Store, StoreError>>) -> Result<Store, StoreError> {
    let opened = tokio::time::timeout(PATIENCE, opening).await;
    opened.expect("in time").expect("does not panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_reads_deliveries_and_then_webhooks_is_neither_stopped_nor_in_the_way() {
    let mut stage = Stage::set("beside_dispatcher").await;
    stage
        .old_runs("BEGIN; SELECT count(*) FROM deliveries")
        .await;
    let opening = stage.opening();
    stage.waiting("deliveries", 1).await;
    // The steps before are done with, and hold nothing.
    assert_eq!(stage.applied().await, 29);
    stage.old_runs("SELECT count(*) FROM webhooks").await;
    // Whoever comes behind the migration does not wait for long.
    stage.waiting("deliveries", 0).await;
    stage.old_runs("COMMIT").await;
    let store = opened(opening).await.expect("brings it up to date");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_is_undone_for_the_sake_of_another_process_is_tried_again() {
    let mut stage = Stage::set("deadlock").await;
    // Of two that wait for each other, who notices first is undone: the migration.
    stage.old_runs("SET deadlock_timeout = '1h'").await;
    stage.old_runs("BEGIN; SELECT count(*) FROM usage").await;
    let opening = stage.opening();
    stage.waiting("usage", 1).await;
    stage.old_runs("SELECT count(*) FROM messages").await;
    stage.old_runs("COMMIT").await;
    let store = opened(opening).await.expect("brings it up to date");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_applied_before_a_migration_that_fails_stays_and_the_next_process_goes_on_behind_it()
 {
    let mut stage = Stage::set("failed").await;
    stage.old_runs("CREATE TABLE bodies (other INTEGER)").await;
    let error = opened(stage.opening()).await.expect_err("is in the way");
    assert!(error.to_string().contains("migration 28"), "{error}");
    assert_eq!(stage.applied().await, 27);
    stage.old_runs("DROP TABLE bodies").await;
    // Several processes at once, as when all of them are started anew.
    let all = [stage.opening(), stage.opening(), stage.opening()];
    for opening in all {
        let store = opened(opening).await.expect("goes on");
        store.close().await;
    }
    let shares: i64 = sqlx::query_scalar("SELECT shares_bodies FROM usage")
        .fetch_one(&mut stage.observer)
        .await
        .expect("reads");
    assert_eq!(shares, 0, "the release before does not know shared bodies");
}

/// The first statement of the release before that the server does not understand, and why.
async fn refused(session: &mut PgConnection, statements: &[String]) -> Option<String> {
    for statement in statements {
        let mut refused = None;
        // Types of the first parameters, where the server cannot find them by itself.
        for types in ["", "(text, bigint)"] {
            let prepared = format!("PREPARE earlier {types} AS {statement}; DEALLOCATE earlier");
            let prepared = sqlx::raw_sql(AssertSqlSafe(prepared));
            match prepared.execute(&mut *session).await {
                Ok(_) => {
                    refused = None;
                    break;
                }
                Err(error) => refused = Some(format!("{error}: {statement}")),
            }
        }
        if refused.is_some() {
            return refused;
        }
    }
    None
}

/// Processes of the release before run at each schema on the way, however long a step is tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_release_before_works_with_every_schema_on_the_way() {
    let mut stage = Stage::of_schema(1, "on_the_way").await;
    let recorded = "tests/data/previous-release/postgres.jsonl";
    let recorded = fs::read_to_string(recorded).expect("reads");
    let statements = recorded.lines().map(serde_json::from_str);
    let statements: Vec<String> = statements.collect::<Result<_, _>>().expect("JSON");
    let migrations = Migrator::new(Path::new("migrations/postgres")).await;
    let migrations = migrations.expect("reads the migrations");
    let mut is_understood = false;
    for step in migrations.iter() {
        let to = migrations.run_direct(Some(step.version), &mut stage.old, false);
        to.await.expect("makes the schema");
        let refused = refused(&mut stage.old, &statements).await;
        // Its own schema is the first at which all of them are understood.
        assert!(
            !is_understood || refused.is_none(),
            "schema {}: {refused:?}",
            step.version
        );
        is_understood |= refused.is_none();
    }
    assert!(is_understood, "not even at its own");
}
