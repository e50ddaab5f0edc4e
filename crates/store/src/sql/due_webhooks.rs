//! Webhooks with deliveries that are due, and how many of each may be leased at once.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    rows,
    shares::{Left, TenantLimits},
};
use crate::{
    Batch, Breaker, DeliveryOrder, Holder, LeaseRequest, StoreError, Tenant, TenantShares,
    Timestamp,
    backend::{Row, Sql},
};

/// Of the webhooks that `$pending` names the active ones with deliveries that are or will be due, when the oldest of them is, and of
/// those whose messages are put together since when as many wait as a batch takes. They do where the newest message whose number is a
/// multiple of the most was never leased, which costs one look-up, and nothing when messages are stored; in order its lane must
/// wait for nothing else.
macro_rules! waiting {
    ($pending:expr) => {
        concat!(
            "WITH RECURSIVE pending (webhook) AS (",
            $pending,
            "), waiting AS MATERIALIZED (
        SELECT w.ordinal, w.api_key, w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, w.delivery_order,
            k.max_messages_per_second, k.max_delivery_slots, e.breaker, e.concurrency_limit,
            coalesce(e.paused_until, 0) AS paused_until,
            (SELECT d.due_at FROM deliveries d
             WHERE d.webhook = w.ordinal AND d.due_at IS NOT NULL
             ORDER BY d.due_at, d.sequence LIMIT 1) AS oldest,
            CASE WHEN w.batch_messages IS NOT NULL THEN
                (SELECT f.created_at FROM deliveries f
                 WHERE f.webhook = w.ordinal AND f.sequence = (s.next - 1) / w.batch_messages * w.batch_messages
                     AND f.state = 'pending' AND f.lease_token IS NULL AND f.retry_index = 0
                     AND (f.due_at IS NOT NULL OR
                         (SELECT CASE WHEN h.lease_token IS NULL THEN h.retry_index END FROM deliveries h
                          WHERE h.webhook = w.ordinal AND h.due_at IS NOT NULL
                          ORDER BY h.due_at, h.sequence LIMIT 1) = 0))
            END AS filled_at
        FROM pending
        JOIN webhooks w ON w.ordinal = pending.webhook
        JOIN endpoints e ON e.webhook = w.ordinal
        JOIN sequences s ON s.webhook = w.ordinal
        LEFT JOIN api_keys k ON k.ordinal = w.api_key
        WHERE w.active = 1 AND w.deleted = 0 AND w.relay_until IS NULL
    )
    SELECT * FROM waiting WHERE oldest IS NOT NULL"
        )
    };
}

/// Those of all webhooks. It goes from webhook to webhook through the index of due deliveries, so it costs a few look-ups per
/// webhook with pending ones, however many those are and however many others there are. The order by all columns of that index,
/// where the smallest webhook would do, keeps PostgreSQL from using the primary key, in which everything that was ever delivered
/// lies before what is due.
pub(super) const WAITING: &str = waiting!(
    "
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        UNION ALL
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL AND d.webhook > pending.webhook
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        FROM pending WHERE pending.webhook IS NOT NULL
    "
);

/// Those that `$named` selects as `value`, and the others of their API keys that may have so many deliveries leased at once: a place
/// that one of them frees is free for each.
macro_rules! waiting_of {
    ($named:literal) => {
        waiting!(concat!(
            "SELECT value FROM ",
            $named,
            " UNION SELECT other.ordinal FROM ",
            $named,
            " JOIN webhooks named ON named.ordinal = value
             JOIN api_keys k ON k.ordinal = named.api_key AND k.max_delivery_slots IS NOT NULL
             JOIN webhooks other ON other.api_key = named.api_key"
        ))
    };
}

/// Those of the webhooks in the JSON list `$1`.
pub(super) const WAITING_OF: Sql = Sql {
    sqlite: waiting_of!("json_each($1)"),
    postgres: waiting_of!(
        "(SELECT CAST(value AS BIGINT) AS value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))) of_list"
    ),
};

/// The temporary webhook `$1` of an API key (`$2`, null for all), if it has not ended at `$3`.
pub(super) const RELAYED: &str = "
    SELECT w.ordinal, w.api_key, w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, w.delivery_order,
        k.max_messages_per_second, k.max_delivery_slots, 'closed' AS breaker, e.concurrency_limit,
        CAST(0 AS BIGINT) AS paused_until, CAST(0 AS BIGINT) AS oldest, CAST(NULL AS BIGINT) AS filled_at
    FROM webhooks w JOIN endpoints e ON e.webhook = w.ordinal
    LEFT JOIN api_keys k ON k.ordinal = w.api_key
    WHERE w.id = $1 AND (CAST($2 AS TEXT) IS NULL OR k.id = $2)
        AND w.active = 1 AND w.deleted = 0 AND w.relay_until > $3";

