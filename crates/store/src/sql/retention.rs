//! Retention: removes old messages, ended temporary webhooks and the rest of deleted ones, bit by bit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    bodies::Loosened,
    lanes::{self, Lane},
    quotas::stored,
    retried::retried,
    rows,
    store::Store,
    webhook_row,
};
use crate::{
    Removed, Retention, StoreError, Timestamp, WebhookId,
    backend::{Connection, Durability, Value, json_rows, over_rows, signed, values},
    model::{Kept, fair_part},
};

/// Messages removed in one transaction: few enough that no other write waits noticeably for its turn.
const CHUNK: i64 = 500;

/// Filter changes kept: far more than owners wait for to be in force.
const FILTER_CHANGES: i64 = 10_000;

const OLD_FINISHED: &str = "
    SELECT webhook, sequence, lane FROM deliveries
    WHERE finished_at < $1 ORDER BY finished_at LIMIT $2";

/// Those of one tenant, whose API key has the ordinal `$3`; 0 stands for none.
const FINISHED_OF_TENANT: &str = "
    SELECT d.webhook, d.sequence, d.lane FROM deliveries d JOIN webhooks w ON w.ordinal = d.webhook
    WHERE d.finished_at < $1 AND coalesce(w.api_key, 0) = $3 ORDER BY d.finished_at LIMIT $2";

/// Those of them that nobody has accepted yet.
const UNDELIVERED_OF_TENANT: &str = "
    SELECT d.webhook, d.sequence, d.lane FROM deliveries d JOIN webhooks w ON w.ordinal = d.webhook
    WHERE d.state = 'pending' AND d.lease_token IS NULL AND d.created_at < $1 AND coalesce(w.api_key, 0) = $3
    ORDER BY d.created_at, d.sequence LIMIT $2";

/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;

const OLD_UNDELIVERED: &str = "
    SELECT webhook, sequence, lane FROM deliveries
    WHERE state = 'pending' AND lease_token IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2";

/// What one chunk was: messages by webhook, and the bytes of all.
#[derive(Default)]
struct RemovedChunk {
    messages: BTreeMap<i64, u64>,
    bytes: u64,
}

#[derive(Serialize)]
struct Victim {
    webhook: i64,
    sequence: i64,
}

impl Store {
    /// Removes the messages that retention allows, with their attempts, bit by bit, and returns what they were.
    /// Pending ones are removed for their age alone, if that is allowed, and never while they are leased.
    ///
    /// # Errors
    /// A failure of the database; what was removed until then stays removed.
    pub async fn prune(&self, retention: &Retention) -> Result<Removed, StoreError> {
        self.expire_relays(retention.now).await?;
        retried!(self.remove_deleted(None))?;
        retried!(self.remove_filter_changes())?;
        let mut removed = Removed::default();
        loop {
            let chunk = self
                .remove(OLD_FINISHED, retention.finished_before, retention.now)
                .await?;
            if chunk.messages.is_empty() {
                break;
            }
            removed.finished = removed.finished.saturating_add(total(&chunk.messages));
        }
        if let Some(before) = retention.undelivered_before {
            removed.undelivered = self.remove_undelivered(before, retention.now).await?;
        }
        self.keep_to_quotas(retention.now, &mut removed).await?;
        if let Some(limit) = retention.max_bytes {
            self.make_room(limit, retention.now, &mut removed).await?;
        }
        Ok(removed)
    }

