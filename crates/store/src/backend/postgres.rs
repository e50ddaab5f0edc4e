//! PostgreSQL: a pool of connections, migrations, and the advisory lock and the lease of the leader.
//!
//! A host that dies, or a network that swallows everything, ends no connection by itself. The server is asked to notice
//! it within seconds ([`SESSION`]), and here every wait for an answer has an end ([`super::answer`]).

mod pooler;
mod transport;

use std::{sync::Arc, time::Duration};

use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    answer::in_time,
    connection::{Connection, Durability, open_error},
    schema::{self, SchemaVersion},
    statement::database_time,
};
use crate::StoreError;

/// Connections of one process: one writes slots, a few record deliveries, the others read.
const CONNECTIONS: u32 = 8;

/// How long a caller waits for a connection before it fails, because the database is away or overloaded.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the leader waits for an answer on the connection that holds its lock. The row of the lease may be held for
/// as long as [`SESSION`] lets a transaction stand still.
const LEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a returned connection may take to show that it still works, before it is closed: on one whose statement was
/// given up, the answer may never come.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// When the server gives a session up. A client that stands still in the middle of a transaction (stopped, or cut off)
/// holds rows that others wait for, the new leader among them; one whose host has died holds the lock of the leader. Both
/// end within the lease of a leader. Milliseconds where the name does not say seconds; what is about TCP is ignored on a
/// Unix socket.
const SESSION: [(&str, &str); 5] = [
    ("idle_in_transaction_session_timeout", "8000"),
    // Seconds without a sign of life, seconds between probes, and probes without an answer.
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "1"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "8000"),
];

const ACQUIRE: &str = concat!(
    "UPDATE leadership SET epoch = epoch + 1, until = ",
    database_time!(postgres),
    " + $1 RETURNING epoch"
);

const RENEW: &str = concat!(
    "UPDATE leadership SET until = ",
    database_time!(postgres),
    " + $2 WHERE epoch = $1"
);

const GIVE_BACK: &str = "UPDATE leadership SET until = NULL WHERE epoch = $1";

/// Ends the session that holds the leader's lock, if its lease is over: its process is stopped or cut off. The lock may
/// also be held by a process of a release without leases, which has none that could be over.
const DEPOSE: &str = concat!(
    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, leadership
     WHERE leadership.until < ",
    database_time!(postgres),
    " AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND (CAST(CAST(l.classid AS BIGINT) AS BIT(32)) || CAST(CAST(l.objid AS BIGINT) AS BIT(32)))
             = CAST(CAST($1 AS BIGINT) AS BIT(64))"
);

/// Pause before another try to take the lock of a session that was ended, and how many tries.
const DEPOSED_PAUSE: Duration = Duration::from_millis(50);
const DEPOSED_TRIES: u32 = 20;

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
        let (options, place) = options(url)?;
        let pool = pool(&options);
        pooler::refuse(&pool)
            .await
            .map_err(|source| StoreError::Open {
                place: place.clone(),
                source,
            })?;
        migrate(&pool)
            .await
            .map_err(|error| open_error(place, error))?;
        Ok(Self(Arc::new(Inner { options, pool })))
    }

    /// The schema of the database of this URL, which is only read.
    pub(crate) async fn schema(url: &str) -> Result<SchemaVersion, StoreError> {
        let (options, place) = options(url)?;
        let pool = pool(&options);
        let version = async {
            pooler::refuse(&pool).await?;
            let mut connection = pool.acquire().await?;
            Ok(schema::of_server(&mut connection).await?)
        };
        let version = version.await;
        pool.close().await;
        version.map_err(|source| StoreError::Open { place, source })
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

    /// Takes the lock of the leader and a new epoch, unless another session holds the lock and its lease is not over. The
    /// lock lives and dies with a connection of its own.
    pub(crate) async fn try_acquire_leadership(
        &self,
        lease: Duration,
    ) -> Result<Option<PostgresLeadership>, StoreError> {
        let acquiring = async {
            let mut connection = PgConnection::connect_with(&self.0.options).await?;
            if !lock_leadership(&mut connection).await? {
                connection.close().await?;
                return Ok(None);
            }
            let epoch: i64 = sqlx::query_scalar(ACQUIRE)
                .bind(millis(lease))
                .fetch_one(&mut connection)
                .await?;
            Ok(Some(PostgresLeadership { connection, epoch }))
        };
        in_time(LEADER_TIMEOUT, acquiring).await
    }
}

