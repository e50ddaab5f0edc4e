//! Records the results of attempts: next state, attempt, lane and endpoint, in one transaction.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::{
    accepted_batches::AcceptedBatches,
    endpoint_data,
    endpoints::{self, Endpoint},
    lanes::{self, Lane, lock_numbering},
    probing::{next_probe, probe},
    recovery,
    retried::retried,
    rows,
    store::Store,
    webhook_row,
};
use crate::{
    AttemptResult, Breaker, EndpointChange, EndpointState, Lease, MAX_RESPONSE_BYTES, MOST_PULLED,
    Outcome, Recorded, StoreError, Timestamp,
    backend::{Connection, Durability, Value, bound_rows, signed, values},
};

/// Longest error text kept of an attempt, in characters: enough to see what happened, too little to
/// fill a disk with.
const MAX_ERROR_CHARS: usize = 500;

/// The deliveries whose results count, with the number of the attempt.
type Counted = HashMap<(i64, i64), i64>;

/// The next state of an endpoint, by its state before and a result.
type OnAttempt<'a> = dyn Fn(EndpointState, &AttemptResult) -> EndpointState + Send + Sync + 'a;

impl Store {
    /// Records results of attempts, of any webhooks, in one transaction. A result whose lease was lost to
    /// another one does not count, except that an accepted message is delivered whatever its lease.
    ///
    /// For each result that counts, in order, `on_attempt` returns the next state of its endpoint from the
    /// state before. It is a pure function: the whole transaction may be run again. What waits for a retry at an endpoint that
    /// recovers by one is made due, as far as one transaction may.
    ///
    /// # Errors
    /// A failure of the database; the deliveries are due again when their leases run out.
    pub async fn record(
        &self,
        results: &[AttemptResult],
        on_attempt: &OnAttempt<'_>,
    ) -> Result<Recorded, StoreError> {
        self.record_pulling(results, on_attempt, MOST_PULLED).await
    }

    /// As [`Store::record`], but of each endpoint that recovers at most so many waiting deliveries are made due.
    ///
    /// # Errors
    /// As [`Store::record`].
    pub async fn record_pulling(
        &self,
        results: &[AttemptResult],
        on_attempt: &OnAttempt<'_>,
        most: u32,
    ) -> Result<Recorded, StoreError> {
        if results.is_empty() {
            return Ok(Recorded::default());
        }
        // Without batches nothing is taken for what it is not.
        for batches in [AcceptedBatches::among(results), AcceptedBatches::default()] {
            let recording = retried!(self.try_record(results, &batches, on_attempt, most));
            if let Some(recorded) = recording? {
                return Ok(recorded);
            }
        }
        Err(StoreError::Corrupt {
            what: "results without batches",
        })
    }

    /// `None` when one of the batches is not what it was taken for; the transaction is undone then.
    async fn try_record(
        &self,
        results: &[AttemptResult],
        batches: &AcceptedBatches,
        on_attempt: &OnAttempt<'_>,
        most: u32,
    ) -> Result<Option<Recorded>, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let ordinals: HashSet<i64> = results.iter().map(|each| each.lease.ordinal).collect();
        let webhooks = endpoint_data::webhooks_json(ordinals)?;
        let is_gone = |each: &AttemptResult| matches!(each.outcome, Outcome::Gone { .. });
        lock_numbering(&mut write, &webhooks, results.iter().any(is_gone)).await?;
        let others = results.iter().enumerate();
        let others = others.filter(|(nth, _)| !batches.contain(*nth));
        let (mut counted, lanes) = advance(&mut write, others.map(|(_, each)| each)).await?;
        let Some(accepted) = batches.accept(&mut write).await? else {
            return Ok(None);
        };
        counted.extend(accepted);
        let counts =
            |each: &AttemptResult| key(&each.lease).is_ok_and(|key| counted.contains_key(&key));
        let that_count: Vec<&AttemptResult> = results.iter().filter(|each| counts(each)).collect();
        let kept = results
            .iter()
            .enumerate()
            .filter(|(nth, each)| counts(each) && !batches.attempt_is_kept_of_another(*nth));
        let kept: Vec<_> = kept.map(|(_, each)| each).collect();
        let bytes = insert_attempts(&mut write, &kept, &counted).await?;
        let (mut changes, mut recovering) = (Vec::new(), Vec::new());
        if let Some(now) = that_count.iter().map(|each| each.attempt.ended()).max() {
            lanes::wake(&mut write, &lanes, now).await?;
            let updating = update_endpoints(&mut write, &webhooks, &that_count, on_attempt);
            let updated = updating.await?;
            changes = updated.changes;
            recovering = recovery::begin(&mut write, &updated.recovered, now, most).await?;
            for (webhook, endpoint) in &updated.changed {
                if let Some(at) = next_probe(&endpoint.state, now) {
                    probe(&mut write, *webhook, at).await?;
                }
            }
        }
        for each in &that_count {
            if let Outcome::Gone { reason, .. } = &each.outcome {
                let url = &each.attempt.url;
                webhook_row::disable(&mut write, each.lease.ordinal, url, reason).await?;
            }
        }
        // Last, as wherever messages are stored: every such transaction writes this row.
        write
            .execute("UPDATE usage SET bytes = bytes + $1", values![bytes])
            .await?;
        write.commit().await?;
        Ok(Some(Recorded {
            counted: results.iter().map(counts).collect(),
            endpoints: changes,
            recovering,
        }))
    }
}

