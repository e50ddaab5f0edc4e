//! SQLite: one file in WAL mode, its readers, its one writer, and the lock file and the lease of the leader.
//!
//! Writes of one process take turns on an in-process lock, and processes on [`OtherWriters`], instead of meeting in SQLite's
//! busy handler, which sleeps. Those of one process all go over one connection: what that keeps in memory of the file
//! stays true.
//!
//! SQLite itself waits for the disk only when it folds its log into the database (`synchronous = NORMAL`), which [`Folding`] does
//! beside the writes. Those whose loss would only repeat work (leases, results of attempts) leave it at that. All others do not
//! return before the log is on the disk, for which they wait when they have given their turn to the next. Where that fails, the
//! log is folded before anything else is written.

mod cleaning;

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{
    Row as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{
    connection::{self, Connection, Durability, PendingWrite},
    file::{self, DatabaseFile},
    folding::Folding,
    network_disk::DiskKind,
    other_writers::OtherWriters,
    schema::{self, SchemaVersion},
    statement::{database_time, values},
    turn::{Turn, WriteTransaction},
};
use crate::StoreError;

/// How long a write waits for other processes to finish theirs. Our longest transaction
/// replaces the filters of one webhook, a matter of milliseconds; five seconds mean a stuck process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening the file may take: on a disk that others keep busy its first syncs alone take longer than a caller waits for a
/// connection later.
const OPENING_PATIENCE: Duration = Duration::from_secs(30);

/// Pause before another try to open a file that another process is opening for the first time, which takes
/// it a few milliseconds.
const OPENING_PAUSE: Duration = Duration::from_millis(20);

/// How long a caller waits for a connection before it fails, because the database is overloaded.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections for reading. Reads are short and answered from the page cache, so more would only
/// compete for the same two cores.
const READERS: u32 = 4;

/// Rows that a connection's thread puts out before whoever reads them must have taken one: as many as most statements return, so
/// that the thread, which holds the turn to write meanwhile, stops and waits for nobody.
const ROWS_AHEAD: usize = 1024;

/// Pages kept in memory by a connection that writes, as SQLite counts them: a negative number is kibibytes. A
/// transaction that stores or records a few hundred messages touches a few megabytes; were they more than the cache
/// holds, they would be written out, and read again, in the middle of it.
const WRITER_CACHE: &str = "-16384";

/// Pages of the log, 64 MiB, after which a write folds what [`Folding`] has left of it: others wait meanwhile, but the log begins anew
/// then, and grows no longer.
const LONGEST_LOG: &str = "16384";

const ACQUIRE: &str = concat!(
    "UPDATE leadership SET epoch = epoch + 1, until = ",
    database_time!(sqlite),
    " + $1 RETURNING epoch"
);

const RENEW: &str = concat!(
    "UPDATE leadership SET until = ",
    database_time!(sqlite),
    " + $2 WHERE epoch = $1"
);

const GIVE_BACK: &str = "UPDATE leadership SET until = NULL WHERE epoch = $1";

const IS_OVER: &str = concat!(
    "SELECT epoch FROM leadership WHERE until < ",
    database_time!(sqlite)
);

/// The database. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct SqliteDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: Arc<DatabaseFile>,
    reader: SqlitePool,
    turn: Arc<Mutex<Turn>>,
    folding: Arc<Folding>,
    others: OtherWriters,
}

