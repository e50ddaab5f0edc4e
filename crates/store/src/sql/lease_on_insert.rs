//! Leases deliveries as they are inserted, for the dispatcher of the process that inserts them.

use std::collections::HashMap;

use super::{
    due_webhooks::borne,
    endpoint_data::{self, DeliveryData, EndpointData},
    rows,
    store::Store,
};
use crate::{
    LeaseRequest, LeaseToken, LeasedDelivery, Load, StoreError, Tenant, TenantShares, Timestamp,
    backend::{Connection, Row, Sql, over_rows, values},
};

/// The active ones of the webhooks of `v`, and how many deliveries are leased of those of which more may be: their endpoints are
/// believed to work and nothing else is due to them at `$2`. Where the owner has limits of its own on that, nothing is leased on insert:
/// they are counted when what is due is leased. What is due already goes first, so of other webhooks nothing is leased. The oldest is
/// selected in the order of the index of due deliveries, so that PostgreSQL takes that one. Webhooks with batches, to which nothing is
/// leased on insert either, and which are sent the most, are read only where their endpoints pause.
const WEBHOOKS: Sql = over_rows!(
    [webhook bigint],
    "SELECT w.ordinal, w.api_key, w.id, w.url, w.secret, w.previous_secrets, w.previous_secrets_until, w.headers, w.gzip,
         w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, e.concurrency_limit, e.breaker, e.paused_until,
         CASE WHEN e.breaker = 'closed' AND coalesce(e.paused_until, 0) <= $2
             AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.ordinal = w.api_key
                 AND (k.max_messages_per_second IS NOT NULL OR k.max_delivery_slots IS NOT NULL))
             AND NOT EXISTS (
                 SELECT 1 FROM (
                     SELECT d.due_at FROM deliveries d WHERE d.webhook = w.ordinal AND d.due_at IS NOT NULL
                     ORDER BY d.due_at, d.sequence LIMIT 1) oldest
                 WHERE oldest.due_at <= $2)
         THEN (SELECT count(*) FROM deliveries l
               WHERE l.webhook = w.ordinal AND l.lease_token IS NOT NULL AND l.due_at > $2)
         END AS leased
     FROM v JOIN webhooks w ON w.ordinal = v.webhook JOIN endpoints e ON e.webhook = w.ordinal
     WHERE w.active = 1 AND w.deleted = 0
         AND (coalesce(e.paused_until, 0) > $2 OR (w.relay_until IS NULL AND w.batch_messages IS NULL))"
);

/// Why nothing of a webhook can be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldBack {
    /// Its endpoint pauses.
    Pauses,
    /// The process holds as much of it as its endpoint bears, so the next result makes room.
    Full,
}

/// Whether the process held as much of a webhook without batches as its endpoint bears when the leases were asked for. The database
/// knows more by now: where it has something leasable, this does not count.
fn is_full(row: &Row, webhook: i64, request: &LeaseRequest) -> Result<bool, StoreError> {
    let held = request.shares.held_of_webhook(webhook);
    if held == 0 {
        return Ok(false);
    }
    let (breaker, leasable) = (rows::breaker(row)?, rows::leasable(row)?);
    Ok(held >= borne(breaker, leasable, None, request.limits.quota))
}

struct Leasable {
    endpoint: EndpointData,
    /// What is left of the lease quota.
    quota: u32,
}

/// The leases that one transaction may give to what it inserts.
pub(super) struct LeaseOnInsert<'r> {
    request: &'r LeaseRequest,
    left: Load,
    /// What is left of the shares of the webhooks' owners.
    shares: HashMap<Tenant, Load>,
    webhooks: HashMap<i64, Leasable>,
    held_back: HashMap<i64, HeldBack>,
    leased: Vec<LeasedDelivery>,
}

