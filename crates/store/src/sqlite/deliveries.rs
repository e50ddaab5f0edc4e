//! Leases and results in SQLite.

use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Durability, Store, unsigned, webhooks};
use crate::{
    Attempt, ClaimLimits, ClaimedDelivery, Delivery, DeliveryState, MessageId, Outcome, Secret,
    StoreError, Timestamp, WebhookId,
};

/// Longest error text kept of an attempt, in characters: enough to see what happened, too little to
/// fill a disk with.
const MAX_ERROR_CHARS: usize = 500;

/// Active webhooks that have a due message nobody holds, the longest waiting first.
const WEBHOOKS_WITH_DUE: &str = "
    SELECT w.id, w.url, w.secret,
        (SELECT count(*) FROM deliveries l INDEXED BY deliveries_leased
         WHERE l.webhook_id = w.id AND l.lease_until > ?1) AS leased,
        (SELECT d.next_attempt_at FROM deliveries d INDEXED BY deliveries_pending
         WHERE d.webhook_id = w.id AND d.state = 'pending' AND d.next_attempt_at <= ?1
             AND (d.lease_until IS NULL OR d.lease_until <= ?1)
         ORDER BY d.next_attempt_at, d.sequence LIMIT 1) AS oldest
    FROM webhooks w
    WHERE w.active = 1 AND oldest IS NOT NULL
    ORDER BY oldest";

const CLAIM: &str = "
    UPDATE deliveries SET lease_until = ?3
    WHERE id IN (
        SELECT id FROM deliveries INDEXED BY deliveries_pending
        WHERE webhook_id = ?2 AND state = 'pending' AND next_attempt_at <= ?1
            AND (lease_until IS NULL OR lease_until <= ?1)
        ORDER BY next_attempt_at, sequence LIMIT ?4)
    RETURNING id, sequence, CAST(body AS TEXT) AS body, attempts";

impl Store {
    /// Takes due messages of active webhooks under a lease until `lease_until`, which must lie beyond
    /// the deadline of a delivery. A message whose lease ran out is due again.
    ///
    /// # Errors
    /// A failure of the database; nothing is claimed then.
    pub async fn claim_due(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limits: ClaimLimits,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        // Asked on a reading connection first: mostly nothing is due, and then nobody waits for a turn.
        let mut reader = self.read().await?;
        let due = webhooks_with_due(&mut reader, now).await?;
        drop(reader);
        if due
            .iter()
            .all(|webhook| webhook.leased >= limits.per_webhook)
        {
            return Ok(Vec::new());
        }
        let mut write = self.write(Durability::Relaxed).await?;
        let mut claimed = Vec::new();
        let mut left = limits.total;
        for webhook in webhooks_with_due(&mut write, now).await? {
            let take = limits.per_webhook.saturating_sub(webhook.leased).min(left);
            if take == 0 {
                continue;
            }
            let taken = claim(&mut write, &webhook, now, lease_until, take).await?;
            left = left.saturating_sub(u32::try_from(taken.len()).unwrap_or(u32::MAX));
            claimed.extend(taken);
        }
        write.commit().await?;
        Ok(claimed)
    }

    /// Records a finished attempt and what it means. Ignored when the lease was lost to another
    /// claimer, except that an accepted message is accepted whoever delivered it. Returns whether it
    /// counted.
    ///
    /// # Errors
    /// A failure of the database; the message returns when its lease runs out.
    pub async fn record_attempt(
        &self,
        delivery: &ClaimedDelivery,
        attempt: &Attempt,
        outcome: &Outcome,
    ) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let finished = attempt.started.after(attempt.duration);
        if !advance(&mut write, delivery, outcome, finished).await? {
            return Ok(false);
        }
        insert_attempt(&mut write, delivery, attempt).await?;
        match outcome {
            Outcome::Accepted => {
                sqlx::query(
                    "UPDATE webhooks SET last_triggered_at = max(coalesce(last_triggered_at, 0), ?) WHERE id = ?",
                )
                .bind(finished.unix_millis())
                .bind(delivery.webhook.as_str())
                .execute(&mut *write)
                .await?;
            }
            Outcome::Gone { reason, .. } => {
                webhooks::disable(&mut write, &delivery.webhook, &delivery.url, reason).await?;
            }
            Outcome::Retry { .. } | Outcome::Exhausted => {}
        }
        write.commit().await?;
        Ok(true)
    }

    /// Gives a claimed message back at once, unattempted.
    ///
    /// # Errors
    /// A failure of the database; the message returns when its lease runs out.
    pub async fn release(&self, delivery: &ClaimedDelivery) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        sqlx::query("UPDATE deliveries SET lease_until = NULL WHERE id = ? AND lease_until = ?")
            .bind(delivery.id.as_str())
            .bind(delivery.lease_until.unix_millis())
            .execute(&mut *write)
            .await?;
        write.commit().await
    }

    /// How many messages wait for delivery, those of switched-off webhooks included.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn pending_deliveries(&self) -> Result<u64, StoreError> {
        let mut connection = self.read().await?;
        let count = sqlx::query_scalar("SELECT count(*) FROM deliveries WHERE state = 'pending'")
            .fetch_one(&mut *connection)
            .await?;
        unsigned(count, "count of deliveries")
    }

    /// The messages of a webhook after sequence number `after`, in order.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn deliveries_of(
        &self,
        webhook: &WebhookId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT id, sequence, state, attempts, next_attempt_at FROM deliveries
             WHERE webhook_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
        )
        .bind(webhook.as_str())
        .bind(i64::try_from(after).unwrap_or(i64::MAX))
        .bind(limit)
        .fetch_all(&mut *connection)
        .await?;
        rows.iter().map(delivery_of).collect()
    }

    /// The finished attempts of a message, in order.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn attempts_of(&self, id: &MessageId) -> Result<Vec<Attempt>, StoreError> {
        let mut connection = self.read().await?;
        let rows = sqlx::query(
            "SELECT started_at, duration_ms, status, error FROM attempts WHERE delivery_id = ? ORDER BY number",
        )
        .bind(id.as_str())
        .fetch_all(&mut *connection)
        .await?;
        rows.iter().map(attempt_of).collect()
    }
}

