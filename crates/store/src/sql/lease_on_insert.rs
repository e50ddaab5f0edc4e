//! Leases deliveries as they are inserted, for the dispatcher of the process that inserts them.

use std::collections::{HashMap, HashSet};

use super::{
    endpoint_data::{self, DeliveryData, EndpointData},
    rows,
    store::Store,
};
use crate::{
    Breaker, LeaseRequest, LeaseToken, LeasedDelivery, Load, StoreError, Tenant, TenantShares,
    Timestamp,
    backend::{Connection, Row, Sql, over_rows, values},
};

/// The active ones of the webhooks of `v`, and of those how many deliveries are leased of which some may be leased on insert: those
/// without batches, whose endpoints are believed to work and to which nothing else is due at `$2`. Where the owner has limits of its own
/// on that, nothing is: they are counted when what is due is leased. What is due already goes first, so of other webhooks nothing is
/// leased. The oldest is selected in the order of the index of due deliveries, so that PostgreSQL takes that one.
const WEBHOOKS: Sql = over_rows!(
    [webhook bigint],
    "SELECT w.ordinal, w.api_key, w.id, w.url, w.secret, w.previous_secrets, w.previous_secrets_until, w.headers, w.gzip,
         w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options, e.concurrency_limit, e.breaker, e.paused_until,
         CASE WHEN w.relay_until IS NULL AND w.batch_messages IS NULL AND e.breaker = 'closed' AND coalesce(e.paused_until, 0) <= $2
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
     WHERE w.active = 1 AND w.deleted = 0"
);

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
    /// Webhooks of which nothing can be leased before a pause of their endpoints is over, or the result of a probe is recorded.
    held_back: HashSet<i64>,
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
            held_back: HashSet::new(),
            leased: Vec::new(),
        };
        for row in &write.rows(WEBHOOKS, values![webhooks, request.now]).await? {
            leases.add(row, store)?;
        }
        Ok(leases)
    }

    fn add(&mut self, row: &Row, store: &Store) -> Result<(), StoreError> {
        let request = self.request;
        let webhook = row.integer("ordinal")?;
        let is_probed =
            rows::breaker(row)? != Breaker::Closed && request.shares.held_of_webhook(webhook) > 0;
        if is_probed || row.optional_time("paused_until")? > Some(request.now) {
            self.held_back.insert(webhook);
            return Ok(());
        }
        let Some(leased) = row.optional_count("leased")? else {
            return Ok(());
        };
        let endpoint = EndpointData::of(row, request.now, &store.keys)?;
        if endpoint.is_paced() || store.staged.holds_back(webhook) {
            return Ok(());
        }
        let share = request.shares.left(endpoint.tenant());
        let quota = rows::leasable(row)?
            .unwrap_or(u32::MAX)
            .min(request.limits.quota)
            .min(TenantShares::quota_of_webhook(share));
        self.shares.insert(endpoint.tenant(), share);
        let leased = leased.saturating_add(store.staged.leased(webhook));
        let leasable = Leasable {
            endpoint,
            quota: quota.saturating_sub(leased),
        };
        self.webhooks.insert(webhook, leasable);
        Ok(())
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

    /// Whether nothing of this webhook can be leased now, so that to look for it would be for nothing.
    pub(super) fn holds_back(&self, webhook: i64) -> bool {
        self.held_back.contains(&webhook)
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
