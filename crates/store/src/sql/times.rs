//! Times as parameters and in columns, unix milliseconds; the clock of the database's server.

use super::store::{Database, Store};
use crate::{
    StoreError, Timestamp,
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