/// Batches of one webhook that may be leased at once, where deliveries are put together: enough that its endpoint need not
/// wait for the database between two of them.
const LEASED_BATCHES: u32 = 4;

/// A webhook with deliveries to be leased.
pub(super) struct DueWebhook {
    pub(super) ordinal: i64,
    pub(super) tenant: Tenant,
    pub(super) limits: TenantLimits,
    /// Attempts in a second, where its owner asks for a rate.
    pub(super) per_second: Option<u32>,
    pub(super) in_order: bool,
    pub(super) breaker: Breaker,
    /// Attempts that may be leased at once; `None` for as many as there are.
    pub(super) leasable: Option<u32>,
    pub(super) batch: Option<Batch>,
    /// When the oldest of them is due, or a batch is filled, not before the endpoint's pause ends.
    pub(super) due_at: Timestamp,
    /// Its part of all that its owner may hold, where that is split among those with something due.
    pub(super) even_part: u32,
}

/// Which of the webhooks with something due were looked at.
#[derive(Clone, Copy)]
pub(super) enum Looked {
    AtAll,
    /// Others may have something due too: those of which the process holds deliveries.
    AtSome,
}

impl DueWebhook {
    /// Deliveries of it that may be leased at once, where each webhook may have `quota` and so much is left of its tenant's
    /// share.
    pub(super) fn quota(&self, quota: u32, left: Left) -> u32 {
        let borne = borne(self.breaker, self.leasable, self.batch, quota);
        if self.breaker != Breaker::Closed {
            return borne;
        }
        let share = left.of_process();
        let of_owner = match self.batch {
            None => TenantShares::quota_of_webhook(share).min(self.even_part),
            Some(batch) => {
                let even_part = self.even_part.max(batch.max_messages);
                share.deliveries.div_ceil(LEASED_BATCHES).min(even_part)
            }
        };
        borne.min(of_owner).min(left.slots_of_webhook())
    }

    pub(super) const fn holder(&self) -> Holder {
        Holder {
            tenant: self.tenant,
            webhook: self.ordinal,
        }
    }

    /// Deliveries of it that one attempt takes of those that are due: of a lane the first alone is.
    pub(super) fn due_in_one(&self) -> u32 {
        let batch = self.batch.filter(|_| !self.in_order);
        batch.map_or(1, |batch| batch.max_messages.max(1))
    }
}

/// Deliveries of a webhook that may be leased at once, whatever its owner's others have, where each may have `quota`: as many as its
/// endpoint is believed to bear, and its owner wants it to; while it is probed, one.
pub(super) fn borne(
    breaker: Breaker,
    leasable: Option<u32>,
    batch: Option<Batch>,
    quota: u32,
) -> u32 {
    if breaker != Breaker::Closed {
        return 1;
    }
    let in_one = batch.map_or(1, |batch| batch.max_messages);
    let quota = batch.map_or(quota, |_| quota.max(in_one.saturating_mul(LEASED_BATCHES)));
    leasable.map_or(quota, |limit| quota.min(limit.saturating_mul(in_one)))
}

/// The webhooks with something due, in the order in which they are leased of. Those of which the process holds as much as it may
/// are left out: to look each of them up while others wait for the turn to write would cost more than all else.
pub(super) fn in_turn(
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
        (held, turn(webhook, request))
    });
    webhooks
}

/// The place of a webhook among those of its tenant: the one that has waited longest comes first. Where the tenant has limits of its
/// own there may be but one turn or place at a time, which one with a long queue would have for ever: there the places are drawn.
fn turn(webhook: &DueWebhook, request: &LeaseRequest) -> u64 {
    if webhook.limits.are_none() {
        return webhook.due_at.unix_millis().cast_unsigned();
    }
    let mut drawn = DefaultHasher::new();
    (request.token, webhook.ordinal).hash(&mut drawn);
    drawn.finish()
}

pub(super) fn due_webhook(row: &Row) -> Result<DueWebhook, StoreError> {
    let oldest = row.time("oldest")?;
    let of_deliveries = row
        .optional_time("filled_at")?
        .map_or(oldest, |filled| filled.min(oldest));
    Ok(DueWebhook {
        ordinal: row.integer("ordinal")?,
        tenant: rows::tenant(row)?,
        limits: TenantLimits::of(row)?,
        per_second: rows::delivery_options(row)?.max_per_second,
        in_order: rows::order(row)? != DeliveryOrder::None,
        breaker: rows::breaker(row)?,
        leasable: rows::leasable(row)?,
        batch: rows::batch(row)?,
        due_at: of_deliveries.max(row.time("paused_until")?),
        even_part: u32::MAX,
    })
}
