//! Endpoints: reads and writes the state of circuit breaker and concurrency limit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{recovery, retried::retried, rows, store::Store};
use crate::{
    EndpointState, MOST_PULLED, Recovering, StoreError, Timestamp, WebhookId,
    backend::{Connection, Durability, json_rows, over_rows, values},
};

/// The row of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) state: EndpointState,
    /// When it last accepted a delivery, as far as it is known here: unix milliseconds.
    pub(super) last_triggered_at: Option<i64>,
}

#[derive(Serialize)]
struct EndpointRow {
    webhook: i64,
    breaker: &'static str,
    failures: u32,
    failing_since: Option<i64>,
    trips: u32,
    paused_until: Option<i64>,
    concurrency_limit: Option<u32>,
    last_triggered_at: Option<i64>,
}

impl Store {
    /// The state of a webhook's endpoint; `None` when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn endpoint(&self, id: &WebhookId) -> Result<Option<EndpointState>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT e.* FROM endpoints e JOIN webhooks w ON w.ordinal = e.webhook
                 WHERE w.id = $1 AND w.deleted = 0",
                values![id.as_str()],
            )
            .await?;
        row.as_ref().map(rows::endpoint).transpose()
    }

    /// Forgets what was learnt of a webhook's endpoint, because it is another one now or its owner vouches for it: everything that
    /// waits for a retry is due at `now`, at the same place of its schedule. False when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database; what is not due yet then keeps its own time.
    pub async fn restart_endpoint(
        &self,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(mut rest) = retried!(self.try_restart_endpoint(id, now))? else {
            return Ok(false);
        };
        while let Some(waiting) = rest.pop() {
            rest.extend(self.pull_forward(&waiting, MOST_PULLED).await?);
        }
        Ok(true)
    }

    async fn try_restart_endpoint(
        &self,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Vec<Recovering>>, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let Some(webhook) = ordinal(&mut write, id).await? else {
            return Ok(None);
        };
        let rest = recovery::begin(&mut write, &[webhook], now, MOST_PULLED).await?;
        let fresh = Endpoint {
            state: EndpointState::default(),
            last_triggered_at: None,
        };
        self::write(&mut write, [(webhook, fresh)]).await?;
        write.commit().await?;
        Ok(Some(rest))
    }

    /// Sets the state of a webhook's endpoint. False when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn set_endpoint(
        &self,
        id: &WebhookId,
        state: &EndpointState,
    ) -> Result<bool, StoreError> {
        retried!(self.try_set_endpoint(id, state))
    }

    async fn try_set_endpoint(
        &self,
        id: &WebhookId,
        state: &EndpointState,
    ) -> Result<bool, StoreError> {
        let mut connection = self.write(Durability::Relaxed).await?;
        let Some(webhook) = ordinal(&mut connection, id).await? else {
            return Ok(false);
        };
        let endpoint = Endpoint {
            state: *state,
            last_triggered_at: None,
        };
        write(&mut connection, [(webhook, endpoint)]).await?;
        connection.commit().await?;
        Ok(true)
    }
}

async fn ordinal(connection: &mut Connection, id: &WebhookId) -> Result<Option<i64>, StoreError> {
    let found = connection
        .row(
            "SELECT ordinal FROM webhooks WHERE id = $1 AND deleted = 0",
            values![id.as_str()],
        )
        .await?;
    found.map(|row| row.integer("ordinal")).transpose()
}

/// The endpoints of these webhooks, by ordinal, which no other transaction changes until this one ends.
/// `webhooks` is a JSON array of objects that name them.
pub(super) async fn lock_and_read(
    write: &mut Connection,
    webhooks: &str,
) -> Result<BTreeMap<i64, Endpoint>, StoreError> {
    write
        .lock(
            "SELECT webhook FROM endpoints WHERE webhook IN (
                 SELECT t.webhook FROM json_to_recordset(CAST($1 AS json)) AS t (webhook bigint))
             ORDER BY webhook FOR UPDATE",
            values![webhooks],
        )
        .await?;
    let found = write
        .rows(
            over_rows!(
                [webhook bigint],
                "SELECT e.* FROM v JOIN endpoints e ON e.webhook = v.webhook"
            ),
            values![webhooks],
        )
        .await?;
    found
        .iter()
        .map(|row| {
            let endpoint = Endpoint {
                state: rows::endpoint(row)?,
                last_triggered_at: row.optional_integer("last_triggered_at")?,
            };
            Ok((row.integer("webhook")?, endpoint))
        })
        .collect()
}

/// Writes endpoints, each with its webhook's ordinal. One without a last delivery keeps the one it has.
pub(super) async fn write(
    connection: &mut Connection,
    endpoints: impl IntoIterator<Item = (i64, Endpoint)>,
) -> Result<(), StoreError> {
    let rows: Vec<_> = endpoints
        .into_iter()
        .map(
            |(
                webhook,
                Endpoint {
                    state,
                    last_triggered_at,
                },
            )| EndpointRow {
                webhook,
                breaker: state.breaker.name(),
                failures: state.failures,
                failing_since: state.failing_since.map(Timestamp::unix_millis),
                trips: state.trips,
                paused_until: state.paused_until.map(Timestamp::unix_millis),
                concurrency_limit: state.concurrency_limit,
                last_triggered_at,
            },
        )
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    connection
        .execute(
            over_rows!(
                [
                    webhook bigint, breaker text, failures bigint, failing_since bigint, trips bigint, paused_until bigint,
                    concurrency_limit bigint, last_triggered_at bigint
                ],
                "UPDATE endpoints SET breaker = v.breaker, failures = v.failures, failing_since = v.failing_since, trips = v.trips,
                     paused_until = v.paused_until, concurrency_limit = v.concurrency_limit,
                     last_triggered_at = coalesce(v.last_triggered_at, endpoints.last_triggered_at)
                 FROM v WHERE endpoints.webhook = v.webhook"
            ),
            values![json_rows(&rows)?],
        )
        .await?;
    Ok(())
}