/// How the database of a URL is reached, and what errors call it: host and database alone, since a URL holds a password.
fn options(url: &str) -> Result<(PgConnectOptions, String), StoreError> {
    let options: PgConnectOptions =
        url.parse()
            .map_err(|source: sqlx::Error| StoreError::Open {
                place: "of store.url".to_owned(),
                source: source.into(),
            })?;
    let options = transport::protected(options, url).map_err(|error| StoreError::Open {
        place: "of store.url".to_owned(),
        source: error.into(),
    })?;
    let options = options.options(PLANNING).options(SESSION);
    let place = format!(
        "{} on {}",
        options.get_database().unwrap_or_default(),
        options.get_host()
    );
    Ok((options, place))
}

/// Connections, opened as they are needed.
fn pool(options: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_release(|connection, _| {
            Box::pin(async {
                let ping = tokio::time::timeout(RELEASE_TIMEOUT, connection.ping()).await;
                ping.map_err(|elapsed| sqlx::Error::Io(elapsed.into()))??;
                Ok(true)
            })
        })
        .connect_lazy_with(options.clone())
}

/// Takes the leader's lock, from a session whose lease is over if need be. False when another one holds it rightly.
async fn lock_leadership(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    if try_lock(connection).await? {
        return Ok(true);
    }
    let deposed: Vec<bool> = sqlx::query_scalar(DEPOSE)
        .bind(LEADER_LOCK)
        .fetch_all(&mut *connection)
        .await?;
    if deposed.is_empty() {
        return Ok(false);
    }
    for _ in 0..DEPOSED_TRIES {
        if try_lock(connection).await? {
            return Ok(true);
        }
        tokio::time::sleep(DEPOSED_PAUSE).await;
    }
    Ok(false)
}

async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(LEADER_LOCK)
        .fetch_one(connection)
        .await
}

/// The connection that holds the lock of the leader, and the leader's epoch.
#[derive(Debug)]
pub(crate) struct PostgresLeadership {
    connection: PgConnection,
    epoch: i64,
}

impl PostgresLeadership {
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Renews the lease. Fails when the connection, and with it the lock, is gone, or the epoch is another's.
    pub(crate) async fn renew(&mut self, lease: Duration) -> Result<(), StoreError> {
        let renewing = sqlx::query(RENEW)
            .bind(self.epoch)
            .bind(millis(lease))
            .execute(&mut self.connection);
        match in_time(LEADER_TIMEOUT, renewing).await?.rows_affected() {
            0 => Err(StoreError::NotLeader),
            _ => Ok(()),
        }
    }

    /// Gives the lease and the lock back.
    pub(crate) async fn release(mut self) -> Result<(), StoreError> {
        let releasing = async {
            sqlx::query(GIVE_BACK)
                .bind(self.epoch)
                .execute(&mut self.connection)
                .await?;
            // Not by closing alone, after which the server takes its time to end the session.
            sqlx::query("SELECT pg_advisory_unlock($1)")
                .bind(LEADER_LOCK)
                .execute(&mut self.connection)
                .await?;
            self.connection.close().await
        };
        in_time(LEADER_TIMEOUT, releasing).await
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Runs in one transaction under a lock, so that processes starting at once do not migrate twice.
async fn migrate(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await?;
    let table: Option<String> = sqlx::query_scalar(schema::TABLE_IN_POSTGRES)
        .fetch_one(&mut *transaction)
        .await?;
    // Not `run`, whose lifetimes keep the future of `open` from being spawned.
    schema::postgres_migrations()
        .run_direct(None, &mut *transaction, false)
        .await?;
    if table.is_none() {
        sqlx::query(schema::BEGIN_NEW)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}
