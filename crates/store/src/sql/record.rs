//! Recording what became of attempts.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::{
    lanes::{self, Lane, lock_numbering},
    receivers, rows,
    store::Store,
    webhook_row,
};
use crate::{
    EndpointState, Finished, MAX_RESPONSE_BYTES, Outcome, StoreError, Ticket, Timestamp, WebhookId,
    backend::{Connection, Durability, Value, bound_rows, json_rows, over_rows, signed, values},
};

/// Longest error text kept of an attempt, in characters: enough to see what happened, too little to
/// fill a disk with.
const MAX_ERROR_CHARS: usize = 500;

#[derive(Serialize)]
struct EndpointRow {
    webhook: i64,
    breaker: &'static str,
    failures: u32,
    trips: u32,
    paused_until: Option<i64>,
    concurrency_limit: Option<u32>,
    last_triggered_at: Option<i64>,
}

/// The messages whose attempt counts, with the number of the attempt.
type Counted = HashMap<(i64, i64), i64>;

impl Store {
    /// Records finished attempts, of any webhooks, and what they mean, in one transaction. An attempt whose
    /// lease was lost to another claimer is ignored, except that an accepted message is accepted whoever
    /// delivered it. Returns which attempts counted, in the order given.
    ///
    /// For each one that counted, in order, `endpoint` says how the receiver does from the state before and
    /// the attempt. It is a pure function: the whole transaction may be run again.
    ///
    /// # Errors
    /// A failure of the database; the messages return when their leases run out.
    pub async fn record(
        &self,
        finished: &[Finished],
        endpoint: &(dyn Fn(EndpointState, &Finished) -> EndpointState + Send + Sync),
    ) -> Result<Vec<bool>, StoreError> {
        if finished.is_empty() {
            return Ok(Vec::new());
        }
        let mut write = self.write(Durability::Relaxed).await?;
        let webhooks = webhooks_of(finished)?;
        lock_numbering(&mut write, &webhooks).await?;
        let (counted, woken) = advance(&mut write, finished).await?;
        let counts =
            |each: &Finished| key(&each.ticket).is_ok_and(|key| counted.contains_key(&key));
        let that_count: Vec<&Finished> = finished.iter().filter(|each| counts(each)).collect();
        let bytes = insert_attempts(&mut write, &that_count, &counted).await?;
        let now = that_count.iter().map(|each| end_of(each)).max();
        if let Some(now) = now {
            lanes::wake(&mut write, &woken, now).await?;
            judge_endpoints(&mut write, &webhooks, &that_count, endpoint).await?;
        }
        for each in &that_count {
            if let Outcome::Gone { reason, .. } = &each.outcome {
                let ticket = &each.ticket;
                webhook_row::disable(&mut write, ticket.ordinal, &ticket.url, reason).await?;
            }
        }
        // Last, as wherever messages are stored: everybody writes this row.
        write
            .execute("UPDATE usage SET bytes = bytes + $1", values![bytes])
            .await?;
        write.commit().await?;
        Ok(finished.iter().map(counts).collect())
    }

    /// Sets how a webhook's receiver does, for example to try it again at once after its owner changed the
    /// URL. False when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn set_endpoint(
        &self,
        id: &WebhookId,
        state: &EndpointState,
    ) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let found = write
            .row(
                "SELECT ordinal FROM webhooks WHERE id = $1 AND deleted = 0",
                values![id.as_str()],
            )
            .await?;
        let Some(row) = found else {
            return Ok(false);
        };
        let row = endpoint_row(row.integer("ordinal")?, state, None);
        write_endpoints(&mut write, &[row]).await?;
        write.commit().await?;
        Ok(true)
    }
}

fn key(ticket: &Ticket) -> Result<(i64, i64), StoreError> {
    Ok((ticket.ordinal, signed(ticket.sequence, "sequence")?))
}

fn end_of(finished: &Finished) -> Timestamp {
    finished.attempt.started.after(finished.attempt.duration)
}

