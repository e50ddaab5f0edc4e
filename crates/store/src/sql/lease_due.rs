//! Leases deliveries that are due, webhook by webhook, of the tenant that holds fewest first.

use std::{collections::HashMap, time::Duration};

use super::{
    lease_followers::{LaneHead, lease_followers},
    load_leased::{LeasedKey, load},
    retried::retried,
    rows,
    shares::{Left, Shares, TenantLimits},
    store::Store,
    webhook_row,
};
use crate::{
    Access, Batch, Breaker, DeliveryOrder, LeaseLimits, LeaseRequest, LeasedDelivery,
    LeasedWebhooks, Load, StoreError, Tenant, TenantShares, Timestamp, WebhookId,
    backend::{Connection, Durability, Row, Sql, Value, json_rows, unsigned, values},
    model::Pace,
};

/// Of the webhooks that `$pending` names the active ones with deliveries that are or will be due, and when the first of them is,
/// not before the endpoint's pause ends.
macro_rules! waiting {
    ($pending:literal) => {
        concat!(
            "WITH RECURSIVE pending (webhook) AS (",
            $pending,
            "), waiting AS MATERIALIZED (
        SELECT w.ordinal, w.api_key, w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, w.delivery_order,
            k.max_messages_per_second, k.max_delivery_slots, e.breaker, e.concurrency_limit,
            coalesce(e.paused_until, 0) AS paused_until,
            (SELECT d.due_at FROM deliveries d
             WHERE d.webhook = w.ordinal AND d.due_at IS NOT NULL
             ORDER BY d.due_at, d.sequence LIMIT 1) AS oldest
        FROM pending
        JOIN webhooks w ON w.ordinal = pending.webhook
        JOIN endpoints e ON e.webhook = w.ordinal
        LEFT JOIN api_keys k ON k.ordinal = w.api_key
        WHERE w.active = 1 AND w.deleted = 0 AND w.relay_until IS NULL
    )
    SELECT ordinal, api_key, batch_messages, batch_bytes, batch_wait_ms, delivery_options, delivery_order,
        max_messages_per_second, max_delivery_slots, breaker, concurrency_limit,
        CASE WHEN paused_until > oldest THEN paused_until ELSE oldest END AS due_at
    FROM waiting WHERE oldest IS NOT NULL"
        )
    };
}

/// Those of all webhooks. It goes from webhook to webhook through the index of due deliveries, so it costs a few look-ups per
/// webhook with pending ones, however many those are and however many others there are. The order by all columns of that index,
/// where the smallest webhook would do, keeps PostgreSQL from using the primary key, in which everything that was ever delivered
/// lies before what is due.
const WAITING: &str = waiting!(
    "
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        UNION ALL
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL AND d.webhook > pending.webhook
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        FROM pending WHERE pending.webhook IS NOT NULL
    "
);

/// Those of the webhooks in the JSON list `$1`.
const WAITING_OF: Sql = Sql {
    sqlite: waiting!("SELECT value FROM json_each($1)"),
    postgres: waiting!(
        "SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))"
    ),
};

/// The temporary webhook `$1` of an API key (`$2`, null for all), if it has not ended at `$3`.
const RELAYED: &str = "
    SELECT w.ordinal, w.api_key, w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, w.delivery_order,
        k.max_messages_per_second, k.max_delivery_slots, 'closed' AS breaker, e.concurrency_limit, CAST(0 AS BIGINT) AS due_at
    FROM webhooks w JOIN endpoints e ON e.webhook = w.ordinal
    LEFT JOIN api_keys k ON k.ordinal = w.api_key
    WHERE w.id = $1 AND (CAST($2 AS TEXT) IS NULL OR k.id = $2)
        AND w.active = 1 AND w.deleted = 0 AND w.relay_until > $3";

