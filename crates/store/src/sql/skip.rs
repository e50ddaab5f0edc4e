//! Skips a message that its endpoint will never accept, so that those of its lane after it have their turn.

use super::{
    lanes::{self, Lane},
    redeliver::sequence_of,
    retried::retried,
    store::Store,
    webhook_row,
};
use crate::{
    Access, MessageId, Skipped, StoreError, Timestamp, WebhookId,
    backend::{Durability, Sql, values},
};

/// Delivery `$2` of webhook `$1`, if it is pending. It is locked: whoever leases it leases those that go with it too.
const PENDING: Sql = Sql {
    sqlite: "SELECT lane, lease_token, due_at FROM deliveries
             WHERE webhook = $1 AND sequence = $2 AND state = 'pending'",
    postgres: "SELECT lane, lease_token, due_at FROM deliveries
               WHERE webhook = $1 AND sequence = $2 AND state = 'pending' FOR UPDATE",
};

impl Store {
    /// Gives a pending message up, as if the schedule of its attempts were over: it is failed, and may be redelivered. An
    /// attempt that is in flight counts no more; of a batch in flight the others count. `None` when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database; nothing is changed then.
    pub async fn skip(
        &self,
        access: &Access,
        id: &WebhookId,
        message: &MessageId,
        now: Timestamp,
    ) -> Result<Option<Skipped>, StoreError> {
        retried!(self.try_skip(access, id, message, now))
    }

    async fn try_skip(
        &self,
        access: &Access,
        id: &WebhookId,
        message: &MessageId,
        now: Timestamp,
    ) -> Result<Option<Skipped>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((webhook, _)) =
            webhook_row::lock(&mut write, access, id, None, &self.keys).await?
        else {
            return Ok(None);
        };
        let Some(sequence) = sequence_of(&mut write, webhook, message).await? else {
            return Ok(Some(Skipped::Unknown));
        };
        let pending = write.row(PENDING, values![webhook, sequence]).await?;
        let Some(pending) = pending else {
            return Ok(Some(Skipped::Finished));
        };
        write
            .execute(
                "UPDATE deliveries SET state = 'failed', lease_token = NULL, due_at = NULL, finished_at = $3
                 WHERE webhook = $1 AND sequence = $2",
                values![webhook, sequence, now],
            )
            .await?;
        if let Some(lane) = pending.optional_text("lane")? {
            let lane = Lane { webhook, lane };
            let token = pending.optional_integer("lease_token")?;
            // Only the first of a batch has the end of its lease.
            if let (Some(token), Some(until)) = (token, pending.optional_time("due_at")?) {
                lanes::wake_after_lease(&mut write, &lane, token, until).await?;
            }
            lanes::wake(&mut write, &[lane], now).await?;
        }
        write.commit().await?;
        Ok(Some(Skipped::Skipped))
    }
}
