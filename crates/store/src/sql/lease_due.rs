//! Leases deliveries that are due, webhook by webhook, of the tenant that holds fewest first.

use std::time::Duration;

use super::{
    due_webhooks::{DueWebhook, Looked, RELAYED, WAITING, WAITING_OF, due_webhook, in_turn},
    lease_followers::{LaneHead, lease_followers},
    load_leased::LeasedKey,
    pending_leases::{Granted, PendingLeases},
    retried::retried,
    sequence_range::SequenceRange,
    shares::Shares,
    store::Store,
    webhook_row,
};
use crate::{
    Access, Breaker, LeaseLimits, LeaseRequest, LeasedDelivery, Load, StoreError, Timestamp,
    WebhookId, WebhookSet,
    backend::{Connection, Durability, Row, Sql, Value, bound_rows, json_rows, unsigned, values},
    model::Pace,
};

/// Of the deliveries of webhook `$1` that are due at `$2`, in order: at most `$3`, and no more than `$4` together with those that are
/// leased already. What was never leased is taken until `$5`, for a batch that begins with what is due. The length of a body is
/// known without reading it.
macro_rules! due {
    ($select:literal, $lock:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM (
                SELECT d.sequence, d.due_at, d.lane, d.retry_index FROM deliveries d
                WHERE d.webhook = $1 AND d.due_at <= $5
                    AND (d.due_at <= $2 OR (d.lease_token IS NULL AND d.retry_index = 0))
                ORDER BY d.due_at, d.sequence
                LIMIT (SELECT CASE WHEN count(*) >= $4 THEN 0 WHEN $4 - count(*) < $3 THEN $4 - count(*) ELSE $3 END
                       FROM deliveries l WHERE l.webhook = $1 AND l.lease_token IS NOT NULL AND l.due_at > $2) ",
            $lock,
            ") c JOIN messages m ON m.webhook = $1 AND m.sequence = c.sequence ",
            $rest
        )
    };
    ($select:literal, $rest:literal) => {
        Sql {
            sqlite: due!($select, "", $rest),
            postgres: due!($select, "FOR UPDATE SKIP LOCKED", $rest),
        }
    };
}

/// Each of them.
const DUE: Sql = due!(
    "c.sequence, c.lane, c.retry_index, CAST(octet_length(m.body) + m.shared_bytes AS BIGINT) AS bytes",
    "ORDER BY c.due_at, c.sequence"
);

/// All of them together.
const ALL_DUE: Sql = due!(
    "count(*) AS deliveries, min(c.sequence) AS first, max(c.sequence) AS last,
     CAST(coalesce(sum(octet_length(m.body) + m.shared_bytes), 0) AS BIGINT) AS bytes",
    ""
);

/// How far ahead turns of a webhook whose owner asks for a rate are leased: an attempt waits that long for its turn at most,
/// which is less than the patience with which one waits for a permit.
const TURNS_AHEAD: Duration = Duration::from_secs(1);

impl Store {
    /// Leases due deliveries of active webhooks. A delivery whose lease ran out is due again. Of a webhook
    /// whose endpoint pauses none is leased; while its breaker is not closed, one at a time. The tenant of whose
    /// deliveries the process holds fewest comes first, and of his webhooks the longest waiting.
    ///
    /// # Errors
    /// A failure of the database; what was leased all the same is due again when the lease runs out.
    pub async fn lease_due(
        &self,
        request: &LeaseRequest,
    ) -> Result<Vec<LeasedDelivery>, StoreError> {
        let leases = self.lease_due_pending(None, request).await?;
        leases.deliveries().await
    }

