//! Redelivers finished messages on request of their owner.

use super::{retried::retried, store::Store, webhook_row};
use crate::{
    Access, MessageId, Redeliver, StoreError, Timestamp, WebhookId,
    backend::{Connection, Durability, values},
};

impl Store {
    /// Makes finished deliveries of a webhook due at `now`, with the whole schedule of attempts before them,
    /// and returns how many there were; `None` when there is no such webhook. Pending ones are left as they
    /// are, except that one which waits for a retry is due at once. What is redelivered is in no lane,
    /// whatever order the webhook asks for.
    ///
    /// # Errors
    /// A failure of the database; nothing is changed then.
    pub async fn redeliver(
        &self,
        access: &Access,
        id: &WebhookId,
        which: &Redeliver,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        retried!(self.try_redeliver(access, id, which, now))
    }

    async fn try_redeliver(
        &self,
        access: &Access,
        id: &WebhookId,
        which: &Redeliver,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((webhook, _)) =
            webhook_row::lock(&mut write, access, id, None, &self.keys).await?
        else {
            return Ok(None);
        };
        let (first, last) = match which {
            Redeliver::Message(message) => {
                let Some(sequence) = sequence_of(&mut write, webhook, message).await? else {
                    return Ok(Some(0));
                };
                (sequence, sequence)
            }
            Redeliver::Range(first, last) => (
                i64::try_from(*first).unwrap_or(i64::MAX),
                i64::try_from(*last).unwrap_or(i64::MAX),
            ),
            Redeliver::Failed => (0, i64::MAX),
        };
        let finished = if *which == Redeliver::Failed {
            "UPDATE deliveries SET state = 'pending', retry_index = 0, lane = NULL, finished_at = NULL, due_at = $4,
                 scheduled_at = NULL
             WHERE webhook = $1 AND sequence BETWEEN $2 AND $3 AND state = 'failed'"
        } else {
            "UPDATE deliveries SET state = 'pending', retry_index = 0, lane = NULL, finished_at = NULL, due_at = $4,
                 scheduled_at = NULL
             WHERE webhook = $1 AND sequence BETWEEN $2 AND $3 AND state <> 'pending'"
        };
        let mut count = write
            .execute(finished, values![webhook, first, last, now])
            .await?;
        if *which != Redeliver::Failed {
            count = count.saturating_add(
                write
                    .execute(
                        "UPDATE deliveries SET due_at = $4, scheduled_at = NULL, retry_index = 0
                         WHERE webhook = $1 AND sequence BETWEEN $2 AND $3 AND lease_token IS NULL
                             AND due_at > $4",
                        values![webhook, first, last, now],
                    )
                    .await?,
            );
        }
        write.commit().await?;
        Ok(Some(count))
    }
}

/// The number of a message of a webhook; `None` when it has none of that id.
pub(super) async fn sequence_of(
    write: &mut Connection,
    webhook: i64,
    message: &MessageId,
) -> Result<Option<i64>, StoreError> {
    let found = write
        .row(
            "SELECT sequence FROM messages WHERE id = $1 AND webhook = $2",
            values![message.as_str(), webhook],
        )
        .await?;
    found.map(|row| row.integer("sequence")).transpose()
}
