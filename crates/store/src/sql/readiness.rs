//! Readiness: what tells whether events reach their webhooks, in one statement.
//!
//! Each process asks for it several times a second, also while deliveries take all processors: each statement more is one more
//! wait for the thread of a connection, or for the server.

use super::store::Store;
use crate::{
    FilterState, Readiness, Revision, StoreError,
    backend::{Sql, database_time, values},
};

/// Most pending deliveries that are counted, so that it takes no longer however many there are. The metrics have all.
const MAX_COUNTED: i64 = 1_000;

macro_rules! readiness {
    ($database:ident) => {
        concat!(
            "SELECT
                 (SELECT slot FROM checkpoints WHERE commitment = 'confirmed') AS checkpoint,
                 (SELECT revision FROM filter_state) AS revision,
                 (SELECT in_force_slot FROM filter_state) AS in_force_slot,
                 (SELECT count(*) FROM
                     (SELECT webhook FROM deliveries WHERE state = 'pending' LIMIT $1) AS counted)
                     + (SELECT CAST(coalesce(sum(pending), 0) AS BIGINT) FROM staged_batches) AS pending,
                 (SELECT count(*) FROM leadership WHERE until IS NULL OR until < ",
            database_time!($database),
            ") AS silent"
        )
    };
}

const READINESS: Sql = Sql {
    sqlite: readiness!(sqlite),
    postgres: readiness!(postgres),
};

impl Store {
    /// What tells whether events reach their webhooks.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn readiness(&self) -> Result<Readiness, StoreError> {
        let mut read = self.read().await?;
        let row = read.one_row(READINESS, values![MAX_COUNTED]).await?;
        let revision = row.optional_unsigned("revision")?;
        let in_force_slot = row.optional_unsigned("in_force_slot")?;
        let filter = revision.zip(in_force_slot);
        Ok(Readiness {
            checkpoint: row.optional_unsigned("checkpoint")?,
            filter: filter.map(|(revision, in_force_slot)| FilterState {
                revision: Revision(revision),
                in_force_slot,
            }),
            pending_deliveries: row.unsigned("pending")?,
            leader_is_silent: row.unsigned("silent")? > 0,
        })
    }
}
