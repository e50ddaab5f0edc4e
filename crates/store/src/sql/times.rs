//! Times as parameters and in columns: unix milliseconds.

use crate::{
    StoreError, Timestamp,
    backend::{Row, Value},
};

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
