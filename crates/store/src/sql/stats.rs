//! Counts messages and deliveries, for metrics and health.

use super::store::Store;
use crate::{
    QueueStats, StoreError, Timestamp,
    backend::{unsigned, values},
};

impl Store {
    /// The queue in figures. It counts index entries: tens of milliseconds for a million messages.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn queue_stats(&self) -> Result<QueueStats, StoreError> {
        let mut read = self.settled_snapshot().await?;
        let row = read
            .one_row(
                "SELECT
                     (SELECT count(*) FROM deliveries WHERE state = 'pending') AS pending,
                     (SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL) AS leased,
                     (SELECT count(*) FROM deliveries WHERE state = 'failed') AS failed,
                     (SELECT count(*) FROM endpoints WHERE breaker <> 'closed') AS breakers_open,
                     (SELECT d.created_at FROM deliveries d JOIN webhooks w ON w.ordinal = d.webhook
                      WHERE d.state = 'pending' AND w.active = 1
                      ORDER BY d.created_at LIMIT 1) AS oldest_pending,
                     u.messages, u.bytes
                 FROM usage u",
                values![],
            )
            .await?;
        let figure = |column: &'static str| unsigned(row.integer(column)?, column);
        Ok(QueueStats {
            pending: figure("pending")?,
            leased: figure("leased")?,
            oldest_pending: row
                .optional_integer("oldest_pending")?
                .map(Timestamp::from_unix_millis),
            failed: figure("failed")?,
            kept: figure("messages")?,
            bytes: figure("bytes")?,
            breakers_open: figure("breakers_open")?,
        })
    }
}
