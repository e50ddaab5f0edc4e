//! Committing slots in SQLite.

use std::collections::HashMap;

use sqlx::SqliteConnection;

use super::{Durability, Store, signed, unsigned};
use crate::{Committed, NewDelivery, StoreError, Timestamp, WebhookId};

impl Store {
    /// Stores the messages of a slot, numbers them in the order given, and moves the checkpoint to
    /// `slot`, unless it is further already: all of it or nothing. On disk when it returns. Known
    /// messages and those of webhooks that were deleted meanwhile are skipped. New messages are due
    /// at `now`.
    ///
    /// # Errors
    /// A failure of the database; nothing is stored then.
    pub async fn commit_slot(
        &self,
        slot: u64,
        deliveries: &[NewDelivery],
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        // `None` for a webhook that no longer exists.
        let mut sequences: HashMap<&WebhookId, Option<u64>> = HashMap::new();
        let mut inserted: u64 = 0;
        for delivery in deliveries {
            let next = match sequences.get(&delivery.webhook) {
                Some(next) => *next,
                None => next_sequence(&mut write, &delivery.webhook).await?,
            };
            let taken = match next {
                Some(sequence) => insert(&mut write, delivery, sequence, now).await?,
                None => false,
            };
            sequences.insert(
                &delivery.webhook,
                next.map(|sequence| sequence.saturating_add(u64::from(taken))),
            );
            inserted = inserted.saturating_add(u64::from(taken));
        }
        for (webhook, next) in sequences {
            if let Some(next) = next {
                sqlx::query("UPDATE webhooks SET next_sequence = ? WHERE id = ?")
                    .bind(signed(next, "sequence")?)
                    .bind(webhook.as_str())
                    .execute(&mut *write)
                    .await?;
            }
        }
        let checkpoint = move_checkpoint(&mut write, slot).await?;
        write.commit().await?;
        Ok(Committed {
            inserted,
            checkpoint,
        })
    }
}

async fn next_sequence(
    connection: &mut SqliteConnection,
    webhook: &WebhookId,
) -> Result<Option<u64>, StoreError> {
    let next: Option<i64> = sqlx::query_scalar("SELECT next_sequence FROM webhooks WHERE id = ?")
        .bind(webhook.as_str())
        .fetch_optional(connection)
        .await?;
    next.map(|next| unsigned(next, "webhooks.next_sequence"))
        .transpose()
}

/// False when the message is known already.
async fn insert(
    connection: &mut SqliteConnection,
    delivery: &NewDelivery,
    sequence: u64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO deliveries (id, webhook_id, sequence, slot, body, state, next_attempt_at, created_at)
         VALUES (?, ?, ?, ?, ?, 'pending', ?, ?)
         ON CONFLICT (id) DO NOTHING",
    )
    .bind(delivery.id.as_str())
    .bind(delivery.webhook.as_str())
    .bind(signed(sequence, "sequence")?)
    .bind(signed(delivery.slot, "slot")?)
    .bind(delivery.body.with_sequence(sequence).into_bytes())
    .bind(now.unix_millis())
    .bind(now.unix_millis())
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn move_checkpoint(connection: &mut SqliteConnection, slot: u64) -> Result<u64, StoreError> {
    let checkpoint = sqlx::query_scalar(
        "INSERT INTO checkpoint (one, slot) VALUES (1, ?)
         ON CONFLICT (one) DO UPDATE SET slot = max(slot, excluded.slot)
         RETURNING slot",
    )
    .bind(signed(slot, "slot")?)
    .fetch_one(connection)
    .await?;
    unsigned(checkpoint, "checkpoint.slot")
}
