//! Being the one who indexes.

use super::store::{Database, Store};
use crate::{
    StoreError,
    backend::{PostgresLead, SqliteLead},
};

/// The right to index: one holder at a time per database. It ends when it is dropped or the process dies,
/// so that a standby takes over.
///
/// It saves work; it is not what keeps the data right. Two indexers at once would store each message once
/// all the same, because ids follow from the events.
#[derive(Debug)]
pub struct Lead(Holder);

#[derive(Debug)]
enum Holder {
    Sqlite(SqliteLead),
    Postgres(Box<PostgresLead>),
}

impl Store {
    /// Takes the lead unless somebody else has it. A standby asks again every second or so.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn try_lead(&self) -> Result<Option<Lead>, StoreError> {
        Ok(match &self.database {
            Database::Sqlite(database) => database.try_lead()?.map(Holder::Sqlite),
            Database::Postgres(database) => database
                .try_lead()
                .await?
                .map(|lead| Holder::Postgres(Box::new(lead))),
        }
        .map(Lead))
    }
}

impl Lead {
    /// Asks whether the lead is still held; the holder does so every second or so, and stops indexing when
    /// it is not.
    ///
    /// # Errors
    /// The lead is lost: the connection that held it is gone, or the database file.
    pub async fn check(&mut self) -> Result<(), StoreError> {
        match &mut self.0 {
            Holder::Sqlite(lead) => lead.check(),
            Holder::Postgres(lead) => lead.check().await,
        }
    }

    /// Gives the lead to whoever asks next.
    ///
    /// # Errors
    /// A failure of the database; the lead ends all the same.
    pub async fn resign(self) -> Result<(), StoreError> {
        match self.0 {
            Holder::Sqlite(lead) => {
                drop(lead);
                Ok(())
            }
            Holder::Postgres(lead) => lead.resign().await,
        }
    }
}
