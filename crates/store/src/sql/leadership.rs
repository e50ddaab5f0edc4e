//! Leadership: the right of one process per database to ingest the chain, and the epoch of its writes.
//!
//! A lock shows that a leader has ended, for it goes with the leader's process or connection. A lease shows that one
//! stands still: stopped, or cut off from the database. Neither keeps a leader that comes back from going on where it
//! was, so each leadership has an epoch, a number greater than all before: what a leader writes, it writes through
//! [`Leadership::store`], and the database refuses every write of an epoch that is not the newest.

use std::time::Duration;

use super::store::{Database, Store};
use crate::{
    StoreError,
    backend::{PostgresLeadership, SqliteLeadership},
};

/// How long a leader leads after it last renewed that, by the database's clock. It renews it every second; another one
/// takes over when it was silent for this long, and within three seconds more. In PostgreSQL so is one followed that holds the
/// lock without a lease, stopped before its first or after its last.
const LEASE: Duration = Duration::from_secs(9);

/// What a standby takes beyond the lease: it asks every second, and waits for the lock of a leader that stands still.
const TAKING: Duration = Duration::from_secs(3);

/// Longest time from a leader's last renewal until another one leads, on a machine that is not busy: what subscribers are promised.
const TAKE_OVER: Duration = Duration::from_secs(15);

const _: () = assert!(LEASE.as_secs() + TAKING.as_secs() <= TAKE_OVER.as_secs());

/// The right to ingest the chain: one leader at a time per database. It ends when it is dropped or the
/// process dies, and when it is not renewed in time, so that a standby takes over.
#[derive(Debug)]
pub struct Leadership {
    holder: Holder,
    store: Store,
}

#[derive(Debug)]
enum Holder {
    Sqlite(SqliteLeadership),
    Postgres(Box<PostgresLeadership>),
}

impl Store {
    /// Acquires the leadership unless another process has it. A standby tries again every second or so.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn try_acquire_leadership(&self) -> Result<Option<Leadership>, StoreError> {
        let holder = match &self.database {
            Database::Sqlite(database) => database
                .try_acquire_leadership(LEASE)
                .await?
                .map(Holder::Sqlite),
            Database::Postgres(database) => database
                .try_acquire_leadership(LEASE)
                .await?
                .map(|leadership| Holder::Postgres(Box::new(leadership))),
        };
        let Some(holder) = holder else {
            return Ok(None);
        };
        let store = Self {
            epoch: Some(holder.epoch()),
            ..self.clone()
        };
        // The leader before may have ended before it did so.
        store.settle().await?;
        Ok(Some(Leadership { store, holder }))
    }
}

impl Holder {
    fn epoch(&self) -> i64 {
        match self {
            Self::Sqlite(leadership) => leadership.epoch(),
            Self::Postgres(leadership) => leadership.epoch(),
        }
    }
}

impl Leadership {
    /// The store for all that the leader writes: its writes are refused with [`StoreError::NotLeader`], all of each, once
    /// another process has taken over.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Renews the leadership; the leader does so every second or so, and stops ingesting when that fails.
    ///
    /// # Errors
    /// The leadership is lost: another process leads, the connection that held it is gone, or the database file.
    pub async fn renew(&mut self) -> Result<(), StoreError> {
        match &mut self.holder {
            Holder::Sqlite(leadership) => leadership.renew(LEASE).await,
            Holder::Postgres(leadership) => leadership.renew(LEASE).await,
        }
    }

    /// Ends the leadership; the next standby that tries acquires it.
    ///
    /// # Errors
    /// A failure of the database; the leadership ends all the same.
    pub async fn release(self) -> Result<(), StoreError> {
        match self.holder {
            Holder::Sqlite(leadership) => leadership.release().await,
            Holder::Postgres(leadership) => leadership.release().await,
        }
    }
}