impl SqliteDatabase {
    pub(crate) async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_on(path, DiskKind::of).await
    }

    /// Opens it unless `kind_of` says that its folder is on a network.
    async fn open_on(
        named: &Path,
        kind_of: impl Fn(&Path) -> io::Result<DiskKind> + Send,
    ) -> Result<Self, StoreError> {
        let path = file::place(named).map_err(|error| StoreError::Open {
            place: named.display().to_string(),
            source: error.into(),
        })?;
        let path = path.as_path();
        let open_error = |source| StoreError::Open {
            place: path.display().to_string(),
            source,
        };
        file::create(path, kind_of).map_err(|error| open_error(error.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .row_buffer_size(ROWS_AHEAD)
            // A connection that is opened later must never make a second, empty database.
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let writing = options
            .clone()
            .pragma("cache_size", WRITER_CACHE)
            .pragma("wal_autocheckpoint", LONGEST_LOG)
            // What a statement would need to undo itself goes to a temporary file otherwise.
            .pragma("temp_store", "MEMORY")
            .synchronous(SqliteSynchronous::Normal)
            // Whoever writes waits by itself, and says that it does.
            .busy_timeout(Duration::ZERO);
        let writer = pool(1).connect_lazy_with(writing.clone());
        let prepared = prepare(&writer).await;
        prepared.map_err(|error| connection::open_error(path.display().to_string(), error))?;
        let writer = writer.acquire().await;
        let writer = writer.map_err(|error| open_error(error.into()))?.detach();
        let file = DatabaseFile::identify(path, named).map_err(|error| open_error(error.into()))?;
        let file = Arc::new(file);
        let beside = options.clone().synchronous(SqliteSynchronous::Normal);
        let beside = pool(1).connect_lazy_with(beside);
        let folding = Arc::new(Folding::of(Arc::clone(&file), beside));
        let reader = pool(READERS).connect_lazy_with(options.read_only(true));
        let others = OtherWriters::of(path).map_err(|error| open_error(error.into()))?;
        Ok(Self(Arc::new(Inner {
            file,
            reader,
            turn: Arc::new(Mutex::new(Turn::of(writer, writing, Arc::clone(&folding)))),
            folding,
            others,
        })))
    }

    /// Lets the file grow no further than to so many pages.
    #[cfg(feature = "private-cluster")]
    pub(crate) async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        let mut turn = self.0.turn.lock().await;
        let limit = format!("PRAGMA max_page_count = {pages}");
        sqlx::query(sqlx::AssertSqlSafe(limit))
            .execute(turn.connection().await?)
            .await?;
        Ok(())
    }

    /// Writes everything as of one moment to an empty file, while others read and write.
    pub(crate) async fn vacuum_into(&self, path: &Path) -> Result<(), StoreError> {
        self.check_file()?;
        let mut connection = self.0.reader.acquire().await?;
        sqlx::query("VACUUM INTO $1")
            .bind(path.to_string_lossy().into_owned())
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// The schema of the file at this path, which is only read; `None` when there is no file.
    pub(crate) async fn schema(path: &Path) -> Result<Option<SchemaVersion>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let version = schema::of_file(path).await;
        version
            .map(Some)
            .map_err(|error| connection::open_error(path.display().to_string(), error))
    }

    pub(crate) async fn close(&self) {
        self.0.folding.close().await;
        self.0.reader.close().await;
        self.0.turn.lock().await.close().await;
    }

    /// Whether the path still names the file that was opened.
    pub(crate) fn check_file(&self) -> Result<(), StoreError> {
        self.0.file.check()
    }

    pub(crate) async fn read(&self) -> Result<Connection, StoreError> {
        self.check_file()?;
        Ok(Connection::SqliteRead(self.0.reader.acquire().await?))
    }

    /// A transaction that reads one state of everything.
    pub(crate) async fn snapshot(&self) -> Result<Connection, StoreError> {
        self.check_file()?;
        Ok(Connection::SqliteSnapshot(self.0.reader.begin().await?))
    }

    /// The turn to write: the log is whole.
    async fn turn(&self) -> Result<OwnedMutexGuard<Turn>, StoreError> {
        let mut turn = Arc::clone(&self.0.turn).lock_owned().await;
        self.check_file()?;
        if self.0.file.lacks_pages() {
            self.fold(
                &mut turn,
                "a sync of its log failed, and the log cannot be folded while another reads it",
            )
            .await?;
        }
        Ok(turn)
    }

    pub(crate) async fn write(&self, durability: Durability) -> Result<Connection, StoreError> {
        let turn = self.turn().await?;
        let begun = self.begin(turn).await;
        Ok(Connection::SqliteWrite {
            transaction: self.0.file.known(begun).await?,
            file: Arc::clone(&self.0.file),
            durability,
        })
    }

    async fn begin(&self, turn: OwnedMutexGuard<Turn>) -> Result<WriteTransaction, sqlx::Error> {
        self.0.others.let_go_first().await;
        let begun = Instant::now();
        let mut waiting = self.0.others.wait();
        let mut transaction = WriteTransaction::of(turn);
        loop {
            match transaction.begin().await {
                Err(error) if is_busy(&error) && begun.elapsed() < BUSY_TIMEOUT => {
                    waiting.pause().await;
                }
                begun => return begun.map(|()| transaction),
            }
        }
    }

    /// Folds the whole log into the database and empties it: what a failed sync left out of the log is in the database then,
    /// and what follows stands behind no hole. Nothing is written before that is done. Other processes on the file are not
    /// told of the failure; the log is whole for them too once it is folded. Where another reads it for long, it fails in
    /// these words.
    async fn fold(&self, turn: &mut Turn, blocked: &'static str) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut waiting = self.0.others.wait();
        loop {
            let folded = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
                .fetch_one(turn.connection().await?)
                .await;
            let folded = self.0.file.known(folded).await?;
            if folded.try_get::<i64, _>("busy")? == 0 {
                break;
            }
            if begun.elapsed() >= BUSY_TIMEOUT {
                return Err(StoreError::Database(blocked.into()));
            }
            waiting.pause().await;
        }
        self.0.file.folded();
        // Whether the disk takes writes again: a failure counts as one more.
        self.sync().await
    }

    /// Waits until everything that was written is on the disk.
    pub(crate) async fn sync(&self) -> Result<(), StoreError> {
        PendingWrite::begun(self.0.file.sync()).durable().await
    }

    /// Lets the next syncs of the log fail.
    #[cfg(feature = "private-cluster")]
    pub(crate) fn fail_syncs(&self, count: u32) {
        self.0.file.fail_syncs(count);
    }

    /// Takes the lock of the leader and a new epoch, unless another process or another caller holds the lock and its lease
    /// is not over. A process that is stopped keeps its lock: who follows it leads without, until that one is gone.
    pub(crate) async fn try_acquire_leadership(
        &self,
        lease: Duration,
    ) -> Result<Option<SqliteLeadership>, StoreError> {
        let lock = self.try_lock_leadership()?;
        if lock.is_none() && self.read().await?.row(IS_OVER, values![]).await?.is_none() {
            return Ok(None);
        }
        let mut write = self.write(Durability::Durable).await?;
        // Of two standbys that find the lease over, the second finds it taken.
        if lock.is_none() && write.row(IS_OVER, values![]).await?.is_none() {
            return Ok(None);
        }
        let acquired = write.one_row(ACQUIRE, values![millis(lease)]).await?;
        write.commit().await?;
        Ok(Some(SqliteLeadership {
            database: self.clone(),
            epoch: acquired.integer("epoch")?,
            lock,
        }))
    }

    fn try_lock_leadership(&self) -> Result<Option<File>, StoreError> {
        let lock = file::open_beside(self.0.file.path(), "-lead")
            .map_err(|error| StoreError::Database(error.into()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::Database(error.into())),
        }
    }
}