    /// As [`Store::lease_due`], but more can be leased while these are loaded. `of` names the only webhooks to look at: where
    /// nothing but theirs has changed, to look at all that wait would cost more than to lease.
    /// What is left of a share is split then as if all of which the process holds deliveries had some due.
    ///
    /// # Errors
    /// As [`Store::lease_due`].
    pub async fn lease_due_pending(
        &self,
        of: Option<&WebhookSet>,
        request: &LeaseRequest,
    ) -> Result<PendingLeases, StoreError> {
        // Read on a reading connection first: mostly nothing is due, and then no turn to write is needed.
        let (webhooks, looked) = match of {
            None => (self.due_webhooks(WAITING, values![]).await?, Looked::AtAll),
            Some(of) => {
                let named: Vec<_> = of.0.iter().collect();
                let named = values![json_rows(&named)?];
                (self.due_webhooks(WAITING_OF, named).await?, Looked::AtSome)
            }
        };
        let due = webhooks
            .iter()
            .filter(|webhook| webhook.due_at <= request.now);
        let due = WebhookSet(due.map(|webhook| webhook.ordinal).collect());
        let webhooks = in_turn(webhooks, request, looked);
        let granted = retried!(self.lease(&webhooks, request))?;
        Ok(PendingLeases::of(granted, due))
    }

    /// Leases due deliveries of one temporary webhook; none when there is no such webhook, or it has ended.
    ///
    /// # Errors
    /// As [`Store::lease_due`].
    pub async fn lease_relayed(
        &self,
        access: &Access,
        id: &WebhookId,
        request: &LeaseRequest,
    ) -> Result<Vec<LeasedDelivery>, StoreError> {
        let key = webhook_row::api_key_text(access);
        let webhooks = self
            .due_webhooks(RELAYED, values![id.as_str(), key, request.now])
            .await?;
        let granted = retried!(self.lease(&webhooks, request))?;
        PendingLeases::of(granted, WebhookSet::default())
            .deliveries()
            .await
    }

    /// When the next delivery of any active webhook is due; it may have been for a while. `None` when none is
    /// pending.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let webhooks = self.due_webhooks(WAITING, values![]).await?;
        Ok(webhooks.iter().map(|webhook| webhook.due_at).min())
    }

    async fn due_webhooks(
        &self,
        statement: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<DueWebhook>, StoreError> {
        let mut read = self.settled_snapshot().await?;
        let found = read.rows(statement, values).await?;
        found.iter().map(due_webhook).collect()
    }

    async fn lease(
        &self,
        webhooks: &[DueWebhook],
        request: &LeaseRequest,
    ) -> Result<Option<Granted>, StoreError> {
        if webhooks.is_empty() || request.limits.total == 0 {
            return Ok(None);
        }
        let mut write = self.write(Durability::Relaxed).await?;
        let (mut selected, mut loads) = (Selected::default(), Vec::new());
        let mut left = request.limits;
        let mut shares = Shares::of(request, webhooks.iter().map(|webhook| webhook.tenant));
        for due in webhooks {
            if left.total == 0 {
                break;
            }
            let tenant = due.tenant;
            let of_tenant = shares.left(&mut write, tenant, due.limits).await?;
            let share = of_tenant.load;
            let quota = due.quota(left.quota, of_tenant);
            // What other processes hold counts too, but that has to be looked up.
            let has_room = request.shares.held_of_webhook(due.ordinal) < quota;
            if share.deliveries == 0 || !has_room {
                continue;
            }
            let within = LeaseLimits {
                total: left.total.min(share.deliveries),
                bytes: left.bytes.min(share.bytes),
                // Such a body would never have room within a share; it waits for the tenant's others.
                oversized: left.oversized && request.shares.held(tenant) == Load::default(),
                quota,
            };
            // Where the next body is too long for what is left, those of other webhooks may not be.
            let took = select_of_webhook(&mut write, due, request, within, &mut selected).await?;
            shares.take(tenant, took);
            if took != Load::default() {
                loads.push((due.holder(), took));
            }
            left.total = left.total.saturating_sub(took.deliveries);
            left.bytes = left.bytes.saturating_sub(took.bytes);
            left.oversized &= took == Load::default();
        }
        shares.record(&mut write).await?;
        if selected.keys.is_empty() {
            // A transaction that is dropped keeps its locks for a moment, in which the next call would pass these webhooks by.
            write.commit().await?;
            return Ok(None);
        }
        selected.lease(&mut write, request).await?;
        let probes = webhooks
            .iter()
            .map(|webhook| (webhook.ordinal, webhook.breaker != Breaker::Closed));
        Ok(Some(Granted {
            store: self.clone(),
            request: request.clone(),
            keys: selected.keys,
            loads,
            webhooks: probes.collect(),
            // What is delivered must not be lost, and its commit may still be waiting for the disk; this one may not.
            pending: write.commit_with_reads_pending().await?,
        }))
    }
}

