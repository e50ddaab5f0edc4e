//! PostgreSQL: a pool of connections, and with it migrations and leadership.
//!
//! A host that dies, or a network that swallows everything, ends no connection by itself. The server is asked to notice
//! it within seconds ([`SESSION`]), and here every wait for an answer has an end ([`super::answer`]); a migration's alone
//! has none, which takes as long as the tables are large.

mod leadership;
mod migrate;
mod pooler;
#[cfg(test)]
mod tests;
mod transport;

use std::{sync::Arc, time::Duration};

use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

pub(crate) use self::leadership::PostgresLeadership;
use super::{
    answer::{ANSWER_TIMEOUT, answered, in_time},
    connection::{Connection, Durability, open_error},
    schema::{self, SchemaVersion},
};
use crate::StoreError;

/// Connections of one process: one writes slots, a few record deliveries, the others read.
const CONNECTIONS: u32 = 8;

/// How long a caller waits for a connection before it fails, because the database is away or overloaded.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The database. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct PostgresDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: PgConnectOptions,
    pool: PgPool,
    /// How long the beginning of a transaction may take, a connection for it included.
    begin_timeout: Duration,
}

impl PostgresDatabase {
    pub(crate) async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, ANSWER_TIMEOUT).await
    }

    async fn open_with(url: &str, begin_timeout: Duration) -> Result<Self, StoreError> {
        let (options, place) = options(url)?;
        let pool = pool(&options);
        pooler::refuse(&pool)
            .await
            .map_err(|source| StoreError::Open {
                place: place.clone(),
                source,
            })?;
        migrate::migrate(&pool, migrate::PATIENCE)
            .await
            .map_err(|error| open_error(place, error))?;
        Ok(Self(Arc::new(Inner {
            options,
            pool,
            begin_timeout,
        })))
    }

    /// The schema of the database of this URL, which is only read.
    pub(crate) async fn schema(url: &str) -> Result<SchemaVersion, StoreError> {
        let (options, place) = options(url)?;
        let pool = pool(&options);
        let version = async {
            pooler::refuse(&pool).await?;
            let mut connection = pool.acquire().await?;
            Ok(answered(schema::of_server(&mut connection)).await?)
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
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            .await
    }

    pub(crate) async fn write(&self, durability: Durability) -> Result<Connection, StoreError> {
        self.begin(match durability {
            Durability::Durable => "BEGIN",
            Durability::Relaxed => "BEGIN; SET LOCAL synchronous_commit = off",
        })
        .await
    }

    async fn begin(&self, statement: &'static str) -> Result<Connection, StoreError> {
        let begun = in_time(self.0.begin_timeout, self.0.pool.begin_with(statement)).await?;
        Ok(Connection::PostgresTransaction(begun))
    }

    /// Acquires the leadership, unless another session has it.
    pub(crate) async fn try_acquire_leadership(
        &self,
        lease: Duration,
    ) -> Result<Option<PostgresLeadership>, StoreError> {
        PostgresLeadership::try_acquire(&self.0.options, lease).await
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
                let test = tokio::time::timeout(RELEASE_TIMEOUT, is_at_rest(connection)).await;
                test.map_err(|elapsed| sqlx::Error::Io(elapsed.into()))?
            })
        })
        .connect_lazy_with(options.clone())
}

/// Whether a connection works and is in no transaction, by the server's own word. One whose BEGIN was given up may have
/// been answered since: the library does not know of that transaction, in which whoever came next would write.
async fn is_at_rest(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // Is answered as a ping is, and fails but in a transaction.
    match connection.begin_with("").await {
        Ok(_) => Ok(false),
        Err(sqlx::Error::BeginFailed) => Ok(true),
        Err(error) => Err(error),
    }
}