/// The leader's epoch, and its lock: on a file beside the database, which the system releases when the process dies.
#[derive(Debug)]
pub(crate) struct SqliteLeadership {
    database: SqliteDatabase,
    epoch: i64,
    /// `None` while a process that led before is stopped and holds it.
    lock: Option<File>,
}

impl SqliteLeadership {
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Renews the lease. Fails when the epoch is another's, or the database is gone.
    pub(crate) async fn renew(&mut self, lease: Duration) -> Result<(), StoreError> {
        let mut write = self.database.write(Durability::Relaxed).await?;
        let renewed = write
            .execute(RENEW, values![self.epoch, millis(lease)])
            .await?;
        if renewed == 0 {
            return Err(StoreError::NotLeader);
        }
        write.commit().await?;
        if self.lock.is_none() {
            self.lock = self.database.try_lock_leadership()?;
        }
        Ok(())
    }

    /// Gives the lease and the lock back.
    pub(crate) async fn release(self) -> Result<(), StoreError> {
        let mut write = self.database.write(Durability::Relaxed).await?;
        write.execute(GIVE_BACK, values![self.epoch]).await?;
        write.commit().await
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn pool(connections: u32) -> SqlitePoolOptions {
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
    let begun = Instant::now();
    loop {
        match migrate(pool).await {
            Err(error) if passes(&error) && begun.elapsed() < OPENING_PATIENCE => {
                tokio::time::sleep(OPENING_PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Whether what is in the way of opening passes by itself: another opener, or a busy disk.
fn passes(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut) || is_busy(error)
}

fn is_busy(error: &sqlx::Error) -> bool {
    /// SQLITE_BUSY; the bits above the lowest eight give the reason.
    const BUSY: u32 = 5;
    error
        .as_database_error()
        .and_then(|error| error.code()?.parse::<u32>().ok())
        .is_some_and(|code| code & 0xff == BUSY)
}

/// Runs in one transaction, so that two processes starting at once do not migrate twice.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let table: Option<String> = sqlx::query_scalar(schema::TABLE_IN_SQLITE)
        .fetch_optional(&mut *transaction)
        .await?;
    // Not `run`, whose lifetimes keep the future of `open` from being spawned.
    schema::sqlite_migrations()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_is_not_opened_in_a_folder_of_a_network() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let its_own = folder.path().canonicalize().expect("is there");
        let asked = |folder: &Path| {
            assert_eq!(folder, its_own);
            Ok(DiskKind::served("fuse.sshfs"))
        };
        let refused = SqliteDatabase::open_on(&path, asked).await;
        let refused = refused.expect_err("it is of a network");
        assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
        let words = refused.to_string();
        assert!(
            words.contains("fuse.sshfs") && words.contains("store.url"),
            "{words}"
        );
        assert!(!path.exists(), "nothing is left there");
        let taken = SqliteDatabase::open_on(&path, |_| Ok(DiskKind::served("fuseblk"))).await;
        taken.expect("a disk of this machine");
    }

    #[tokio::test]
    async fn a_link_is_judged_by_the_folder_of_the_file_that_it_leads_to_there_or_not() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let root = folder.path().canonicalize().expect("is there");
        let remote = root.join("remote");
        std::fs::create_dir(&remote).expect("creates");
        let (link, file) = (root.join("sluice.db"), remote.join("sluice.db"));
        let further = root.join("further.db");
        std::os::unix::fs::symlink("remote/sluice.db", &link).expect("links");
        std::os::unix::fs::symlink(&link, &further).expect("links");
        let kind_of = |folder: &Path| {
            let is_remote = folder == remote;
            Ok(DiskKind::served(if is_remote {
                "fuse.sshfs"
            } else {
                "fuseblk"
            }))
        };
        for link in [&link, &further] {
            let refused = SqliteDatabase::open_on(link, kind_of).await;
            let words = refused.expect_err("it is of a network").to_string();
            assert!(words.contains("fuse.sshfs"), "{words}");
            assert!(words.contains("remote/sluice.db"), "{words}");
            assert!(!file.exists(), "nothing is left there");
        }
        std::fs::write(&file, "").expect("creates");
        let refused = SqliteDatabase::open_on(&link, kind_of).await;
        refused.expect_err("it is of a network");
        let untouched = file.metadata().expect("is there").len();
        assert_eq!(untouched, 0, "it is not migrated");
    }
}