/// Selects what is leased of one webhook within these limits; returns how much.
async fn select_of_webhook(
    write: &mut Connection,
    webhook: &DueWebhook,
    request: &LeaseRequest,
    left: LeaseLimits,
    selected: &mut Selected,
) -> Result<Load, StoreError> {
    // One transaction at a time leases of a webhook, so that its lease quota is not used twice.
    let locked = write
        .lock(
            "SELECT webhook FROM endpoints WHERE webhook = $1 FOR UPDATE SKIP LOCKED",
            values![webhook.ordinal],
        )
        .await?;
    if locked.is_some_and(|locked| locked.is_empty()) {
        return Ok(Load::default());
    }
    let pace = pace(write, webhook, request.now).await?;
    let in_turn = pace.map_or(u32::MAX, |pace| {
        pace.turns().saturating_mul(webhook.due_in_one())
    });
    if in_turn == 0 {
        return Ok(Load::default());
    }
    let before = selected.keys.len();
    let wait = webhook.batch.map_or(Duration::ZERO, |batch| batch.max_wait);
    let values = values![
        webhook.ordinal,
        request.now,
        left.total.min(in_turn),
        left.quota,
        request.now.after(wait),
    ];
    if webhook.batch.is_some() && !webhook.in_order && pace.is_none() {
        let all = write.one_row(ALL_DUE, values.clone()).await?;
        if let Some(took) = selected.add_all(webhook.ordinal, &all, left)? {
            return Ok(took);
        }
    }
    let found = write.rows(DUE, values).await?;
    let (mut took, lanes) = selected.add(webhook.ordinal, &found, left)?;
    if let (Some(batch), Breaker::Closed) = (webhook.batch, webhook.breaker) {
        for head in lanes {
            let left = Load {
                deliveries: left.total,
                bytes: left.bytes,
            }
            .without(took);
            let followers = lease_followers(write, webhook.ordinal, &head, batch, request, left);
            for (sequence, bytes) in followers.await? {
                took = took.and(Load::of_one(bytes));
                selected.keys.push(LeasedKey {
                    webhook: webhook.ordinal,
                    sequence,
                    head: head.sequence,
                    turn: None,
                });
            }
        }
    }
    if let Some(pace) = pace {
        let keys = selected.keys.get_mut(before..).unwrap_or_default();
        let turns = take_turns(webhook, pace, keys);
        let taken = "UPDATE endpoints SET next_attempt_micros = $2 WHERE webhook = $1";
        let next = pace.after(turns);
        write.execute(taken, values![webhook.ordinal, next]).await?;
    }
    Ok(took)
}

/// The turns of a webhook whose owner asks for a rate. Its endpoint is locked.
async fn pace(
    write: &mut Connection,
    webhook: &DueWebhook,
    now: Timestamp,
) -> Result<Option<Pace>, StoreError> {
    let Some(per_second) = webhook.per_second else {
        return Ok(None);
    };
    let row = write
        .one_row(
            "SELECT next_attempt_micros FROM endpoints WHERE webhook = $1",
            values![webhook.ordinal],
        )
        .await?;
    let next = row.integer("next_attempt_micros")?;
    Ok(Some(Pace::new(next, per_second, now, TURNS_AHEAD)))
}

/// Gives each attempt its turn, in the order of the messages; returns how many were taken. What goes with the first of its lane
/// has the turn of that one.
fn take_turns(webhook: &DueWebhook, pace: Pace, leased: &mut [LeasedKey]) -> u32 {
    leased.sort_unstable_by_key(|key| (key.head, key.sequence));
    let (mut heads, mut turn) = (0, 0);
    for key in leased {
        if key.sequence == key.head {
            turn = heads / webhook.due_in_one();
            heads = heads.saturating_add(1);
        }
        key.turn = Some(pace.turn(turn));
    }
    heads.div_ceil(webhook.due_in_one())
}

