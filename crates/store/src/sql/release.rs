//! Releases leases that were not used: their deliveries are due again at once.

use serde::Serialize;

use super::{retried::retried, store::Store};
use crate::{
    Lease, StoreError, Timestamp,
    backend::{Durability, json_rows, over_rows, signed, values},
};

#[derive(Serialize)]
struct LeaseRow {
    webhook: i64,
    sequence: i64,
    lease_token: i64,
}

impl Store {
    /// Makes leased deliveries due again at `now`, unattempted. Of a lane only the first is due.
    ///
    /// # Errors
    /// A failure of the database; the deliveries are due again when their leases run out.
    pub async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        if leases.is_empty() {
            return Ok(());
        }
        let rows = leases
            .iter()
            .map(|lease| {
                Ok(LeaseRow {
                    webhook: lease.ordinal,
                    sequence: signed(lease.sequence, "sequence")?,
                    lease_token: lease.token.0,
                })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        let rows = json_rows(&rows)?;
        retried!(self.try_release(&rows, now))
    }

    async fn try_release(&self, leases: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        // In the order of the key, whatever the order of the leases: two that release the same ones wait for each other.
        write
            .lock(
                "SELECT d.sequence FROM deliveries d WHERE (d.webhook, d.sequence) IN (
                     SELECT t.webhook, t.sequence
                     FROM json_to_recordset(CAST($1 AS json)) AS t (webhook bigint, sequence bigint))
                 ORDER BY d.webhook, d.sequence FOR UPDATE",
                values![leases],
            )
            .await?;
        write
            .execute(
                over_rows!(
                    [webhook bigint, sequence bigint, lease_token bigint],
                    "UPDATE deliveries SET lease_token = NULL,
                         due_at = CASE WHEN deliveries.lane IS NOT NULL AND EXISTS (
                                 SELECT 1 FROM deliveries d
                                 WHERE d.webhook = deliveries.webhook AND d.lane = deliveries.lane
                                     AND d.state = 'pending' AND d.sequence < deliveries.sequence)
                             THEN NULL ELSE $2 END
                     FROM v
                     WHERE deliveries.webhook = v.webhook AND deliveries.sequence = v.sequence
                         AND deliveries.lease_token = v.lease_token"
                ),
                values![leases, now],
            )
            .await?;
        write.commit().await
    }
}
