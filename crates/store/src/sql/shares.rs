//! What one request may lease of each tenant: what the process leaves it, and what the quotas of its API key do.

use std::{collections::HashMap, time::Duration};

use crate::{
    LeaseRequest, Load, StoreError, Tenant, TenantShares, Timestamp,
    backend::{Connection, Row, values},
    model::Pace,
};

/// How many seconds' worth of its rate a tenant may have handed over at once after a rest.
const SAVED_UP: Duration = Duration::from_secs(1);

/// How often it is noted that a rate still holds messages back: it is shown for longer than that ([`Quotas`](crate::Quotas)).
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// Limits that an API key has of its own on what is leased for it at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TenantLimits {
    per_second: Option<u32>,
    slots: Option<u32>,
}

impl TenantLimits {
    /// From `max_messages_per_second` and `max_delivery_slots`, null for the keyless caller.
    pub(super) fn of(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            per_second: row.optional_count("max_messages_per_second")?,
            slots: row.optional_count("max_delivery_slots")?,
        })
    }

    /// Whether the API key has none.
    pub(super) const fn are_none(self) -> bool {
        self.per_second.is_none() && self.slots.is_none()
    }
}

/// What is left of a tenant's share.
#[derive(Clone, Copy)]
pub(super) struct Left {
    /// Of all that it may have.
    pub(super) load: Load,
    /// Of what the process leaves it.
    of_process: Load,
    /// Of the deliveries that it may have leased at once, where it has a limit of its own.
    slots: Option<u32>,
}

impl Left {
    /// What the process leaves a tenant, whatever limits of its own it has.
    pub(super) fn of_process_alone(shares: &TenantShares, tenant: Tenant) -> Self {
        let of_process = shares.left(tenant);
        Self {
            load: of_process,
            of_process,
            slots: None,
        }
    }

    /// How much of the process's share counts for what one webhook may have.
    pub(super) const fn of_process(self) -> Load {
        self.of_process
    }

    /// How many deliveries one webhook may have leased of the tenant's own limit: as many as it leaves to the others.
    pub(super) fn slots_of_webhook(self) -> u32 {
        self.slots.map_or(u32::MAX, slots_of_webhook)
    }
}

/// How many deliveries one webhook may have leased where so many more may be leased for its tenant.
const fn slots_of_webhook(left: u32) -> u32 {
    left.div_ceil(2)
}

struct Share {
    left: Left,
    rate: Option<Rate>,
}

/// Turns of a tenant's messages, and how many were taken.
struct Rate {
    pace: Pace,
    taken: u32,
    throttled_at: Option<Timestamp>,
}

/// The shares of the tenants of one request.
pub(super) struct Shares<'r> {
    request: &'r LeaseRequest,
    of_tenants: HashMap<Tenant, Share>,
    /// How many webhooks of each tenant are still to be leased of.
    waiting: HashMap<Tenant, u32>,
}

impl<'r> Shares<'r> {
    /// The shares of the tenants of these webhooks, of each of which is leased once.
    pub(super) fn of(request: &'r LeaseRequest, webhooks: impl Iterator<Item = Tenant>) -> Self {
        let mut waiting: HashMap<Tenant, u32> = HashMap::new();
        for tenant in webhooks {
            *waiting.entry(tenant).or_default() += 1;
        }
        Self {
            request,
            of_tenants: HashMap::new(),
            waiting,
        }
    }

    /// What is left for the next webhook of a tenant with these limits: where it has any, an even part of them, so that what one
    /// webhook has saved up takes no turn or place from the others. Until the transaction ends no other one leases for such a tenant.
    pub(super) async fn left(
        &mut self,
        write: &mut Connection,
        tenant: Tenant,
        limits: TenantLimits,
    ) -> Result<Left, StoreError> {
        let mut left = self.left_of_all(write, tenant, limits).await?;
        let waiting = self.waiting.entry(tenant).or_default();
        if !limits.are_none() {
            left.load.deliveries = left.load.deliveries.div_ceil((*waiting).max(1));
        }
        *waiting = waiting.saturating_sub(1);
        Ok(left)
    }

    async fn left_of_all(
        &mut self,
        write: &mut Connection,
        tenant: Tenant,
        limits: TenantLimits,
    ) -> Result<Left, StoreError> {
        if let Some(share) = self.of_tenants.get(&tenant) {
            return Ok(share.left);
        }
        let mut share = Share {
            left: Left::of_process_alone(&self.request.shares, tenant),
            rate: None,
        };
        if let (Some(key), false) = (tenant.0, limits.are_none()) {
            limit(write, key, self.request.now, &mut share).await?;
        }
        let left = share.left;
        self.of_tenants.insert(tenant, share);
        Ok(left)
    }

    /// So much was leased for a tenant.
    pub(super) fn take(&mut self, tenant: Tenant, took: Load) {
        if let Some(share) = self.of_tenants.get_mut(&tenant) {
            let left = &mut share.left;
            left.load = left.load.without(took);
            left.of_process = left.of_process.without(took);
            left.slots = left
                .slots
                .map(|slots| slots.saturating_sub(took.deliveries));
            if let Some(rate) = &mut share.rate {
                rate.taken = rate.taken.saturating_add(took.deliveries);
            }
        }
    }

