//! Fair turns among the processes that write one SQLite file: whoever wrote lets those go first that wait.
//!
//! SQLite gives its write lock to whoever asks while it is free. A process that writes without pause asks again at once, and one
//! that sleeps between its tries, as SQLite's busy handler does for up to 100 ms, finds it free once in many tries. So who waits
//! tries often and says that it waits, by a lock on a file beside the database, and who wrote looks for such locks and pauses. The
//! system gives a lock back when its process dies; one that is stopped while it waits costs the others that pause.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use tokio::time::sleep;

use super::file;

/// Pause between two tries for the write lock: a try costs some 50 microseconds, and a transaction takes milliseconds.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// How long who wrote leaves the write lock to those who wait: a few of their pauses, since a busy machine lets them sleep longer.
const YIELD_PAUSE: Duration = Duration::from_millis(5);

/// The writers of other processes.
#[derive(Debug)]
pub(super) struct OtherWriters {
    waiting: File,
}

/// This process waits for the write lock, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    others: &'a OtherWriters,
    /// Whether the others can see it: one of them may have been looking just then.
    seen: bool,
}

impl OtherWriters {
    /// Those of the database at this path.
    pub(super) fn of(database: &Path) -> io::Result<Self> {
        let waiting = file::open_beside(database, "-wait")?;
        Ok(Self { waiting })
    }

    /// Pauses if one of them waits.
    pub(super) async fn let_go_first(&self) {
        match self.waiting.try_lock() {
            // An unlock fails for a closed file alone.
            Ok(()) => _ = self.waiting.unlock(),
            Err(TryLockError::WouldBlock) => sleep(YIELD_PAUSE).await,
            // Without locks it is as unfair as SQLite itself.
            Err(TryLockError::Error(_)) => {}
        }
    }

    /// Says to them that this process waits.
    pub(super) const fn wait(&self) -> Waiting<'_> {
        Waiting {
            others: self,
            seen: false,
        }
    }
}

impl Waiting<'_> {
    /// Pauses before the next try.
    pub(super) async fn pause(&mut self) {
        self.seen = self.seen || self.others.waiting.try_lock_shared().is_ok();
        sleep(RETRY_PAUSE).await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.seen {
            // It fails for a closed file alone.
            let _ = self.others.waiting.unlock();
        }
    }
}
