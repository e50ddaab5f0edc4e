//! [`MessageRow`]: a message with its delivery as both are stored, and the statements that store them.

use serde::Deserialize;

use crate::{
    StoreError,
    backend::{Connection, Values, bound_rows, values},
};

/// A message with its delivery, without its body.
#[derive(Debug, Deserialize)]
pub(super) struct MessageRow {
    pub(super) webhook: i64,
    pub(super) sequence: i64,
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) commitment: String,
    pub(super) slot: i64,
    pub(super) order_key: Option<String>,
    pub(super) shared_body: Option<i64>,
    pub(super) shared_bytes: i64,
    pub(super) due_at: Option<i64>,
    pub(super) lease_token: Option<i64>,
    /// Nothing is staged that is in one.
    #[serde(skip)]
    pub(super) lane: Option<String>,
    pub(super) created_at: i64,
}

/// The rows of a message and of its delivery.
pub(super) struct Rows {
    webhook: i64,
    message: Values,
    delivery: Values,
}

impl MessageRow {
    pub(super) fn with_body(self, body: String) -> Rows {
        let (webhook, sequence) = (self.webhook, self.sequence);
        Rows {
            webhook,
            delivery: values![
                webhook,
                sequence,
                self.due_at,
                self.lease_token,
                self.lane,
                self.created_at,
            ],
            message: values![
                webhook,
                sequence,
                self.id,
                self.kind,
                self.commitment,
                self.slot,
                self.order_key,
                body,
                self.created_at,
                self.shared_body,
                self.shared_bytes,
            ],
        }
    }
}

/// Inserts messages with their deliveries. False when one of the messages was known.
pub(super) async fn insert(
    write: &mut Connection,
    mut rows: Vec<Rows>,
) -> Result<bool, StoreError> {
    // As events come, each row of a slot that is hot for many webhooks would go to another page of the tables.
    rows.sort_by_key(|row| row.webhook);
    let rows = rows.into_iter().map(|row| (row.message, row.delivery));
    let (messages, deliveries): (Vec<_>, Vec<_>) = rows.unzip();
    let given = u64::try_from(messages.len()).unwrap_or(u64::MAX);
    let inserted = write
        .execute_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, id text, kind text, commitment text, slot bigint,
                    order_key text, body text, created_at bigint, shared_body bigint, shared_bytes bigint
                ],
                "INSERT INTO messages
                     (webhook, sequence, id, kind, commitment, slot, order_key, body, created_at, shared_body, shared_bytes)
                 SELECT webhook, sequence, id, kind, commitment, slot, order_key, body, created_at, shared_body, shared_bytes
                 FROM v WHERE webhook IS NOT NULL ON CONFLICT (id) DO NOTHING"
            ),
            messages,
        )
        .await?;
    if inserted < given {
        return Ok(false);
    }
    write
        .execute_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, due_at bigint, lease_token bigint, lane text,
                    created_at bigint
                ],
                "INSERT INTO deliveries (webhook, sequence, due_at, lease_token, lane, created_at)
                 SELECT webhook, sequence, due_at, lease_token, lane, created_at
                 FROM v WHERE webhook IS NOT NULL"
            ),
            deliveries,
        )
        .await?;
    Ok(true)
}
