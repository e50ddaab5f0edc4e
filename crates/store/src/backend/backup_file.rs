//! [`BackupFile`]: an SQLite file with one state of every row, made once and only read afterwards.
//!
//! It has the tables of the store and no write-ahead log, so that it is one file to copy, on a network disk too.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use sqlx::{
    Row as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::{connection::Connection, schema, sqlite};
use crate::StoreError;

/// A backup, opened. What it made beside the backup goes when it is dropped.
#[derive(Debug)]
pub(crate) struct BackupFile {
    pool: SqlitePool,
    /// A copy that was brought to the schema of this release.
    copy: Option<RemovedOnDrop>,
}

/// A file under a name of its own, until it is whole.
#[derive(Debug)]
struct RemovedOnDrop(PathBuf);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        // It is not there any more once it has got its name.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A backup that is being written, under another name until it is whole and on the disk.
#[derive(Debug)]
pub(crate) struct UnfinishedBackup {
    path: PathBuf,
    partial: RemovedOnDrop,
}

impl UnfinishedBackup {
    /// Creates an empty file, readable for its owner only, since it is going to hold signing secrets.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        if path.exists() {
            return Err(failed(path, io::Error::other("there is a file already")));
        }
        let partial = beside(path, "partial");
        create_private(&partial).map_err(|error| failed(&partial, error))?;
        Ok(Self {
            path: path.to_owned(),
            partial: RemovedOnDrop(partial),
        })
    }

    /// Where it is written.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial.0
    }

    /// Opens it to be filled row by row, with the tables of the schema.
    pub(crate) async fn with_tables(&self) -> Result<BackupFile, StoreError> {
        let pool = migrated(self.partial()).await?;
        Ok(BackupFile { pool, copy: None })
    }

    /// Waits until it is on the disk, and gives it its name.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let finished = || {
            File::open(self.partial())?.sync_all()?;
            std::fs::rename(self.partial(), &self.path)?;
            let folder = self.path.parent().filter(|path| *path != Path::new(""));
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        finished().map_err(|error| failed(&self.path, error))
    }
}

impl BackupFile {
    /// Opens a backup to be read. One of an earlier schema is brought up to date in a copy beside it.
    pub(crate) async fn open(path: &Path) -> Result<Self, StoreError> {
        let schema = schema::of_file(path)
            .await
            .map_err(|error| failed(path, error))?;
        if schema.applied > schema.known {
            return Err(StoreError::NewerSchema {
                place: path.display().to_string(),
                version: schema.applied,
            });
        }
        if schema.applied == 0 {
            let fault = io::Error::other("it is an SQLite file, but not of this service");
            return Err(failed(path, fault));
        }
        let opened = if schema.applied == schema.known {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .read_only(true)
                .immutable(true);
            Self {
                pool: sqlite::pool(1).connect_lazy_with(options),
                copy: None,
            }
        } else {
            let copy = beside(path, "migrated");
            let mut to = create_private(&copy).map_err(|error| failed(&copy, error))?;
            let copy = RemovedOnDrop(copy);
            let copied = File::open(path).and_then(|mut from| io::copy(&mut from, &mut to));
            copied.map_err(|error| failed(&copy.0, error))?;
            Self {
                pool: migrated(&copy.0).await?,
                copy: Some(copy),
            }
        };
        opened.check(path).await?;
        Ok(opened)
    }

    /// Reads all of it, and fails when a page is damaged.
    async fn check(&self, path: &Path) -> Result<(), StoreError> {
        let answer = sqlx::query("PRAGMA quick_check(1)")
            .fetch_one(&self.pool)
            .await;
        let said = answer.and_then(|row| row.try_get::<String, _>(0));
        match said.map_err(|error| failed(path, error))?.as_str() {
            "ok" => Ok(()),
            damage => Err(failed(path, io::Error::other(damage.to_owned()))),
        }
    }

    /// Its one connection.
    pub(crate) async fn connection(&self) -> Result<Connection, StoreError> {
        Ok(Connection::SqliteRead(self.pool.acquire().await?))
    }

    pub(crate) async fn close(self) {
        self.pool.close().await;
        drop(self.copy);
    }
}

/// A connection to a file that has, or now gets, the schema of this release. Losing it with the machine does no harm.
async fn migrated(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Memory)
        .synchronous(SqliteSynchronous::Off)
        .foreign_keys(true);
    let pool = sqlite::pool(1).connect_lazy_with(options);
    sqlite::migrate(&pool)
        .await
        .map_err(|error| failed(path, error))?;
    Ok(pool)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

fn failed(path: &Path, source: impl Into<crate::error::Cause>) -> StoreError {
    StoreError::Backup {
        path: path.to_owned(),
        source: source.into(),
    }
}
