//! Leadership: the right of one process per database to ingest the chain.

use super::store::{Database, Store};
use crate::{
    StoreError,
    backend::{PostgresLeadership, SqliteLeadership},
};

/// The right to ingest the chain: one leader at a time per database. It ends when it is dropped or the
/// process dies, so that a standby takes over.
///
/// It saves work; it is not what keeps the data right. Two leaders at once would store each message once
/// all the same, because ids follow from the events.
#[derive(Debug)]
pub struct Leadership(Holder);

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
        Ok(match &self.database {
            Database::Sqlite(database) => database.try_acquire_leadership()?.map(Holder::Sqlite),
            Database::Postgres(database) => database
                .try_acquire_leadership()
                .await?
                .map(|leadership| Holder::Postgres(Box::new(leadership))),
        }
        .map(Leadership))
    }
}

impl Leadership {
    /// Checks that this process still leads; the leader does so every second or so, and stops ingesting
    /// when it does not.
    ///
    /// # Errors
    /// The leadership is lost: the connection that held it is gone, or the database file.
    pub async fn check(&mut self) -> Result<(), StoreError> {
        match &mut self.0 {
            Holder::Sqlite(leadership) => leadership.check(),
            Holder::Postgres(leadership) => leadership.check().await,
        }
    }

    /// Ends the leadership; the next standby that tries acquires it.
    ///
    /// # Errors
    /// A failure of the database; the leadership ends all the same.
    pub async fn release(self) -> Result<(), StoreError> {
        match self.0 {
            Holder::Sqlite(leadership) => {
                drop(leadership);
                Ok(())
            }
            Holder::Postgres(leadership) => leadership.release().await,
        }
    }
}