struct DueWebhook {
    id: WebhookId,
    url: String,
    secret: Secret,
    leased: u32,
}

async fn webhooks_with_due(
    connection: &mut SqliteConnection,
    now: Timestamp,
) -> Result<Vec<DueWebhook>, StoreError> {
    let rows = sqlx::query(WEBHOOKS_WITH_DUE)
        .bind(now.unix_millis())
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(DueWebhook {
                id: WebhookId::parse(row.try_get("id")?).map_err(|_| StoreError::Corrupt {
                    what: "webhooks.id",
                })?,
                url: row.try_get("url")?,
                secret: Secret::from_stored(row.try_get("secret")?),
                leased: row.try_get("leased")?,
            })
        })
        .collect()
}

async fn claim(
    connection: &mut SqliteConnection,
    webhook: &DueWebhook,
    now: Timestamp,
    lease_until: Timestamp,
    take: u32,
) -> Result<Vec<ClaimedDelivery>, StoreError> {
    let mut rows = sqlx::query(CLAIM)
        .bind(now.unix_millis())
        .bind(webhook.id.as_str())
        .bind(lease_until.unix_millis())
        .bind(take)
        .fetch_all(connection)
        .await?
        .iter()
        .map(|row| {
            let delivery = ClaimedDelivery {
                id: message_id_of(row)?,
                webhook: webhook.id.clone(),
                url: webhook.url.clone(),
                secret: webhook.secret.clone(),
                body: row.try_get("body")?,
                attempts_before: row.try_get("attempts")?,
                lease_until,
            };
            Ok((row.try_get::<i64, _>("sequence")?, delivery))
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    // RETURNING promises no order, and receivers like to see theirs.
    rows.sort_unstable_by_key(|(sequence, _)| *sequence);
    Ok(rows.into_iter().map(|(_, delivery)| delivery).collect())
}

/// Moves the message to its next state; false when it is finished or under someone else's lease.
async fn advance(
    connection: &mut SqliteConnection,
    delivery: &ClaimedDelivery,
    outcome: &Outcome,
    finished: Timestamp,
) -> Result<bool, StoreError> {
    let (state, next_attempt_at) = match outcome {
        Outcome::Accepted => ("delivered", None),
        Outcome::Exhausted => ("failed", None),
        Outcome::Retry { at } | Outcome::Gone { retry_at: at, .. } => {
            ("pending", Some(at.unix_millis()))
        }
    };
    let finished_at = next_attempt_at.is_none().then(|| finished.unix_millis());
    let changed = sqlx::query(
        "UPDATE deliveries SET state = ?1, attempts = attempts + 1, lease_until = NULL,
             next_attempt_at = coalesce(?2, next_attempt_at), finished_at = ?3
         WHERE id = ?4 AND state = 'pending' AND (lease_until = ?5 OR ?1 = 'delivered')",
    )
    .bind(state)
    .bind(next_attempt_at)
    .bind(finished_at)
    .bind(delivery.id.as_str())
    .bind(delivery.lease_until.unix_millis())
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() > 0)
}

async fn insert_attempt(
    connection: &mut SqliteConnection,
    delivery: &ClaimedDelivery,
    attempt: &Attempt,
) -> Result<(), StoreError> {
    let error: Option<String> = attempt
        .error
        .as_ref()
        .map(|error| error.chars().take(MAX_ERROR_CHARS).collect());
    sqlx::query(
        "INSERT INTO attempts (delivery_id, number, started_at, duration_ms, status, error)
         SELECT id, attempts, ?, ?, ?, ? FROM deliveries WHERE id = ?",
    )
    .bind(attempt.started.unix_millis())
    .bind(i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX))
    .bind(attempt.status)
    .bind(error)
    .bind(delivery.id.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

fn message_id_of(row: &SqliteRow) -> Result<MessageId, StoreError> {
    MessageId::parse(row.try_get("id")?).map_err(|_| StoreError::Corrupt {
        what: "deliveries.id",
    })
}

fn delivery_of(row: &SqliteRow) -> Result<Delivery, StoreError> {
    let state = match row.try_get("state")? {
        "pending" => DeliveryState::Pending,
        "delivered" => DeliveryState::Delivered,
        "failed" => DeliveryState::Failed,
        _ => {
            return Err(StoreError::Corrupt {
                what: "deliveries.state",
            });
        }
    };
    Ok(Delivery {
        id: message_id_of(row)?,
        sequence: unsigned(row.try_get("sequence")?, "deliveries.sequence")?,
        state,
        attempts: row.try_get("attempts")?,
        next_attempt_at: Timestamp::from_unix_millis(row.try_get("next_attempt_at")?),
    })
}

fn attempt_of(row: &SqliteRow) -> Result<Attempt, StoreError> {
    let millis: i64 = row.try_get("duration_ms")?;
    Ok(Attempt {
        started: Timestamp::from_unix_millis(row.try_get("started_at")?),
        duration: std::time::Duration::from_millis(unsigned(millis, "attempts.duration_ms")?),
        status: row.try_get("status")?,
        error: row.try_get("error")?,
    })
}
