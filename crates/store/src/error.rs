//! What can go wrong with the database.

use std::path::PathBuf;

use thiserror::Error;

/// Cause of a failure, without the database library's types.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the store could not do what was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The path no longer names the file that was opened: deleted, moved away or replaced.
    #[error("the database file {} is gone or was replaced", path.display())]
    FileGone {
        /// Path the database was opened at.
        path: PathBuf,
    },
    /// The database could not be opened or brought to the current schema.
    #[error("cannot open the database {}: {source}", path.display())]
    Open {
        /// Path asked for.
        path: PathBuf,
        /// Cause.
        source: Cause,
    },
    /// As many webhooks exist as are allowed.
    #[error("{limit} webhooks exist, which is the limit")]
    TooManyWebhooks {
        /// The limit.
        limit: u32,
    },
    /// A stored value is not what this version writes.
    #[error("the database holds an invalid {what}")]
    Corrupt {
        /// Table and column.
        what: &'static str,
    },
    /// A value does not fit the database's 64-bit signed integers.
    #[error("{what} is too large to be stored")]
    OutOfRange {
        /// What was to be stored.
        what: &'static str,
    },
    /// The database refused or failed: disk full, locked for too long, input/output error.
    #[error("the database failed: {0}")]
    Database(#[source] Cause),
}
