//! [`StoreError`]: the reasons for which an operation on the store fails.

use std::{path::PathBuf, time::Duration};

use thiserror::Error;

use crate::model::Timestamp;

/// Cause of a failure, without the database library's types.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation on the store failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The path no longer names the file that was opened: deleted, moved away or replaced.
    #[error("the database file {} is gone or was replaced", path.display())]
    FileGone {
        /// Path the database was opened at.
        path: PathBuf,
    },
    /// The database could not be opened or brought to the current schema.
    #[error("cannot open the database {place}: {source}")]
    Open {
        /// Which: a path, or database and host, never a password.
        place: String,
        /// Cause.
        source: Cause,
    },
    /// A newer release has brought the database to a schema that this one does not know.
    #[error(
        "the database {place} has schema {version}, which this release does not know: a newer one has migrated it; \
         start that one, or restore a backup from before"
    )]
    NewerSchema {
        /// Which: a path, or database and host, never a password.
        place: String,
        /// The first schema that is not known.
        version: i64,
    },
    /// A backup could not be written or read.
    #[error("the backup {}: {source}", path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: Cause,
    },
    /// A backup was to go into a store that is not empty.
    #[error(
        "the store has {what} already, and a backup goes into an empty one alone: let store.path or store.url name a new \
         database"
    )]
    NotEmpty {
        /// What it has.
        what: String,
    },
    /// A backup was to go into a store in which a process leads.
    #[error(
        "a process leads in this store: stop every sluice that uses it, wait ten seconds, and restore then"
    )]
    Led,
    /// Something is encrypted under a key that this process does not have.
    #[error(
        "secrets and headers of webhooks are encrypted under the key {id}, which is not configured: set store.encryption-key \
         or store.previous-encryption-key to it (SLUICE_STORE__ENCRYPTION_KEY, or with _FILE behind it a file that holds it)"
    )]
    NoEncryptionKey {
        /// The key's id.
        id: String,
    },
    /// The owner has as many webhooks as are allowed.
    #[error("the owner has {limit} webhooks, which is the limit")]
    TooManyWebhooks {
        /// The limit.
        limit: u32,
    },
    /// A backfill was asked for while the one before is not done.
    #[error("a backfill of the webhook is not done yet")]
    BackfillPending,
    /// The idempotency key was given with a request for another webhook.
    #[error("the idempotency key was given with another request for webhook {webhook}")]
    IdempotencyKeyReused {
        /// The webhook that the earlier request created.
        webhook: String,
    },
    /// The webhook was written since it was read.
    #[error("the webhook is at version {current} by now")]
    VersionConflict {
        /// Its version.
        current: u64,
    },
    /// A webhook would name more addresses than are allowed.
    #[error("the webhook would name {count} {what}, but at most {limit} are allowed")]
    TooManyAddresses {
        /// `accounts` or `programs`.
        what: &'static str,
        /// How many it would name.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The webhooks of one API key would watch more addresses together than it is allowed.
    #[error(
        "the key's webhooks would watch {count} addresses together, but at most {limit} are allowed"
    )]
    AddressQuota {
        /// How many they would watch.
        count: u64,
        /// The limit.
        limit: u32,
    },
    /// As much is kept for the webhooks of one API key as it is allowed.
    #[error("{bytes} bytes of messages are kept for the key, and {limit} are allowed")]
    StoredQuota {
        /// How many are kept.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The rate of one API key holds messages back, so that no more are put on the way for it.
    #[error(
        "{limit} messages a second are allowed to the key, and those that wait take {wait:?} or longer"
    )]
    MessageRate {
        /// The limit.
        limit: u32,
        /// How long those that wait take, unless more come meanwhile: whole seconds, at least one.
        wait: Duration,
    },
    /// An owner's IDLs would take more than is held of them.
    #[error("the IDLs of the key would have {bytes} bytes, and {limit} are allowed")]
    IdlQuota {
        /// How many they would have.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// As many secrets as are allowed sign beside the current one.
    #[error("{limit} secrets before this one sign until {until} or longer, which is the limit")]
    TooManySecrets {
        /// The limit.
        limit: usize,
        /// When the first of them ends.
        until: Timestamp,
    },
    /// No event of the kinds that a webhook subscribes to could match its filters.
    #[error("the webhook would match nothing any more")]
    MatchesNothing,
    /// There is an API key of this name already.
    #[error("there is an API key named {name} already")]
    ApiKeyExists {
        /// The name.
        name: String,
    },
    /// The API key that should own something does not exist or is revoked.
    #[error("there is no API key {key}, or it was revoked")]
    NoSuchApiKey {
        /// Its identifier.
        key: String,
    },
    /// Another process leads by now, or may: what this one wanted to write as the leader was refused, all of it.
    #[error("this process does not lead any more; what it wrote as the leader was refused")]
    NotLeader,
    /// Messages with the ids of a commit's were stored between looking them up and storing them.
    #[error("messages with duplicate ids are being stored at the same time")]
    DuplicateMessages,
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
    /// The database did not answer in time: it is overloaded, or cut off.
    #[error("the database has not answered for {seconds} s")]
    NoAnswer {
        /// The limit.
        seconds: u64,
    },
    /// The database undid the transaction for the sake of another one, each time that it was tried.
    #[error("other transactions were in the way: {0}")]
    Conflict(#[source] Cause),
    /// The disk of the database has no room; nothing of the transaction is stored.
    #[error(
        "the disk of the database is full: make room on it, and everything goes on by itself ({0})"
    )]
    Full(#[source] Cause),
    /// The database refused or failed: locked for too long, input/output error.
    #[error("the database failed: {0}")]
    Database(#[source] Cause),
}

impl StoreError {
    /// What kind of outage of the database it shows, for a log of outages.
    #[must_use]
    pub const fn outage(&self) -> &'static str {
        match self {
            Self::Full(_) => "the disk of the database is full",
            _ => "the database does not answer",
        }
    }
}