/// The webhooks concerned, as a JSON parameter.
fn webhooks_of(finished: &[Finished]) -> Result<String, StoreError> {
    let ordinals: HashSet<i64> = finished.iter().map(|each| each.ticket.ordinal).collect();
    receivers::named(ordinals)
}

/// Moves the messages to their next states. Returns whose attempts count, and the lanes in which the
/// next message has its turn.
async fn advance(
    write: &mut Connection,
    finished: &[Finished],
) -> Result<(Counted, Vec<Lane>), StoreError> {
    let advances = finished
        .iter()
        .map(advance_of)
        .collect::<Result<Vec<_>, _>>()?;
    // A message that is tried again after an earlier one of its lane came back waits for that one.
    let found = write
        .rows_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, lease_token bigint, state text, due_at bigint,
                    finished_at bigint
                ],
                "UPDATE deliveries SET state = v.state, attempts = attempts + 1, retry_index = retry_index + 1,
                     lease_token = NULL, finished_at = v.finished_at,
                     due_at = CASE WHEN deliveries.lane IS NOT NULL AND EXISTS (
                             SELECT 1 FROM deliveries d
                             WHERE d.webhook = deliveries.webhook AND d.lane = deliveries.lane
                                 AND d.state = 'pending' AND d.sequence < deliveries.sequence)
                         THEN NULL ELSE v.due_at END
                 FROM v
                 WHERE deliveries.webhook = v.webhook AND deliveries.sequence = v.sequence
                     AND deliveries.state = 'pending'
                     AND (deliveries.lease_token = v.lease_token OR v.state = 'delivered')
                 RETURNING deliveries.webhook, deliveries.sequence, deliveries.attempts, deliveries.state,
                     deliveries.lane"
            ),
            advances,
        )
        .await?;
    let mut counted = Counted::new();
    let mut woken = Vec::new();
    for row in &found {
        let webhook = row.integer("webhook")?;
        counted.insert(
            (webhook, row.integer("sequence")?),
            row.integer("attempts")?,
        );
        if let Some(lane) = row.optional_text("lane")?
            && row.text("state")? != "pending"
        {
            woken.push(Lane { webhook, lane });
        }
    }
    Ok((counted, woken))
}

/// What an attempt does to its message.
fn advance_of(finished: &Finished) -> Result<Vec<Value>, StoreError> {
    let (state, due_at) = match &finished.outcome {
        Outcome::Accepted => ("delivered", None),
        Outcome::Exhausted => ("failed", None),
        Outcome::Retry { at } | Outcome::Gone { retry_at: at, .. } => ("pending", Some(*at)),
    };
    let (webhook, sequence) = key(&finished.ticket)?;
    let finished_at = due_at.is_none().then(|| end_of(finished));
    let lease = finished.ticket.lease.0;
    Ok(values![
        webhook,
        sequence,
        lease,
        state,
        due_at,
        finished_at
    ])
}

/// Keeps the attempts that count; returns the bytes of their texts.
async fn insert_attempts(
    write: &mut Connection,
    finished: &[&Finished],
    counted: &Counted,
) -> Result<i64, StoreError> {
    if finished.is_empty() {
        return Ok(0);
    }
    let (mut attempts, mut bytes) = (Vec::new(), 0_usize);
    for each in finished {
        attempts.push(attempt_row(each, counted, &mut bytes)?);
    }
    write
        .rows_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, number bigint, url text, started_at bigint,
                    duration_us bigint, resolved_us bigint, connected_us bigint, secured_us bigint,
                    first_byte_us bigint, status bigint, error text, request_headers text, response text,
                    response_cut bigint
                ],
                "INSERT INTO attempts (webhook, sequence, number, url, started_at, duration_us, resolved_us,
                     connected_us, secured_us, first_byte_us, status, error, request_headers, response,
                     response_cut)
                 SELECT webhook, sequence, number, url, started_at, duration_us, resolved_us,
                     connected_us, secured_us, first_byte_us, status, error, request_headers, response,
                     response_cut
                 FROM v WHERE webhook IS NOT NULL ON CONFLICT DO NOTHING"
            ),
            attempts,
        )
        .await?;
    signed(u64::try_from(bytes).unwrap_or(u64::MAX), "size")
}