/// Leases the deliveries of webhook `$1` that are due at `$2`: at most `$5`, and no more than `$6` together
/// with those that are leased already; and of these, in order, those whose bodies are `$7` bytes together, the first
/// whatever its length if `$8` is 1. The length of a body is known without reading it. What was never leased is taken until
/// `$9`, for a batch that begins with what is due.
const LEASE: Sql = Sql {
    sqlite: "
        UPDATE deliveries SET lease_token = $3, due_at = $4
        WHERE webhook = $1 AND sequence IN (
            SELECT measured.sequence FROM (
                SELECT c.sequence, row_number() OVER (ORDER BY c.due_at, c.sequence) AS place,
                    sum(octet_length(m.body) + m.shared_bytes) OVER (ORDER BY c.due_at, c.sequence) AS bytes
                FROM (
                    SELECT d.sequence, d.due_at FROM deliveries d WHERE d.webhook = $1 AND d.due_at <= $9
                        AND (d.due_at <= $2 OR (d.lease_token IS NULL AND d.retry_index = 0))
                    ORDER BY d.due_at, d.sequence
                    LIMIT (SELECT CASE WHEN count(*) >= $6 THEN 0 WHEN $6 - count(*) < $5 THEN $6 - count(*) ELSE $5 END
                           FROM deliveries l WHERE l.webhook = $1 AND l.lease_token IS NOT NULL AND l.due_at > $2)
                ) c JOIN messages m ON m.webhook = $1 AND m.sequence = c.sequence
            ) measured WHERE measured.bytes <= $7 OR ($8 = 1 AND measured.place = 1))
        RETURNING sequence, lane, retry_index, (SELECT octet_length(m.body) + m.shared_bytes FROM messages m
            WHERE m.webhook = deliveries.webhook AND m.sequence = deliveries.sequence) AS bytes",
    postgres: "
        UPDATE deliveries SET lease_token = $3, due_at = $4
        WHERE webhook = $1 AND sequence IN (
            SELECT measured.sequence FROM (
                SELECT c.sequence, row_number() OVER (ORDER BY c.due_at, c.sequence) AS place,
                    sum(octet_length(m.body) + m.shared_bytes) OVER (ORDER BY c.due_at, c.sequence) AS bytes
                FROM (
                    SELECT d.sequence, d.due_at FROM deliveries d WHERE d.webhook = $1 AND d.due_at <= $9
                        AND (d.due_at <= $2 OR (d.lease_token IS NULL AND d.retry_index = 0))
                    ORDER BY d.due_at, d.sequence
                    LIMIT (SELECT CASE WHEN count(*) >= $6 THEN 0 WHEN $6 - count(*) < $5 THEN $6 - count(*) ELSE $5 END
                           FROM deliveries l WHERE l.webhook = $1 AND l.lease_token IS NOT NULL AND l.due_at > $2)
                    FOR UPDATE SKIP LOCKED
                ) c JOIN messages m ON m.webhook = $1 AND m.sequence = c.sequence
            ) measured WHERE measured.bytes <= $7 OR ($8 = 1 AND measured.place = 1))
        RETURNING sequence, lane, retry_index, (SELECT CAST(octet_length(m.body) + m.shared_bytes AS BIGINT) FROM messages m
            WHERE m.webhook = deliveries.webhook AND m.sequence = deliveries.sequence) AS bytes",
};

/// Batches of one webhook that may be leased at once, where deliveries are put together: enough that its endpoint need not
/// wait for the database between two of them.
const LEASED_BATCHES: u32 = 4;

/// How far ahead turns of a webhook whose owner asks for a rate are leased: an attempt waits that long for its turn at most,
/// which is less than the patience with which one waits for a permit.
const TURNS_AHEAD: Duration = Duration::from_secs(1);

/// A webhook with deliveries to be leased.
struct DueWebhook {
    ordinal: i64,
    tenant: Tenant,
    limits: TenantLimits,
    /// Attempts in a second, where its owner asks for a rate.
    per_second: Option<u32>,
    in_order: bool,
    breaker: Breaker,
    /// Attempts that may be leased at once; `None` for as many as there are.
    leasable: Option<u32>,
    batch: Option<Batch>,
    due_at: Timestamp,
    /// Its part of all that its owner may hold, where that is split among those with something due.
    even_part: u32,
}