impl<'r> LeaseOnInsert<'r> {
    /// Leases on deliveries to these webhooks, as far as the request goes. Until the transaction ends no other one
    /// leases of them.
    pub(super) async fn of(
        write: &mut Connection,
        webhooks: impl Iterator<Item = i64>,
        request: &'r LeaseRequest,
        store: &Store,
    ) -> Result<Self, StoreError> {
        let mut webhooks = endpoint_data::webhooks_json(webhooks)?;
        let locked = write
            .lock(
                "SELECT webhook FROM endpoints WHERE webhook IN (
                     SELECT t.webhook FROM json_to_recordset(CAST($1 AS json)) AS t (webhook bigint))
                 ORDER BY webhook FOR UPDATE SKIP LOCKED",
                values![webhooks.clone()],
            )
            .await?;
        if let Some(locked) = locked {
            let ours = locked.iter().map(|row| row.integer("webhook"));
            webhooks = endpoint_data::webhooks_json(ours.collect::<Result<Vec<_>, _>>()?)?;
        }
        let mut leases = Self {
            left: Load {
                deliveries: request.limits.total,
                bytes: request.limits.bytes,
            },
            shares: HashMap::new(),
            request,
            webhooks: HashMap::new(),
            held_back: HashMap::new(),
            leased: Vec::new(),
        };
        for row in &write.rows(WEBHOOKS, values![webhooks, request.now]).await? {
            leases.add(row, store)?;
        }
        Ok(leases)
    }

    fn add(&mut self, row: &Row, store: &Store) -> Result<(), StoreError> {
        let webhook = row.integer("ordinal")?;
        if row.optional_time("paused_until")? > Some(self.request.now) {
            self.held_back.insert(webhook, HeldBack::Pauses);
        } else if let Some(leasable) = self.leasable(row, webhook, store)? {
            self.webhooks.insert(webhook, leasable);
        } else if is_full(row, webhook, self.request)? {
            self.held_back.insert(webhook, HeldBack::Full);
        }
        Ok(())
    }

    fn leasable(
        &mut self,
        row: &Row,
        webhook: i64,
        store: &Store,
    ) -> Result<Option<Leasable>, StoreError> {
        let request = self.request;
        let Some(leased) = row.optional_count("leased")? else {
            return Ok(None);
        };
        let endpoint = EndpointData::of(row, request.now, &store.keys)?;
        if endpoint.is_paced() || store.staged.has_due(webhook) {
            return Ok(None);
        }
        let share = request.shares.left(endpoint.tenant());
        let quota = rows::leasable(row)?
            .unwrap_or(u32::MAX)
            .min(request.limits.quota)
            .min(TenantShares::quota_of_webhook(share));
        let leased = leased.saturating_add(store.staged.leased(webhook));
        let quota = quota.saturating_sub(leased);
        self.shares.insert(endpoint.tenant(), share);
        Ok((quota > 0).then_some(Leasable { endpoint, quota }))
    }

    /// Counts a delivery to this webhook that is due at once, with a body of so many bytes, and tells when its lease ends and what
    /// proves it; `None` where it may not be leased. It must be leased then.
    pub(super) fn reserve(&mut self, webhook: i64, bytes: u64) -> Option<(Timestamp, LeaseToken)> {
        let leasable = self.webhooks.get_mut(&webhook)?;
        let share = self.shares.get_mut(&leasable.endpoint.tenant())?;
        let one = Load::of_one(bytes);
        let quota = leasable.quota.checked_sub(1)?;
        let (left, of_tenant) = (self.left.less(one)?, share.less(one)?);
        (self.left, *share, leasable.quota) = (left, of_tenant, quota);
        Some((self.request.until, self.request.token))
    }

    /// Why nothing of this webhook can be leased now, so that to look for it would be for nothing.
    pub(super) fn held_back(&self, webhook: i64) -> Option<HeldBack> {
        self.held_back.get(&webhook).copied()
    }

    /// Leases a delivery to this webhook that was counted.
    pub(super) fn lease(&mut self, webhook: i64, delivery: DeliveryData) {
        if let Some(leasable) = self.webhooks.get(&webhook) {
            let leased = leasable.endpoint.leased(delivery, self.request);
            self.leased.push(leased);
        }
    }

    /// The deliveries that were leased, in order.
    pub(super) fn leased(self) -> Vec<LeasedDelivery> {
        self.leased
    }
}
