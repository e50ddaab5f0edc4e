//! [`Folding`]: folds SQLite's log into the database beside the writes, by a connection of its own.
//!
//! A write that folds the log itself keeps all others waiting for tens of milliseconds. Beside them it costs a sync of the disk and a
//! second processor. What is written meanwhile stays in the log, so it is only emptied where the writer rests, or folds the little
//! that was left when the log is long.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use sqlx::SqlitePool;

use super::file::DatabaseFile;

/// Transactions after which the log is folded: some ten megabytes of it where much is stored, and the pages that each of them writes
/// are folded once for all.
const COMMITS: u32 = 64;

#[derive(Debug)]
pub(super) struct Folding {
    pool: SqlitePool,
    file: Arc<DatabaseFile>,
    /// Since it was last begun.
    commits: AtomicU32,
    runs: AtomicBool,
}

impl Folding {
    /// By the connection of `pool`, which is opened when it is first needed.
    pub(super) fn of(file: Arc<DatabaseFile>, pool: SqlitePool) -> Self {
        Self {
            pool,
            file,
            commits: AtomicU32::new(0),
            runs: AtomicBool::new(false),
        }
    }

    /// Takes note of a transaction, and begins to fold after as many as are folded at once.
    pub(super) fn committed(self: &Arc<Self>) {
        let commits = self
            .commits
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        if commits < COMMITS || self.runs.swap(true, Ordering::AcqRel) {
            return;
        }
        self.commits.store(0, Ordering::Relaxed);
        let folding = Arc::clone(self);
        tokio::spawn(async move {
            folding.fold().await;
            folding.runs.store(false, Ordering::Release);
        });
    }

    /// Folds what is in the log. Where the disk lacks pages of it, the writer does, before it writes anything else; where the path
    /// names another file, nobody does.
    async fn fold(&self) {
        if self.file.lacks_pages() || self.file.check().is_err() {
            return;
        }
        let folded = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)");
        // What cannot be folded now stays in the log, where everybody reads it, and is folded by the next, or by a write.
        let _ = folded.fetch_one(&self.pool).await;
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}