/// Which of the webhooks with something due were looked at.
#[derive(Clone, Copy)]
enum Looked {
    AtAll,
    /// Others may have something due too: those of which the process holds deliveries.
    AtSome,
}

impl DueWebhook {
    /// Deliveries of it that may be leased at once, where each webhook may have `quota` and so much is left of its tenant's
    /// share.
    fn quota(&self, quota: u32, left: Left) -> u32 {
        if self.breaker != Breaker::Closed {
            return 1;
        }
        let share = left.of_process();
        let quota = match self.batch {
            None => quota
                .min(TenantShares::quota_of_webhook(share))
                .min(self.even_part),
            Some(batch) => quota
                .max(batch.max_messages.saturating_mul(LEASED_BATCHES))
                .min(share.deliveries.div_ceil(LEASED_BATCHES))
                .min(self.even_part.max(batch.max_messages)),
        };
        quota.min(left.slots_of_webhook()).min(self.borne())
    }

    /// Deliveries of it that one attempt takes of those that are due: of a lane the first alone is.
    fn due_in_one(&self) -> u32 {
        let batch = self.batch.filter(|_| !self.in_order);
        batch.map_or(1, |batch| batch.max_messages.max(1))
    }

    /// Deliveries that its endpoint is believed to bear at once, and that its owner wants it to.
    fn borne(&self) -> u32 {
        let in_one = self.batch.map_or(1, |batch| batch.max_messages);
        self.leasable
            .map_or(u32::MAX, |limit| limit.saturating_mul(in_one))
    }
}

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
        // Read on a reading connection first: mostly nothing is due, and then no turn to write is needed.
        let webhooks = self.due_webhooks(WAITING, values![]).await?;
        let webhooks = in_turn(webhooks, request, Looked::AtAll);
        retried!(self.lease(&webhooks, request))
    }

    /// The same, of these webhooks alone: where results of theirs were recorded and nothing else has changed, to look at all
    /// that wait would cost more than to lease. What is left of a share is split as if all of which the process holds deliveries
    /// had some due.
    ///
    /// # Errors
    /// As [`Store::lease_due`].
    pub async fn lease_due_of(
        &self,
        webhooks: &LeasedWebhooks,
        request: &LeaseRequest,
    ) -> Result<Vec<LeasedDelivery>, StoreError> {
        let named: Vec<_> = webhooks.0.iter().collect();
        let webhooks = self
            .due_webhooks(WAITING_OF, values![json_rows(&named)?])
            .await?;
        let webhooks = in_turn(webhooks, request, Looked::AtSome);
        retried!(self.lease(&webhooks, request))
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
        retried!(self.lease(&webhooks, request))
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
        let mut read = self.read().await?;
        let found = read.rows(statement, values).await?;
        found.iter().map(due_webhook).collect()
    }

    async fn lease(
        &self,
        webhooks: &[DueWebhook],
        request: &LeaseRequest,
    ) -> Result<Vec<LeasedDelivery>, StoreError> {
        if webhooks.is_empty() || request.limits.total == 0 {
            return Ok(Vec::new());
        }
        let mut write = self.write(Durability::Relaxed).await?;
        let mut leased = Vec::new();
        let mut left = request.limits;
        let mut shares = Shares::of(request);
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
            let took = lease_of_webhook(&mut write, due, request, within, &mut leased).await?;
            shares.take(tenant, took);
            left.total = left.total.saturating_sub(took.deliveries);
            left.bytes = left.bytes.saturating_sub(took.bytes);
            left.oversized &= took == Load::default();
        }
        shares.record(&mut write).await?;
        if leased.is_empty() {
            // A transaction that is dropped keeps its locks for a moment, in which the next call would pass these webhooks by.
            write.commit().await?;
            return Ok(Vec::new());
        }
        // What is delivered must not be lost, and its commit may still be waiting for the disk; this one may not.
        write.commit_durably_with_reads().await?;
        // The turn to write is over while this is read.
        let mut read = self.read().await?;
        let probes: Vec<_> = webhooks
            .iter()
            .map(|webhook| (webhook.ordinal, webhook.breaker != Breaker::Closed))
            .collect();
        load(&mut read, &leased, &probes, request, &self.keys).await
    }
}

