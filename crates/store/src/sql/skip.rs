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
    backend::{Durability, values},
};

impl Store {
    /// Gives a pending message up, as if the schedule of its attempts were over: it is failed, and may be redelivered. An
    /// attempt that is in flight counts no more. `None` when there is no such webhook.
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
        let skipped = write
            .row(
                "UPDATE deliveries SET state = 'failed', lease_token = NULL, due_at = NULL, finished_at = $3
                 WHERE webhook = $1 AND sequence = $2 AND state = 'pending' RETURNING lane",
                values![webhook, sequence, now],
            )
            .await?;
        let Some(skipped) = skipped else {
            return Ok(Some(Skipped::Finished));
        };
        if let Some(lane) = skipped.optional_text("lane")? {
            lanes::wake(&mut write, &[Lane { webhook, lane }], now).await?;
        }
        write.commit().await?;
        Ok(Some(Skipped::Skipped))
    }
}
