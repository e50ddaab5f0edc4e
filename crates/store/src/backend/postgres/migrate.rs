//! Migrations on a server, where processes of the release before go on beside.
//!
//! Each is a transaction of its own: of all together, the later ones would wait for locks while they hold those of the earlier
//! ones, which is how two that wait for each other come about. What was applied is recorded with it, so whoever comes next goes
//! on behind it.

use std::time::Duration;

use sqlx::{
    PgPool,
    migrate::{MigrateError, Migrator},
};
use tokio::time::Instant;

use crate::backend::{answer::ANSWER_TIMEOUT, schema};

/// Number of the advisory lock that lets one process at a time bring the schema up to date.
const MIGRATION_LOCK: i64 = 0x736c_7569_6365_2e6d;

/// How long a migration waits for a table. Everybody who asks for the table after it waits behind it, so it must not be long;
/// but longer than the second after which PostgreSQL ends a vacuum that is in the way, or finds two that wait for each other.
const LIMIT_WAITS: &str = "SET LOCAL lock_timeout = '3s'";

/// How long one migration is tried before the process gives up. Transactions of other processes take seconds, and what holds a
/// table for longer, a dump of it for instance, is the operator's.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Pause before another try: who waited behind the last one has his turn.
const PAUSE: Duration = Duration::from_secs(1);

/// What PostgreSQL answers to a statement that others were in the way of: a deadlock, a lock that it waited for too long.
const IN_THE_WAY: [&str; 2] = ["40P01", "55P03"];

/// Brings the schema up to date. Each migration is tried again for this long while others are in its way.
pub(super) async fn migrate(pool: &PgPool, patience: Duration) -> Result<(), sqlx::Error> {
    let migrations = schema::postgres_migrations();
    let mut begun = Instant::now();
    loop {
        match apply_next(pool, &migrations).await {
            Ok(Progress::Complete) => return Ok(()),
            Ok(Progress::Applied) => begun = Instant::now(),
            Err(error) if is_in_the_way(&error) && begun.elapsed() < patience => {
                tracing::warn!(
                    %error,
                    "other processes are in the way of bringing the schema up to date; it is tried again"
                );
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

enum Progress {
    Applied,
    Complete,
}

/// Applies the next migration, under a lock, so that processes starting at once do not apply it twice.
async fn apply_next(pool: &PgPool, migrations: &Migrator) -> Result<Progress, sqlx::Error> {
    let mut transaction = in_time(pool.begin()).await?;
    // Before waits are limited: nobody but processes that migrate waits behind this one.
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(LIMIT_WAITS).execute(&mut *transaction).await?;
    let applied = schema::applied_to_server(&mut transaction).await?;
    let next = applied.as_ref().and_then(|applied| {
        let mut versions = migrations.iter().map(|migration| migration.version);
        versions.find(|version| !applied.contains(version))
    });
    // Not `run`, whose lifetimes keep the future of `open` from being spawned. In a database without a schema, where nobody can
    // be in the way, all of them at once: it must not be left with some of them, and be taken for one that was in use.
    migrations
        .run_direct(next, &mut *transaction, false)
        .await?;
    if applied.is_none() {
        sqlx::query(schema::BEGIN_NEW)
            .execute(&mut *transaction)
            .await?;
    }
    in_time(transaction.commit()).await?;
    Ok(match next {
        Some(_) => Progress::Applied,
        None => Progress::Complete,
    })
}

/// What waits for no lock is answered as fast as any statement.
async fn in_time<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    answer.map_err(|elapsed| sqlx::Error::Io(elapsed.into()))?
}

fn is_in_the_way(error: &sqlx::Error) -> bool {
    let cause = match error {
        sqlx::Error::Migrate(migration) => match &**migration {
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause,
            _ => return false,
        },
        cause => cause,
    };
    let code = cause.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| IN_THE_WAY.contains(&&*code))
}
