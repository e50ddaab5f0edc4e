//! PostgreSQL: a pool of connections, migrations, and the advisory lock of the leader.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::connection::{Connection, Durability};
use crate::StoreError;

/// Connections of one process: one writes slots, a few record deliveries, the others read.
const CONNECTIONS: u32 = 8;

/// How long a caller waits for a connection before it fails, because the database is away or overloaded.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the leader waits for an answer on the connection that holds its lock.
const LEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// How statements are planned. All of them look a few rows up through an index, one after the other, and the planner,
/// which knows little about tables that change all the time, must not find something cleverer. A bitmap scan in
/// particular never marks in the index which of its entries are dead, as a plain index scan does: a queue would be slower
/// with every message until the next vacuum.
const PLANNING: [(&str, &str); 5] = [
    ("enable_bitmapscan", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// Number of the advisory lock of the leader: the first bytes of "sluice.l". Any number does that is not
/// used for something else in the same database.
const LEADER_LOCK: i64 = 0x736c_7569_6365_2e6c;

/// Number of the advisory lock that lets one process at a time bring the schema up to date.
const MIGRATION_LOCK: i64 = 0x736c_7569_6365_2e6d;

/// The database. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct PostgresDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: PgConnectOptions,
    pool: PgPool,
}

impl PostgresDatabase {
    pub(crate) async fn open(url: &str) -> Result<Self, StoreError> {
        // The URL holds a password, so errors name the host and the database only.
        let options: PgConnectOptions =
            url.parse()
                .map_err(|source: sqlx::Error| StoreError::Open {
                    place: "of store.url".to_owned(),
                    source: source.into(),
                })?;
        let options = options.options(PLANNING);
        let place = format!(
            "{} on {}",
            options.get_database().unwrap_or_default(),
            options.get_host()
        );
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options.clone());
        migrate(&pool).await.map_err(|error| StoreError::Open {
            place,
            source: error.into(),
        })?;
        Ok(Self(Arc::new(Inner { options, pool })))
    }

    pub(crate) async fn close(&self) {
        self.0.pool.close().await;
    }

    pub(crate) async fn read(&self) -> Result<Connection, StoreError> {
        Ok(Connection::PostgresRead(self.0.pool.acquire().await?))
    }

    /// A transaction that reads one state of everything.
    pub(crate) async fn snapshot(&self) -> Result<Connection, StoreError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(Connection::PostgresTransaction(
            self.0.pool.begin_with(begin).await?,
        ))
    }

    pub(crate) async fn write(&self, durability: Durability) -> Result<Connection, StoreError> {
        let begin = match durability {
            Durability::Durable => "BEGIN",
            Durability::Relaxed => "BEGIN; SET LOCAL synchronous_commit = off",
        };
        let transaction = self.0.pool.begin_with(begin).await?;
        Ok(Connection::PostgresTransaction(transaction))
    }

    /// Takes the lock of the leader, unless another session holds it. The lock lives and dies with a
    /// connection of its own.
    pub(crate) async fn try_acquire_leadership(
        &self,
    ) -> Result<Option<PostgresLeadership>, StoreError> {
        let mut connection = PgConnection::connect_with(&self.0.options).await?;
        let locked: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(LEADER_LOCK)
            .fetch_one(&mut connection)
            .await?;
        if locked {
            return Ok(Some(PostgresLeadership { connection }));
        }
        connection.close().await?;
        Ok(None)
    }
}

/// The connection that holds the lock of the leader.
#[derive(Debug)]
pub(crate) struct PostgresLeadership {
    connection: PgConnection,
}

impl PostgresLeadership {
    /// Whether the connection, and with it the lock, is still there.
    pub(crate) async fn check(&mut self) -> Result<(), StoreError> {
        let ping = sqlx::query("SELECT 1").execute(&mut self.connection);
        match tokio::time::timeout(LEADER_TIMEOUT, ping).await {
            Ok(answer) => answer.map(drop).map_err(StoreError::from),
            Err(elapsed) => Err(StoreError::Database(elapsed.into())),
        }
    }

    /// Gives the lock back.
    pub(crate) async fn release(self) -> Result<(), StoreError> {
        Ok(self.connection.close().await?)
    }
}

/// Runs in one transaction under a lock, so that processes starting at once do not migrate twice.
async fn migrate(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await?;
    // Not `run`, whose lifetimes keep the future of `open` from being spawned.
    sqlx::migrate!("./migrations/postgres")
        .set_locking(false)
        .run_direct(None, &mut *transaction, false)
        .await?;
    transaction.commit().await?;
    Ok(())
}
