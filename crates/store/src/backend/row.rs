//! One row of an answer: reads columns by name, from either database.

use sqlx::{Row as _, postgres::PgRow, sqlite::SqliteRow};

use super::statement::{Kind, Value};
use crate::StoreError;

/// One row of an answer.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

macro_rules! column {
    ($row:expr, $name:expr) => {
        match $row {
            Row::Sqlite(row) => row.try_get($name).map_err(StoreError::from),
            Row::Postgres(row) => row.try_get($name).map_err(StoreError::from),
        }
    };
}

impl Row {
    pub(crate) fn integer(&self, name: &str) -> Result<i64, StoreError> {
        column!(self, name)
    }

    pub(crate) fn optional_integer(&self, name: &str) -> Result<Option<i64>, StoreError> {
        column!(self, name)
    }

    pub(crate) fn text(&self, name: &str) -> Result<String, StoreError> {
        column!(self, name)
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, StoreError> {
        column!(self, name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        column!(self, name)
    }

    /// What the column at this place holds, of whichever table it is.
    pub(crate) fn value(&self, at: usize, kind: Kind) -> Result<Value, StoreError> {
        Ok(match kind {
            Kind::Bigint => Value::Integer(column!(self, at)?),
            Kind::Text => Value::Text(column!(self, at)?),
            Kind::Bytes => {
                let bytes: Option<Vec<u8>> = column!(self, at)?;
                bytes.map_or(Value::Integer(None), Value::Bytes)
            }
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.integer(name)? != 0)
    }

    pub(crate) fn unsigned(&self, name: &'static str) -> Result<u64, StoreError> {
        unsigned(self.integer(name)?, name)
    }

    pub(crate) fn optional_unsigned(&self, name: &'static str) -> Result<Option<u64>, StoreError> {
        let value = self.optional_integer(name)?;
        value.map(|value| unsigned(value, name)).transpose()
    }

    pub(crate) fn count(&self, name: &'static str) -> Result<u32, StoreError> {
        u32::try_from(self.integer(name)?).map_err(|_| StoreError::Corrupt { what: name })
    }

    pub(crate) fn optional_count(&self, name: &'static str) -> Result<Option<u32>, StoreError> {
        let count = self.optional_integer(name)?.map(u32::try_from);
        count
            .transpose()
            .map_err(|_| StoreError::Corrupt { what: name })
    }
}

/// For the database, whose integers are signed.
pub(crate) fn signed(value: u64, what: &'static str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange { what })
}

/// From the database, where a CHECK keeps the value from being negative.
pub(crate) fn unsigned(value: i64, what: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::Corrupt { what })
}