    /// Removes messages of the owners of whom more is kept than their quota says: finished ones first, then those that nobody
    /// has accepted, the oldest first. What is leased stays. It looks at every message of owners with such a quota.
    ///
    /// # Errors
    /// A failure of the database; what was removed until then stays removed.
    pub async fn prune_to_quotas(&self, now: Timestamp) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        self.keep_to_quotas(now, &mut removed).await?;
        Ok(removed)
    }

    async fn keep_to_quotas(
        &self,
        now: Timestamp,
        removed: &mut Removed,
    ) -> Result<(), StoreError> {
        let mut read = self.read().await?;
        let limited = read
            .rows(
                "SELECT ordinal, max_stored_mib FROM api_keys WHERE max_stored_mib IS NOT NULL ORDER BY ordinal",
                values![],
            )
            .await?;
        drop(read);
        for row in &limited {
            let tenant = row.integer("ordinal")?;
            let limit = row.unsigned("max_stored_mib")?.saturating_mul(MIB);
            for select in [FINISHED_OF_TENANT, UNDELIVERED_OF_TENANT] {
                loop {
                    let excess = self.excess_of(tenant, limit).await?;
                    if excess == 0 {
                        break;
                    }
                    let of_tenant = (tenant, excess.min(CHUNK));
                    let chunk = self.remove_of_tenant(select, of_tenant, now).await?;
                    if chunk.messages.is_empty() {
                        break;
                    }
                    let count = total(&chunk.messages);
                    removed.for_quotas = removed.for_quotas.saturating_add(count);
                }
            }
        }
        Ok(())
    }

    /// About how many messages a tenant has too many, where no more than `limit` bytes are to be kept.
    async fn excess_of(&self, tenant: i64, limit: u64) -> Result<i64, StoreError> {
        let mut read = self.read().await?;
        let (bytes, messages) = stored(&mut read, Some(tenant)).await?;
        Ok(Kept { bytes, messages }.excess(limit))
    }

    /// Removes finished messages until no more than `limit` bytes are kept: of the tenant with most bytes first, and of none
    /// who has no more than a fair part of the limit. His messages are not removed for the sake of another's that nobody accepts.
    async fn make_room(
        &self,
        limit: u64,
        now: Timestamp,
        removed: &mut Removed,
    ) -> Result<(), StoreError> {
        if self.kept_bytes().await? <= limit {
            return Ok(());
        }
        let mut tenants = self.kept_by_tenant().await?;
        let part = fair_part(tenants.values().map(|kept| kept.bytes), limit);
        while self.kept_bytes().await? > limit {
            let greediest = tenants.iter().max_by_key(|(_, kept)| kept.bytes);
            let Some((&tenant, &kept)) = greediest.filter(|(_, kept)| kept.bytes > part) else {
                removed.too_large = true;
                break;
            };
            let excess = kept.excess(part).min(CHUNK);
            let chunk = self
                .remove_of_tenant(FINISHED_OF_TENANT, (tenant, excess), now)
                .await?;
            let count = total(&chunk.messages);
            if count == 0 {
                // What is left of him is not finished.
                tenants.remove(&tenant);
            } else {
                tenants.insert(tenant, kept.without(count, chunk.bytes));
            }
            removed.for_room = removed.for_room.saturating_add(count);
        }
        Ok(())
    }

    /// What is kept of each tenant: the ordinal of an API key, 0 for none. It looks at every message and attempt, so it is for
    /// when there is no room.
    async fn kept_by_tenant(&self) -> Result<BTreeMap<i64, Kept>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT coalesce(w.api_key, 0) AS tenant, CAST(sum(k.bytes) AS BIGINT) AS bytes,
                     CAST(sum(k.messages) AS BIGINT) AS messages
                 FROM (
                     SELECT webhook, sum(octet_length(body) + shared_bytes) AS bytes, count(*) AS messages
                     FROM messages GROUP BY webhook
                     UNION ALL
                     SELECT webhook, sum(octet_length(request_headers) + coalesce(octet_length(response), 0)), 0
                     FROM attempts GROUP BY webhook
                 ) k JOIN webhooks w ON w.ordinal = k.webhook GROUP BY coalesce(w.api_key, 0)",
                values![],
            )
            .await?;
        found
            .iter()
            .map(|row| {
                let (bytes, messages) = (row.unsigned("bytes")?, row.unsigned("messages")?);
                Ok((row.integer("tenant")?, Kept { bytes, messages }))
            })
            .collect()
    }

    /// Removes temporary webhooks that have ended, and returns how many.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn expire_relays(&self, now: Timestamp) -> Result<u64, StoreError> {
        retried!(self.try_expire_relays(now))
    }

    async fn try_expire_relays(&self, now: Timestamp) -> Result<u64, StoreError> {
        const ENDED: &str = "SELECT ordinal FROM webhooks WHERE relay_until <= $1 AND deleted = 0";
        let mut read = self.read().await?;
        let any = read.row(ENDED, values![now]).await?;
        drop(read);
        if any.is_none() {
            return Ok(0);
        }
        let mut write = self.write(Durability::Durable).await?;
        let ended = write.rows(ENDED, values![now]).await?;
        for row in &ended {
            webhook_row::mark_deleted(&mut write, row.integer("ordinal")?).await?;
        }
        write.commit().await?;
        Ok(u64::try_from(ended.len()).unwrap_or(u64::MAX))
    }

    /// Removes the messages of deleted webhooks, a first bit of one or all of all, and the webhooks of
    /// which nothing is left.
    pub(super) async fn remove_deleted(&self, only: Option<i64>) -> Result<(), StoreError> {
        loop {
            let mut write = self.write(Durability::Relaxed).await?;
            let deleted = write
                .row(
                    "SELECT ordinal FROM webhooks
                     WHERE deleted = 1 AND (CAST($1 AS BIGINT) IS NULL OR ordinal = $1) LIMIT 1",
                    values![only],
                )
                .await?;
            let Some(deleted) = deleted else {
                return Ok(());
            };
            let webhook = deleted.integer("ordinal")?;
            // Before its deliveries, as everywhere.
            let lock = "SELECT webhook FROM sequences WHERE webhook = $1 FOR UPDATE";
            write.lock(lock, values![webhook]).await?;
            let found = write
                .rows(
                    "SELECT webhook, sequence FROM messages WHERE webhook = $1 ORDER BY sequence LIMIT $2",
                    values![webhook, CHUNK],
                )
                .await?;
            let victims = found
                .iter()
                .map(|row| {
                    Ok(Victim {
                        webhook,
                        sequence: row.integer("sequence")?,
                    })
                })
                .collect::<Result<Vec<_>, StoreError>>()?;
            delete(&mut write, &victims).await?;
            let last = i64::try_from(victims.len()).unwrap_or(i64::MAX) < CHUNK;
            if last {
                write
                    .execute("DELETE FROM webhooks WHERE ordinal = $1", values![webhook])
                    .await?;
            }
            write.commit().await?;
            if only.is_some() {
                return Ok(());
            }
        }
    }

    async fn remove_undelivered(
        &self,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<(WebhookId, u64)>, StoreError> {
        let mut per_webhook: BTreeMap<i64, u64> = BTreeMap::new();
        loop {
            let chunk = self.remove(OLD_UNDELIVERED, before, now).await?;
            if chunk.messages.is_empty() {
                break;
            }
            for (webhook, count) in chunk.messages {
                let sum = per_webhook.entry(webhook).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        let mut read = self.read().await?;
        let mut named = Vec::new();
        for (webhook, count) in per_webhook {
            let row = read
                .row(
                    "SELECT id FROM webhooks WHERE ordinal = $1",
                    values![webhook],
                )
                .await?;
            if let Some(row) = row {
                named.push((rows::webhook_id(&row, "id")?, count));
            }
        }
        Ok(named)
    }

    /// Removes one chunk of what `select` finds before a time.
    async fn remove(
        &self,
        select: &'static str,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<RemovedChunk, StoreError> {
        retried!(self.try_remove(select, values![before, CHUNK], now))
    }

    /// Removes one chunk of what `select` finds of a tenant's messages.
    async fn remove_of_tenant(
        &self,
        select: &'static str,
        (tenant, most): (i64, i64),
        now: Timestamp,
    ) -> Result<RemovedChunk, StoreError> {
        let any_time = i64::MAX;
        retried!(self.try_remove(select, values![any_time, most, tenant], now))
    }

    async fn try_remove(
        &self,
        select: &'static str,
        parameters: Vec<Value>,
        now: Timestamp,
    ) -> Result<RemovedChunk, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let found = write.rows(select, parameters).await?;
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        let mut victims = Vec::new();
        let mut woken = Vec::new();
        for row in &found {
            let webhook = row.integer("webhook")?;
            let count = counts.entry(webhook).or_default();
            *count = count.saturating_add(1);
            victims.push(Victim {
                webhook,
                sequence: row.integer("sequence")?,
            });
            if let Some(lane) = row.optional_text("lane")? {
                woken.push(Lane { webhook, lane });
            }
        }
        woken.sort_unstable();
        woken.dedup();
        if !woken.is_empty() {
            lanes::lock_numbering(&mut write, &json_rows(&woken)?, false).await?;
        }
        let bytes = delete(&mut write, &victims).await?;
        lanes::wake(&mut write, &woken, now).await?;
        write.commit().await?;
        Ok(RemovedChunk {
            messages: counts,
            bytes,
        })
    }

    async fn kept_bytes(&self) -> Result<u64, StoreError> {
        let mut read = self.read().await?;
        let row = read.one_row("SELECT bytes FROM usage", values![]).await?;
        row.unsigned("bytes")
    }

    async fn remove_filter_changes(&self) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        write
            .execute(
                "DELETE FROM filter_changes
                 WHERE revision <= (SELECT revision FROM webhook_revision) - $1 AND in_force_slot IS NOT NULL",
                values![FILTER_CHANGES],
            )
            .await?;
        write.commit().await
    }
}

