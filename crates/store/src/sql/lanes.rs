//! Lanes: deliveries of a webhook that must be made one after the other.
//!
//! Of the pending deliveries of a lane only the first has a due time, so leasing needs not look at what
//! comes before a delivery, however long the lane is. Whatever finishes one wakes the next.
//!
//! A message that is delivered again on request belongs to no lane: those after it were delivered long
//! ago.

use serde::Serialize;

use crate::{
    DeliveryOrder, StoreError, Timestamp,
    backend::{Connection, json_rows, over_rows, values},
};

/// One lane of one webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(super) struct Lane {
    pub(super) webhook: i64,
    pub(super) lane: String,
}

/// The lane of a delivery; `None` when it is in none.
pub(super) fn lane_of(order: DeliveryOrder, order_key: Option<&str>) -> Option<String> {
    match order {
        DeliveryOrder::None => None,
        DeliveryOrder::PerKey => order_key.map(str::to_owned),
        DeliveryOrder::Strict => Some(String::new()),
    }
}

/// Those of `lanes` in which something is pending.
pub(super) async fn busy(
    connection: &mut Connection,
    lanes: &[Lane],
) -> Result<Vec<Lane>, StoreError> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let found = connection
        .rows(
            over_rows!(
                [webhook bigint, lane text],
                "SELECT v.webhook, v.lane FROM v WHERE EXISTS (
                     SELECT 1 FROM deliveries d
                     WHERE d.webhook = v.webhook AND d.lane = v.lane AND d.state = 'pending')"
            ),
            values![json_rows(lanes)?],
        )
        .await?;
    found
        .iter()
        .map(|row| {
            Ok(Lane {
                webhook: row.integer("webhook")?,
                lane: row.text("lane")?,
            })
        })
        .collect()
}

/// Makes the first pending message of each lane due, if it is not.
pub(super) async fn wake(
    write: &mut Connection,
    lanes: &[Lane],
    now: Timestamp,
) -> Result<(), StoreError> {
    if lanes.is_empty() {
        return Ok(());
    }
    write
        .execute(
            over_rows!(
                [webhook bigint, lane text],
                "UPDATE deliveries SET due_at = $2 FROM v
                 WHERE deliveries.webhook = v.webhook AND deliveries.due_at IS NULL
                     AND deliveries.sequence = (
                         SELECT min(d.sequence) FROM deliveries d
                         WHERE d.webhook = v.webhook AND d.lane = v.lane AND d.state = 'pending')"
            ),
            values![json_rows(lanes)?, now],
        )
        .await?;
    Ok(())
}

/// Makes the first pending message of a lane due at the end of its lease, if it is leased with this token: it goes in one batch
/// with the one that was the first before, and is under way until then.
pub(super) async fn wake_after_lease(
    write: &mut Connection,
    lane: &Lane,
    token: i64,
    until: Timestamp,
) -> Result<(), StoreError> {
    write
        .execute(
            "UPDATE deliveries SET due_at = $4
             WHERE webhook = $1 AND due_at IS NULL AND lease_token = $3
                 AND sequence = (
                     SELECT min(d.sequence) FROM deliveries d
                     WHERE d.webhook = $1 AND d.lane = $2 AND d.state = 'pending')",
            values![lane.webhook, lane.lane.as_str(), token, until],
        )
        .await?;
    Ok(())
}

/// Sorts the pending deliveries of a webhook into the lanes of another order. Leased ones stay leased.
pub(super) async fn rebuild(
    write: &mut Connection,
    webhook: i64,
    order: DeliveryOrder,
) -> Result<(), StoreError> {
    let lane = match order {
        DeliveryOrder::None => {
            "UPDATE deliveries SET lane = NULL WHERE webhook = $1 AND state = 'pending'"
        }
        DeliveryOrder::PerKey => {
            "UPDATE deliveries SET lane = (
                 SELECT m.order_key FROM messages m
                 WHERE m.webhook = deliveries.webhook AND m.sequence = deliveries.sequence)
             WHERE webhook = $1 AND state = 'pending'"
        }
        DeliveryOrder::Strict => {
            "UPDATE deliveries SET lane = '' WHERE webhook = $1 AND state = 'pending'"
        }
    };
    write.execute(lane, values![webhook]).await?;
    write
        .execute(
            "UPDATE deliveries SET due_at = NULL
             WHERE webhook = $1 AND state = 'pending' AND lane IS NOT NULL AND lease_token IS NULL
                 AND sequence > (
                     SELECT min(d.sequence) FROM deliveries d
                     WHERE d.webhook = deliveries.webhook AND d.lane = deliveries.lane
                         AND d.state = 'pending')",
            values![webhook],
        )
        .await?;
    write
        .execute(
            "UPDATE deliveries SET due_at = created_at
             WHERE webhook = $1 AND state = 'pending' AND due_at IS NULL
                 AND (lane IS NULL OR sequence = (
                     SELECT min(d.sequence) FROM deliveries d
                     WHERE d.webhook = deliveries.webhook AND d.lane = deliveries.lane
                         AND d.state = 'pending'))",
            values![webhook],
        )
        .await?;
    Ok(())
}

/// Keeps messages from being stored for webhooks with lanes: one that came into a lane unseen, while its
/// last message finishes, would never be woken. And keeps their owners from writing those that may be switched off
/// (`gone`). `webhooks` is a JSON array of objects that name them.
pub(super) async fn lock_numbering(
    write: &mut Connection,
    webhooks: &str,
    gone: bool,
) -> Result<(), StoreError> {
    write
        .lock(
            "SELECT s.webhook FROM sequences s JOIN webhooks w ON w.ordinal = s.webhook
             WHERE (w.delivery_order <> 'none' OR $2 = 1) AND w.ordinal IN (
                 SELECT t.webhook FROM json_to_recordset(CAST($1 AS json)) AS t (webhook bigint))
             ORDER BY s.webhook FOR UPDATE OF s",
            values![webhooks, gone],
        )
        .await?;
    Ok(())
}