/// The webhooks with something due, in the order in which they are leased of. Those of which the process holds as much as it may
/// are left out: to look each of them up while others wait for the turn to write would cost more than all else.
fn in_turn(
    mut webhooks: Vec<DueWebhook>,
    request: &LeaseRequest,
    looked: Looked,
) -> Vec<DueWebhook> {
    webhooks.retain(|webhook| webhook.due_at <= request.now);
    let mut due: HashMap<Tenant, u32> = HashMap::new();
    for webhook in &webhooks {
        *due.entry(webhook.tenant).or_default() += 1;
    }
    for webhook in &mut webhooks {
        let of_tenant = due.get(&webhook.tenant).copied().unwrap_or(1);
        let others = match looked {
            Looked::AtAll => 0,
            Looked::AtSome => request.shares.webhooks_held(webhook.tenant),
        };
        webhook.even_part = request
            .shares
            .even_part(webhook.tenant, of_tenant.max(others));
    }
    webhooks.retain(|webhook| {
        let left = Left::of_process_alone(&request.shares, webhook.tenant);
        request.shares.held_of_webhook(webhook.ordinal) < webhook.quota(request.limits.quota, left)
    });
    webhooks.sort_by_key(|webhook| {
        let held = request.shares.held(webhook.tenant).deliveries;
        (held, webhook.due_at)
    });
    webhooks
}

/// Leases of one webhook within these limits; returns how much.
async fn lease_of_webhook(
    write: &mut Connection,
    webhook: &DueWebhook,
    request: &LeaseRequest,
    left: LeaseLimits,
    leased: &mut Vec<LeasedKey>,
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
    let before = leased.len();
    let found = write
        .rows(
            LEASE,
            values![
                webhook.ordinal,
                request.now,
                request.token.0,
                request.until,
                left.total.min(in_turn),
                left.quota,
                i64::try_from(left.bytes).unwrap_or(i64::MAX),
                left.oversized,
                request
                    .now
                    .after(webhook.batch.map_or(Duration::ZERO, |batch| batch.max_wait)),
            ],
        )
        .await?;
    let (mut took, lanes) = note_leased(webhook.ordinal, &found, leased)?;
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
                leased.push(LeasedKey {
                    webhook: webhook.ordinal,
                    sequence,
                    head: head.sequence,
                    turn: None,
                });
            }
        }
    }
    if let Some(pace) = pace {
        let turns = take_turns(webhook, pace, leased.get_mut(before..).unwrap_or_default());
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

/// Notes the deliveries in these rows of one webhook. Returns how much they are, and those that are the first of a lane.
fn note_leased(
    webhook: i64,
    found: &[Row],
    leased: &mut Vec<LeasedKey>,
) -> Result<(Load, Vec<LaneHead>), StoreError> {
    let mut took = Load::default();
    let mut lanes = Vec::new();
    for row in found {
        let bytes = unsigned(row.integer("bytes")?, "messages.body")?;
        let sequence = row.integer("sequence")?;
        took = took.and(Load::of_one(bytes));
        leased.push(LeasedKey {
            webhook,
            sequence,
            head: sequence,
            turn: None,
        });
        if let Some(lane) = row.optional_text("lane")? {
            lanes.push(LaneHead {
                lane,
                sequence,
                refusals: row.count("retry_index")?,
                bytes,
            });
        }
    }
    Ok((took, lanes))
}

fn due_webhook(row: &Row) -> Result<DueWebhook, StoreError> {
    Ok(DueWebhook {
        ordinal: row.integer("ordinal")?,
        tenant: rows::tenant(row)?,
        limits: TenantLimits::of(row)?,
        per_second: rows::delivery_options(row)?.max_per_second,
        in_order: rows::order(row)? != DeliveryOrder::None,
        breaker: rows::breaker(row)?,
        leasable: rows::leasable(row)?,
        batch: rows::batch(row)?,
        due_at: row.time("due_at")?,
        even_part: u32::MAX,
    })
}