fn key(lease: &Lease) -> Result<(i64, i64), StoreError> {
    Ok((lease.ordinal, signed(lease.sequence, "sequence")?))
}

/// Moves the deliveries to their next states. Returns those whose results count, and the lanes in which the
/// next delivery has its turn.
async fn advance(
    write: &mut Connection,
    results: impl Iterator<Item = &AttemptResult>,
) -> Result<(Counted, Vec<Lane>), StoreError> {
    let advances = results.map(advance_row).collect::<Result<Vec<_>, _>>()?;
    // A delivery that is retried after an earlier one of its lane became pending again waits for that one.
    let found = write
        .rows_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, lease_token bigint, state text, due_at bigint,
                    finished_at bigint, moves_on bigint
                ],
                "UPDATE deliveries SET state = v.state, attempts = attempts + 1, retry_index = retry_index + v.moves_on,
                     lease_token = NULL, finished_at = v.finished_at, scheduled_at = NULL,
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
    let mut lanes = Vec::new();
    for row in &found {
        let webhook = row.integer("webhook")?;
        counted.insert(
            (webhook, row.integer("sequence")?),
            row.integer("attempts")?,
        );
        if let Some(lane) = row.optional_text("lane")?
            && row.text("state")? != "pending"
        {
            lanes.push(Lane { webhook, lane });
        }
    }
    Ok((counted, lanes))
}

/// The next state of a delivery.
fn advance_row(result: &AttemptResult) -> Result<Vec<Value>, StoreError> {
    let (state, due_at) = match &result.outcome {
        Outcome::Delivered => ("delivered", None),
        Outcome::Failed => ("failed", None),
        Outcome::Retry { at } | Outcome::Early { at } | Outcome::Gone { retry_at: at, .. } => {
            ("pending", Some(*at))
        }
    };
    let moves_on = !matches!(result.outcome, Outcome::Early { .. });
    let (webhook, sequence) = key(&result.lease)?;
    let finished_at = due_at.is_none().then(|| result.attempt.ended());
    Ok(values![
        webhook,
        sequence,
        result.lease.token.0,
        state,
        due_at,
        finished_at,
        i64::from(moves_on)
    ])
}

/// Keeps the attempts that count; returns the bytes of their texts.
async fn insert_attempts(
    write: &mut Connection,
    results: &[&AttemptResult],
    counted: &Counted,
) -> Result<i64, StoreError> {
    if results.is_empty() {
        return Ok(0);
    }
    let (mut attempts, mut bytes) = (Vec::new(), 0_usize);
    for each in results {
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

/// The row of an attempt; the length of its texts is added to `bytes`.
fn attempt_row(
    result: &AttemptResult,
    counted: &Counted,
    bytes: &mut usize,
) -> Result<Vec<Value>, StoreError> {
    let attempt = &result.attempt;
    let (webhook, sequence) = key(&result.lease)?;
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

/// How long an endpoint that failed must have accepted nothing to be one that recovers when it accepts again. A message that
/// fails among others which are accepted is not tried more often for their sake.
const OUTAGE: Duration = Duration::from_secs(60);

/// What results changed of endpoints.
struct UpdatedEndpoints {
    /// By each of them.
    changes: Vec<EndpointChange>,
    /// The webhooks whose endpoint recovered.
    recovered: Vec<i64>,
    /// The webhooks whose endpoint is not as it was before them all.
    changed: Vec<(i64, Endpoint)>,
}

/// Lets `on_attempt` change the endpoints, and notes the last accepted delivery.
async fn update_endpoints(
    write: &mut Connection,
    webhooks: &str,
    results: &[&AttemptResult],
    on_attempt: &OnAttempt<'_>,
) -> Result<UpdatedEndpoints, StoreError> {
    let before = endpoints::lock_and_read(write, webhooks).await?;
    let mut now = before.clone();
    let (mut changes, mut recovered) = (Vec::new(), Vec::new());
    for result in results {
        let Some(endpoint) = now.get_mut(&result.lease.ordinal) else {
            continue;
        };
        let after = on_attempt(endpoint.state, result);
        changes.push(EndpointChange {
            webhook: result.lease.webhook.clone(),
            before: endpoint.state,
            after,
        });
        let was_down = is_down(endpoint, result.attempt.ended());
        endpoint.state = after;
        if result.outcome == Outcome::Delivered {
            if was_down && after.breaker == Breaker::Closed {
                recovered.push(result.lease.ordinal);
            }
            let ended = result.attempt.ended().unix_millis();
            endpoint.last_triggered_at = endpoint.last_triggered_at.max(Some(ended));
        }
    }
    let changed: Vec<_> = now
        .into_iter()
        .filter(|(webhook, endpoint)| before.get(webhook) != Some(endpoint))
        .collect();
    endpoints::write(write, changed.iter().copied()).await?;
    Ok(UpdatedEndpoints {
        changes,
        recovered,
        changed,
    })
}

/// Whether nothing that an endpoint was sent lately was accepted before `now`.
fn is_down(endpoint: &Endpoint, now: Timestamp) -> bool {
    let state = &endpoint.state;
    let since_accepted = endpoint.last_triggered_at.map(Timestamp::from_unix_millis);
    let fails = state.failures > 0 && since_accepted.is_none_or(|at| at.after(OUTAGE) <= now);
    state.breaker != Breaker::Closed || fails
}