/// What is kept of an attempt; its texts are added to `bytes`.
fn attempt_row(
    finished: &Finished,
    counted: &Counted,
    bytes: &mut usize,
) -> Result<Vec<Value>, StoreError> {
    let attempt = &finished.attempt;
    let (webhook, sequence) = key(&finished.ticket)?;
    let micros =
        |duration: std::time::Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let error: Option<String> = attempt
        .error
        .as_ref()
        .map(|error| storable(error).chars().take(MAX_ERROR_CHARS).collect());
    let response = attempt.response.as_deref().map(storable);
    let kept = response.as_deref().map(|text| {
        text.get(..text.floor_char_boundary(MAX_RESPONSE_BYTES))
            .unwrap_or_default()
            .to_owned()
    });
    let cut = kept.as_ref().map(String::len) != response.as_ref().map(String::len);
    let headers = rows::headers_text(&attempt.request_headers)?;
    *bytes += headers.len() + kept.as_ref().map_or(0, String::len);
    Ok(values![
        webhook,
        sequence,
        counted.get(&(webhook, sequence)).copied().unwrap_or(1),
        attempt.url.as_str(),
        attempt.started,
        micros(attempt.duration),
        attempt.timings.resolved.map(micros),
        attempt.timings.connected.map(micros),
        attempt.timings.secured.map(micros),
        attempt.timings.first_byte.map(micros),
        attempt.status.map(i64::from),
        error,
        headers,
        kept,
        attempt.response_cut || cut,
    ])
}

/// PostgreSQL keeps no zero character in a text.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Lets `endpoint` say how the receivers do now, and notes the last accepted delivery.
async fn judge_endpoints(
    write: &mut Connection,
    webhooks: &str,
    finished: &[&Finished],
    endpoint: &(dyn Fn(EndpointState, &Finished) -> EndpointState + Send + Sync),
) -> Result<(), StoreError> {
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
    let mut states = BTreeMap::new();
    for row in &found {
        let before = (
            rows::endpoint(row)?,
            row.optional_integer("last_triggered_at")?,
        );
        states.insert(row.integer("webhook")?, (before, before));
    }
    for each in finished {
        if let Some((_, (state, last_triggered))) = states.get_mut(&each.ticket.ordinal) {
            *state = endpoint(*state, each);
            if each.outcome == Outcome::Accepted {
                *last_triggered = (*last_triggered).max(Some(end_of(each).unix_millis()));
            }
        }
    }
    let changed: Vec<_> = states
        .into_iter()
        .filter(|(_, (before, after))| before != after)
        .map(|(webhook, (_, (state, last_triggered)))| {
            endpoint_row(webhook, &state, last_triggered)
        })
        .collect();
    write_endpoints(write, &changed).await
}

fn endpoint_row(
    webhook: i64,
    state: &EndpointState,
    last_triggered_at: Option<i64>,
) -> EndpointRow {
    EndpointRow {
        webhook,
        breaker: state.breaker.name(),
        failures: state.failures,
        trips: state.trips,
        paused_until: state.paused_until.map(Timestamp::unix_millis),
        concurrency_limit: state.concurrency_limit,
        last_triggered_at,
    }
}

async fn write_endpoints(
    write: &mut Connection,
    endpoints: &[EndpointRow],
) -> Result<(), StoreError> {
    if endpoints.is_empty() {
        return Ok(());
    }
    write
        .execute(
            over_rows!(
                [
                    webhook bigint, breaker text, failures bigint, trips bigint, paused_until bigint,
                    concurrency_limit bigint, last_triggered_at bigint
                ],
                "UPDATE endpoints SET breaker = v.breaker, failures = v.failures, trips = v.trips,
                     paused_until = v.paused_until, concurrency_limit = v.concurrency_limit,
                     last_triggered_at = coalesce(v.last_triggered_at, endpoints.last_triggered_at)
                 FROM v WHERE endpoints.webhook = v.webhook"
            ),
            values![json_rows(endpoints)?],
        )
        .await?;
    Ok(())
}
