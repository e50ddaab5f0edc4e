//! Endpoints: reads and writes the state of circuit breaker and concurrency limit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{retried::retried, rows, store::Store};
use crate::{
    EndpointState, StoreError, Timestamp, WebhookId,
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

    /// Sets the state of a webhook's endpoint, for example to try it again at once after its owner changed
    /// the URL. False when there is no such webhook.
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
        let found = connection
            .row(
                "SELECT ordinal FROM webhooks WHERE id = $1 AND deleted = 0",
                values![id.as_str()],
            )
            .await?;
        let Some(row) = found else {
            return Ok(false);
        };
        let endpoint = Endpoint {
            state: *state,
            last_triggered_at: None,
        };
        write(&mut connection, [(row.integer("ordinal")?, endpoint)]).await?;
        connection.commit().await?;
        Ok(true)
    }
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