/// What is leased by one transaction.
#[derive(Default)]
struct Selected {
    keys: Vec<LeasedKey>,
    /// Those of the keys that were due, webhook by webhook: the others go with one of these.
    due: Vec<SequenceRange>,
}

impl Selected {
    /// Adds all due deliveries of a webhook without lanes, if their sequence numbers follow one another and their bodies have room
    /// within the limits: to look at each would take as long as to lease it. Returns how much they are.
    fn add_all(
        &mut self,
        webhook: i64,
        all: &Row,
        left: LeaseLimits,
    ) -> Result<Option<Load>, StoreError> {
        let load = Load {
            deliveries: all.count("deliveries")?,
            bytes: all.unsigned("bytes")?,
        };
        let (Some(first), Some(last)) = (
            all.optional_integer("first")?,
            all.optional_integer("last")?,
        ) else {
            return Ok(Some(Load::default()));
        };
        let range = SequenceRange {
            webhook,
            first,
            last,
        };
        if !range.has(load.deliveries) || load.bytes > left.bytes {
            return Ok(None);
        }
        let sequences = first..=last;
        let keys = sequences.map(|sequence| LeasedKey::head(webhook, sequence));
        self.keys.extend(keys);
        self.due.push(range);
        Ok(Some(load))
    }

    /// Adds the first of these deliveries of one webhook whose bodies have room within the limits, and the very first whatever its
    /// length where that is allowed. Returns how much they are, and those that are the first of a lane.
    fn add(
        &mut self,
        webhook: i64,
        found: &[Row],
        left: LeaseLimits,
    ) -> Result<(Load, Vec<LaneHead>), StoreError> {
        let (mut took, mut lanes, mut sequences) = (Load::default(), Vec::new(), Vec::new());
        for row in found {
            let bytes = unsigned(row.integer("bytes")?, "messages.body")?;
            let sequence = row.integer("sequence")?;
            let with_it = took.and(Load::of_one(bytes));
            let oversized = left.oversized && sequences.is_empty();
            if with_it.bytes > left.bytes && !oversized {
                break;
            }
            took = with_it;
            sequences.push(sequence);
            self.keys.push(LeasedKey::head(webhook, sequence));
            if let Some(lane) = row.optional_text("lane")? {
                lanes.push(LaneHead {
                    lane,
                    sequence,
                    refusals: row.count("retry_index")?,
                    bytes,
                });
            }
        }
        self.due.extend(SequenceRange::of(webhook, sequences));
        Ok((took, lanes))
    }

    /// Leases them. They were due when they were selected, and nobody else could write them since.
    async fn lease(
        &self,
        write: &mut Connection,
        request: &LeaseRequest,
    ) -> Result<(), StoreError> {
        let (mut ranges, mut keys) = (Vec::new(), Vec::new());
        for range in &self.due {
            let SequenceRange {
                webhook,
                first,
                last,
            } = *range;
            let (token, until) = (request.token.0, request.until);
            if range.is_worth_a_statement() {
                ranges.push(values![webhook, first, last, token, until]);
            } else {
                let sequences = first..=last;
                keys.extend(sequences.map(|sequence| values![webhook, sequence, token, until]));
            }
        }
        let leased = "UPDATE deliveries SET lease_token = $4, due_at = $5
                      WHERE webhook = $1 AND sequence BETWEEN $2 AND $3";
        write.execute_each(leased, ranges).await?;
        write
            .execute_over(
                bound_rows!(
                    [webhook bigint, sequence bigint, lease_token bigint, due_at bigint],
                    "UPDATE deliveries SET lease_token = v.lease_token, due_at = v.due_at FROM v
                     WHERE deliveries.webhook = v.webhook AND deliveries.sequence = v.sequence"
                ),
                keys,
            )
            .await
            .map(drop)
    }
}