    /// Notes which turns were taken.
    pub(super) async fn record(self, write: &mut Connection) -> Result<(), StoreError> {
        let now = self.request.now;
        for (tenant, share) in self.of_tenants {
            let (Some(key), Some(rate)) = (tenant.0, share.rate) else {
                continue;
            };
            let noted = rate.throttled_at;
            let is_new = noted.is_none_or(|noted| noted.after(NOTED_EVERY) <= now || noted > now);
            let throttled = rate.taken >= rate.pace.turns();
            if rate.taken == 0 && !(throttled && is_new) {
                continue;
            }
            write
                .execute(
                    "UPDATE api_keys SET next_message_micros = $2, throttled_at = $3 WHERE ordinal = $1",
                    values![
                        key,
                        rate.pace.after(rate.taken),
                        if throttled && is_new { Some(now) } else { noted }
                    ],
                )
                .await?;
        }
        Ok(())
    }
}

/// Keeps a share within the quotas of an API key, which is locked; nothing is left where another process has it locked.
async fn limit(
    write: &mut Connection,
    key: i64,
    now: Timestamp,
    share: &mut Share,
) -> Result<(), StoreError> {
    // Nobody who holds one of these locks waits for another, and a foreign key does not wait for them.
    let locked = write
        .lock(
            "SELECT ordinal FROM api_keys WHERE ordinal = $1 FOR NO KEY UPDATE SKIP LOCKED",
            values![key],
        )
        .await?;
    if locked.is_some_and(|locked| locked.is_empty()) {
        share.left.load = Load::default();
        return Ok(());
    }
    let row = write
        .one_row(
            "SELECT max_messages_per_second, max_delivery_slots, next_message_micros, throttled_at
             FROM api_keys WHERE ordinal = $1",
            values![key],
        )
        .await?;
    let limits = TenantLimits::of(&row)?;
    let mut most = share.left.load.deliveries;
    if let Some(slots) = limits.slots {
        let slots = slots.saturating_sub(leased(write, Some(key), now).await?);
        most = most.min(slots);
        share.left.slots = Some(slots);
    }
    if let Some(per_second) = limits.per_second {
        let next = row.integer("next_message_micros")?;
        let pace = Pace::new(next, per_second, now.before(SAVED_UP), SAVED_UP);
        most = most.min(pace.turns());
        share.rate = Some(Rate {
            pace,
            taken: 0,
            throttled_at: row.optional_time("throttled_at")?,
        });
    }
    share.left.load.deliveries = most;
    Ok(())
}

/// How many deliveries are leased for an API key, or for the keyless caller, by all processes.
pub(super) async fn leased(
    connection: &mut Connection,
    key: Option<i64>,
    now: Timestamp,
) -> Result<u32, StoreError> {
    let row = connection
        .one_row(
            "SELECT count(*) AS leased FROM webhooks w JOIN deliveries d ON d.webhook = w.ordinal
             WHERE (w.api_key = $1 OR (w.api_key IS NULL AND CAST($1 AS BIGINT) IS NULL)) AND d.lease_token IS NOT NULL AND d.due_at > $2",
            values![key, now],
        )
        .await?;
    row.count("leased")
}

/// How many deliveries are leased for an API key, where something of it that is due waits because it may have `limit` at once.
/// That may be fewer than the limit: of each webhook a part is left to the others. What waits for its endpoint does not count.
pub(super) async fn slots_used_up(
    connection: &mut Connection,
    key: i64,
    limit: u32,
    now: Timestamp,
) -> Result<Option<u32>, StoreError> {
    let leased = leased(connection, Some(key), now).await?;
    let of_webhook = slots_of_webhook(limit.saturating_sub(leased));
    let held_back = connection
        .row(
            "SELECT w.ordinal FROM webhooks w JOIN endpoints e ON e.webhook = w.ordinal
             WHERE w.api_key = $1 AND w.active = 1 AND w.deleted = 0
                 AND e.breaker = 'closed' AND coalesce(e.paused_until, 0) <= $2
                 AND EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook = w.ordinal AND d.due_at <= $2)
                 AND (SELECT count(*) FROM deliveries l
                      WHERE l.webhook = w.ordinal AND l.lease_token IS NOT NULL AND l.due_at > $2) >= $3
             LIMIT 1",
            values![key, now, i64::from(of_webhook)],
        )
        .await?;
    Ok(held_back.map(|_| leased))
}

/// How many messages were handed over in the last second where the next one may be at `next`, unix microseconds.
pub(super) fn handed_over(next: i64, per_second: u32, now: Timestamp) -> u32 {
    let left = Pace::new(next, per_second, now.before(SAVED_UP), SAVED_UP).turns();
    per_second.saturating_sub(left)
}