fn total(counts: &BTreeMap<i64, u64>) -> u64 {
    counts
        .values()
        .fold(0, |sum, count| sum.saturating_add(*count))
}

/// Removes messages with their deliveries and attempts, and counts their bytes off, which it returns.
async fn delete(write: &mut Connection, victims: &[Victim]) -> Result<u64, StoreError> {
    if victims.is_empty() {
        return Ok(0);
    }
    let rows = json_rows(victims)?;
    let loosened = Loosened::by(write, &rows).await?;
    let size = write
        .one_row(
            over_rows!(
                [webhook bigint, sequence bigint],
                "SELECT count(*) AS messages, CAST(coalesce(sum(
                     octet_length(m.body) + m.shared_bytes + (
                         SELECT coalesce(sum(octet_length(a.request_headers) + coalesce(octet_length(a.response), 0)), 0)
                         FROM attempts a WHERE a.webhook = m.webhook AND a.sequence = m.sequence)), 0) AS BIGINT) AS bytes
                 FROM v JOIN messages m ON m.webhook = v.webhook AND m.sequence = v.sequence"
            ),
            values![rows.clone()],
        )
        .await?;
    write
        .execute(
            over_rows!(
                [webhook bigint, sequence bigint],
                "DELETE FROM messages WHERE (webhook, sequence) IN (SELECT webhook, sequence FROM v)"
            ),
            values![rows],
        )
        .await?;
    loosened.remove(write).await?;
    let messages = size.unsigned("messages")?;
    let bytes = size.unsigned("bytes")?;
    write
        .execute(
            "UPDATE usage SET messages = messages - $1, bytes = bytes - $2",
            values![signed(messages, "count")?, signed(bytes, "size")?],
        )
        .await?;
    Ok(bytes)
}
