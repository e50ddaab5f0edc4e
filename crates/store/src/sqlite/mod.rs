//! The SQLite backend: one file in WAL mode.
//!
//! Writes of one process take turns on an in-process lock instead of meeting in SQLite's busy handler,
//! which sleeps; the handler is left for the other process. Writes whose loss would only repeat work
//! (leases, results of attempts) skip the wait for the disk, all others do not return before their
//! bytes are on it.

mod checkpoint;
mod deliveries;
mod events;
mod file;
mod retention;
mod webhooks;

#[cfg(test)]
mod tests;

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sqlx::{
    Sqlite, SqliteConnection, SqlitePool, Transaction,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use self::file::DatabaseFile;
use crate::StoreError;

/// How long a statement waits for the other process to finish writing. Our longest transaction
/// replaces the filters of one webhook, a matter of milliseconds; five seconds mean a stuck process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before another try to open a file that somebody else is opening for the first time, which
/// takes them a few milliseconds.
const OPENING_PAUSE: Duration = Duration::from_millis(20);

/// How long a caller waits for a connection before it is told that the database is overloaded.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections for reading. Reads are short and answered from the page cache, so more would only
/// compete for the same two cores.
const READERS: u32 = 4;

/// The database. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: DatabaseFile,
    reader: SqlitePool,
    durable: SqlitePool,
    relaxed: SqlitePool,
    turn: Arc<Mutex<()>>,
}

/// What a write may lose when the machine (not the process) dies right after it.
#[derive(Clone, Copy, Debug)]
enum Durability {
    /// Nothing.
    Durable,
    /// Itself, when losing it only repeats work.
    Relaxed,
}

/// A write transaction; dropping it undoes it.
struct Write {
    transaction: Transaction<'static, Sqlite>,
    store: Arc<Inner>,
    // Held until the end, and dropped after the transaction.
    _turn: OwnedMutexGuard<()>,
}

impl Store {
    /// Opens the database at `path`, creates file and folder when absent, and brings the schema up to
    /// date. The file is made readable for its owner only, since it holds signing secrets.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let open_error = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        file::create(path).map_err(|error| open_error(error.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            // A connection that is opened later must never make a second, empty database.
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let durable =
            pool(1).connect_lazy_with(options.clone().synchronous(SqliteSynchronous::Full));
        prepare(&durable)
            .await
            .map_err(|error| open_error(error.into()))?;
        let relaxed =
            pool(1).connect_lazy_with(options.clone().synchronous(SqliteSynchronous::Normal));
        let reader = pool(READERS).connect_lazy_with(options.read_only(true));
        let file = DatabaseFile::identify(path).map_err(|error| open_error(error.into()))?;
        let inner = Inner {
            file,
            reader,
            durable,
            relaxed,
            turn: Arc::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// A health probe: the database answers, and the path still names the file that was opened.
    ///
    /// # Errors
    /// [`StoreError::FileGone`], or the failure of the database.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.read().await?;
        sqlx::query("SELECT revision FROM webhook_revision")
            .fetch_one(&mut *connection)
            .await?;
        Ok(())
    }

    /// Closes every connection, which folds the write-ahead log into the database file.
    pub async fn close(&self) {
        self.inner.reader.close().await;
        self.inner.relaxed.close().await;
        self.inner.durable.close().await;
    }

    async fn read(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.inner.file.check()?;
        Ok(self.inner.reader.acquire().await?)
    }

    async fn write(&self, durability: Durability) -> Result<Write, StoreError> {
        let turn = Arc::clone(&self.inner.turn).lock_owned().await;
        self.inner.file.check()?;
        let pool = match durability {
            Durability::Durable => &self.inner.durable,
            Durability::Relaxed => &self.inner.relaxed,
        };
        // IMMEDIATE takes the write lock at once: a transaction that began by reading could not be
        // upgraded after another process wrote, and would fail without waiting.
        let transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Write {
            transaction,
            store: Arc::clone(&self.inner),
            _turn: turn,
        })
    }
}

impl Write {
    /// Makes the transaction permanent, unless the file vanished while it ran.
    async fn commit(self) -> Result<(), StoreError> {
        self.store.file.check()?;
        self.transaction.commit().await?;
        Ok(())
    }
}

impl Deref for Write {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for Write {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // There is no network between us and the file: connections neither age nor die.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
}

/// Switches a new file to WAL mode and brings its schema up to date. SQLite answers that switch, when
/// another opener is at it too, with "locked" instead of waiting its busy timeout, so the wait is here.
async fn prepare(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    let mut patience = BUSY_TIMEOUT;
    loop {
        match migrate(pool).await {
            Err(error) if is_busy(&error) && !patience.is_zero() => {
                tokio::time::sleep(OPENING_PAUSE).await;
                patience = patience.saturating_sub(OPENING_PAUSE);
            }
            done => return done,
        }
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    /// SQLITE_BUSY; the bits above the lowest eight tell why.
    const BUSY: u32 = 5;
    error
        .as_database_error()
        .and_then(|error| error.code()?.parse::<u32>().ok())
        .is_some_and(|code| code & 0xff == BUSY)
}

/// Runs in one transaction, so that two processes starting at once do not migrate twice.
async fn migrate(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    // Not `run`, whose lifetimes keep the future of `open` from being spawned.
    sqlx::migrate!()
        .run_direct(None, &mut *transaction, false)
        .await?;
    transaction.commit().await?;
    Ok(())
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// For the database, whose integers are signed.
fn signed(value: u64, what: &'static str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange { what })
}

/// From the database, where a CHECK keeps the value from being negative.
fn unsigned(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::Corrupt { what })
}
