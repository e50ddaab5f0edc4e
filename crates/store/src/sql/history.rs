//! History: messages that are stored, and deliveries with their attempts.

use std::{collections::HashMap, time::Duration};

use super::{rows, store::Store, webhook_row};
use crate::{
    Access, Attempt, Delivery, DeliveryLog, DeliveryQuery, DeliveryState, MessageId, MessagePage,
    StoreError, StoredMessage, Timings, WebhookId,
    backend::{Connection, Row, bound_rows, signed, values},
};

const DELIVERIES: &str = "
    SELECT m.id, m.kind, m.slot, d.sequence, d.state, d.attempts, d.due_at, d.created_at
    FROM deliveries d JOIN messages m ON m.webhook = d.webhook AND m.sequence = d.sequence
    WHERE d.webhook = $1 AND d.sequence < $2 AND d.sequence >= $3
    ORDER BY d.sequence DESC LIMIT $4";

const DELIVERIES_IN_STATE: &str = "
    SELECT m.id, m.kind, m.slot, d.sequence, d.state, d.attempts, d.due_at, d.created_at
    FROM deliveries d JOIN messages m ON m.webhook = d.webhook AND m.sequence = d.sequence
    WHERE d.webhook = $1 AND d.sequence < $2 AND d.sequence >= $3 AND d.state = $5
    ORDER BY d.sequence DESC LIMIT $4";

/// As above, in words that let the index of failed messages be used: they may be few among millions.
const FAILED_DELIVERIES: &str = "
    SELECT m.id, m.kind, m.slot, d.sequence, d.state, d.attempts, d.due_at, d.created_at
    FROM deliveries d JOIN messages m ON m.webhook = d.webhook AND m.sequence = d.sequence
    WHERE d.webhook = $1 AND d.sequence < $2 AND d.sequence >= $3 AND d.state = 'failed'
    ORDER BY d.sequence DESC LIMIT $4";

/// Messages of webhook `$1` above number `$2`, at most `$3`, until their bodies are `$4` bytes. How long a body is is known without
/// reading it.
const MESSAGES_AFTER: &str = "
    SELECT m.id, m.sequence, m.kind, m.commitment, m.slot, m.created_at,
        CASE WHEN m.shared_body IS NULL THEN m.body ELSE m.body || b.rest END AS body
    FROM (
        SELECT sequence, sum(bytes) OVER (ORDER BY sequence) - bytes AS bytes_before
        FROM (
            SELECT sequence, octet_length(body) + shared_bytes AS bytes FROM messages
            WHERE webhook = $1 AND sequence > $2 ORDER BY sequence LIMIT $3
        ) sizes
    ) sized JOIN messages m ON m.webhook = $1 AND m.sequence = sized.sequence
    LEFT JOIN bodies b ON b.ordinal = m.shared_body
    WHERE sized.bytes_before < $4 ORDER BY m.sequence";

impl Store {
    /// Up to `limit` messages of a webhook with numbers above `after`, in order, however long they are; `None` when there is no such
    /// webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn messages_after(
        &self,
        access: &Access,
        id: &WebhookId,
        after: u64,
        limit: u32,
    ) -> Result<Option<MessagePage>, StoreError> {
        self.messages_within(access, id, after, (limit, i64::MAX.unsigned_abs()))
            .await
    }

    /// The same, but no further message once their bodies are `bytes` long together.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn messages_within(
        &self,
        access: &Access,
        id: &WebhookId,
        after: u64,
        (limit, bytes): (u32, u64),
    ) -> Result<Option<MessagePage>, StoreError> {
        let mut snapshot = self.settled_snapshot().await?;
        let Some(webhook) = ordinal_of(&mut snapshot, access, id).await? else {
            return Ok(None);
        };
        let bounds = snapshot
            .one_row(
                "SELECT s.next, (SELECT min(m.sequence) FROM messages m WHERE m.webhook = s.webhook) AS oldest
                 FROM sequences s WHERE s.webhook = $1",
                values![webhook],
            )
            .await?;
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let found = snapshot
            .rows(
                MESSAGES_AFTER,
                values![webhook, after, limit, signed(bytes, "bytes")?],
            )
            .await?;
        let oldest = bounds.optional_integer("oldest")?;
        Ok(Some(MessagePage {
            messages: found.iter().map(message_of).collect::<Result<_, _>>()?,
            last_sequence: bounds.unsigned("next")?.saturating_sub(1),
            oldest_kept: oldest.and_then(|oldest| u64::try_from(oldest).ok()),
        }))
    }

    /// The message of a webhook under this id; `None` when there is no such webhook, or no such message of it any more.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn message(
        &self,
        access: &Access,
        id: &WebhookId,
        message: &MessageId,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let mut snapshot = self.settled_snapshot().await?;
        let Some(webhook) = ordinal_of(&mut snapshot, access, id).await? else {
            return Ok(None);
        };
        let found = snapshot
            .row(
                "SELECT m.id, m.sequence, m.kind, m.commitment, m.slot, m.created_at,
                     CASE WHEN m.shared_body IS NULL THEN m.body ELSE m.body || b.rest END AS body
                 FROM messages m LEFT JOIN bodies b ON b.ordinal = m.shared_body
                 WHERE m.webhook = $1 AND m.id = $2",
                values![webhook, message.as_str()],
            )
            .await?;
        found.as_ref().map(message_of).transpose()
    }

    /// Up to `limit` messages of a webhook, the newest first, each with its attempts; `None` when there is
    /// no such webhook. The next page is that `before` the smallest number of this one.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn deliveries(
        &self,
        access: &Access,
        id: &WebhookId,
        query: DeliveryQuery,
        limit: u32,
    ) -> Result<Option<Vec<DeliveryLog>>, StoreError> {
        let mut snapshot = self.settled_snapshot().await?;
        let Some(webhook) = ordinal_of(&mut snapshot, access, id).await? else {
            return Ok(None);
        };
        let as_integer = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let before = match (query.before, query.sequence) {
            (_, Some(sequence)) => as_integer(sequence).saturating_add(1),
            (Some(before), None) => as_integer(before),
            (None, None) => i64::MAX,
        };
        let first = query.sequence.map_or(0, as_integer);
        let found = match query.state {
            None => {
                snapshot
                    .rows(DELIVERIES, values![webhook, before, first, limit])
                    .await?
            }
            Some(DeliveryState::Failed) => {
                snapshot
                    .rows(FAILED_DELIVERIES, values![webhook, before, first, limit])
                    .await?
            }
            Some(state) => {
                snapshot
                    .rows(
                        DELIVERIES_IN_STATE,
                        values![webhook, before, first, limit, state.name()],
                    )
                    .await?
            }
        };
        let deliveries = found
            .iter()
            .map(delivery_of)
            .collect::<Result<Vec<_>, _>>()?;
        let mut attempts = attempts_of(&mut snapshot, webhook, &deliveries).await?;
        let logs = deliveries
            .into_iter()
            .map(|delivery| DeliveryLog {
                attempts: attempts.remove(&delivery.sequence).unwrap_or_default(),
                delivery,
            })
            .collect();
        Ok(Some(logs))
    }
}

