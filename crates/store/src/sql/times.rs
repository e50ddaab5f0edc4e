//! Times as parameters and in columns, unix milliseconds; the clock of the database's server.

use super::store::{Database, Store};
use crate::{
    SharedTime, StoreError, Timestamp,
    backend::{Row, Value, database_time, values},
};

impl Store {
    /// The time by the clock of the database's server, which all its processes share; `None` where the database is a
    /// file, and their clock the machine's.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn server_time(&self) -> Result<Option<Timestamp>, StoreError> {
        match &self.database {
            Database::Sqlite(_) => Ok(None),
            Database::Postgres(_) => {
                let mut read = self.read().await?;
                let row = read
                    .one_row(
                        concat!("SELECT ", database_time!(postgres), " AS now"),
                        values![],
                    )
                    .await?;
                row.time("now").map(Some)
            }
        }
    }
}

/// Newest times that are noted of deliveries, each found in an index. When one is due is not among them: that may be to come.
const NEWEST: &str = "
    SELECT max(
        coalesce((SELECT max(created_at) FROM deliveries WHERE state = 'pending'), 0),
        coalesce((SELECT max(finished_at) FROM deliveries WHERE finished_at IS NOT NULL), 0)) AS newest";

impl Store {
    /// What tells the time to all processes on this database; `None` where it is a file in which no delivery is noted yet.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn shared_time(&self) -> Result<Option<SharedTime>, StoreError> {
        if let Some(now) = self.server_time().await? {
            return Ok(Some(SharedTime::Server(now)));
        }
        let row = self.read().await?.one_row(NEWEST, values![]).await?;
        let newest = row.time("newest")?;
        Ok((newest.unix_millis() > 0).then_some(SharedTime::Noted(newest)))
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Integer(Some(value.unix_millis()))
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(value: Option<Timestamp>) -> Self {
        Self::Integer(value.map(Timestamp::unix_millis))
    }
}

impl Row {
    pub(crate) fn time(&self, name: &str) -> Result<Timestamp, StoreError> {
        self.integer(name).map(Timestamp::from_unix_millis)
    }

    pub(crate) fn optional_time(&self, name: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self
            .optional_integer(name)?
            .map(Timestamp::from_unix_millis))
    }
}