async fn ordinal_of(
    connection: &mut Connection,
    access: &Access,
    id: &WebhookId,
) -> Result<Option<i64>, StoreError> {
    let row = connection
        .row(
            "SELECT w.ordinal FROM webhooks w LEFT JOIN api_keys k ON k.ordinal = w.api_key
             WHERE w.id = $1 AND w.deleted = 0 AND (CAST($2 AS TEXT) IS NULL OR k.id = $2)",
            values![id.as_str(), webhook_row::api_key_text(access)],
        )
        .await?;
    row.map(|row| row.integer("ordinal")).transpose()
}

/// The attempts of deliveries of one webhook, by sequence number, each in order.
async fn attempts_of(
    connection: &mut Connection,
    webhook: i64,
    deliveries: &[Delivery],
) -> Result<HashMap<u64, Vec<Attempt>>, StoreError> {
    let attempted = deliveries
        .iter()
        .filter(|delivery| delivery.attempts > 0)
        .map(|delivery| Ok(values![webhook, signed(delivery.sequence, "sequence")?]))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let found = connection
        .rows_over(
            bound_rows!(
                [webhook bigint, sequence bigint],
                "SELECT v.sequence AS attempted, a.* FROM v
                 JOIN attempts a ON a.webhook = v.webhook AND a.sequence = v.sequence
                 UNION ALL
                 SELECT v.sequence AS attempted, a.* FROM v
                 JOIN deliveries d ON d.webhook = v.webhook AND d.sequence = v.sequence
                 JOIN attempts a ON a.webhook = d.webhook AND a.sequence = d.attempted_with AND a.number = 1
                 ORDER BY attempted, number"
            ),
            attempted,
        )
        .await?;
    let mut attempts: HashMap<u64, Vec<Attempt>> = HashMap::new();
    for row in &found {
        let of_delivery = attempts.entry(row.unsigned("attempted")?).or_default();
        of_delivery.push(attempt_of(row)?);
    }
    Ok(attempts)
}

fn message_of(row: &Row) -> Result<StoredMessage, StoreError> {
    Ok(StoredMessage {
        id: rows::message_id(row)?,
        sequence: row.unsigned("sequence")?,
        kind: rows::kind(row)?,
        commitment: rows::commitment(row)?,
        slot: row.unsigned("slot")?,
        created: row.time("created_at")?,
        body: row.text("body")?,
    })
}

fn delivery_of(row: &Row) -> Result<Delivery, StoreError> {
    let state = DeliveryState::from_name(&row.text("state")?).ok_or(StoreError::Corrupt {
        what: "deliveries.state",
    })?;
    Ok(Delivery {
        id: rows::message_id(row)?,
        sequence: row.unsigned("sequence")?,
        kind: rows::kind(row)?,
        slot: row.unsigned("slot")?,
        state,
        attempts: row.count("attempts")?,
        next_attempt_at: row.optional_time("due_at")?,
        created: row.time("created_at")?,
    })
}

fn attempt_of(row: &Row) -> Result<Attempt, StoreError> {
    let part = |column: &'static str| -> Result<Option<Duration>, StoreError> {
        let micros = row.optional_integer(column)?;
        Ok(micros
            .and_then(|micros| u64::try_from(micros).ok())
            .map(Duration::from_micros))
    };
    let status = row.optional_integer("status")?;
    Ok(Attempt {
        number: row.count("number")?,
        url: row.text("url")?,
        started: row.time("started_at")?,
        duration: Duration::from_micros(row.unsigned("duration_us")?),
        timings: Timings {
            resolved: part("resolved_us")?,
            connected: part("connected_us")?,
            secured: part("secured_us")?,
            first_byte: part("first_byte_us")?,
        },
        status: status.and_then(|status| u16::try_from(status).ok()),
        error: row.optional_text("error")?,
        retry_after: None,
        request_headers: rows::headers(row, "request_headers")?,
        response: row.optional_text("response")?,
        response_cut: row.flag("response_cut")?,
    })
}
