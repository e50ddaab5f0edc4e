//! Operational webhooks: which webhooks are told what becomes of their owner's others, and what there is to tell.

use std::collections::BTreeSet;

use super::{
    quotas::{rate_of, stored, usage_of},
    retried::retried,
    rows,
    shares::slots_used_up,
    store::Store,
    webhook_row,
};
use crate::{
    Access, OperationKind, OperationRecipient, Revision, StoreError, Timestamp, TroubledWebhook,
    UsedUpQuota, WebhookId,
    backend::{Connection, Durability, Row, values},
};

/// Operational webhooks `o` that are on, as `r`, and the other webhooks `w` of their owners.
macro_rules! pairs {
    ($select:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM operational_webhooks o JOIN webhooks r ON r.ordinal = o.webhook
             JOIN webhooks w ON w.ordinal <> r.ordinal
                 AND (w.api_key = r.api_key OR (w.api_key IS NULL AND r.api_key IS NULL))
             JOIN endpoints e ON e.webhook = w.ordinal JOIN filters f ON f.webhook = w.ordinal
             WHERE r.active = 1 AND r.deleted = 0 AND w.deleted = 0 AND ",
            $rest
        )
    };
}

impl Store {
    /// Has a webhook told of these kinds of operations, and of no others. `None` when there is no such webhook.
    ///
    /// # Errors
    /// [`StoreError::MatchesNothing`] where nothing is left of which it would be told, or a failure of the database.
    pub async fn set_operations(
        &self,
        access: &Access,
        id: &WebhookId,
        kinds: &BTreeSet<OperationKind>,
    ) -> Result<Option<()>, StoreError> {
        retried!(self.try_set_operations(access, id, kinds))
    }

    async fn try_set_operations(
        &self,
        access: &Access,
        id: &WebhookId,
        kinds: &BTreeSet<OperationKind>,
    ) -> Result<Option<()>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let locked = webhook_row::lock(&mut write, access, id, None, &self.keys).await?;
        let Some((webhook, before)) = locked else {
            return Ok(None);
        };
        if kinds.is_empty() && before.definition.watches_nothing() {
            return Err(StoreError::MatchesNothing);
        }
        webhook_row::replace_operations(&mut write, webhook, kinds).await?;
        write.commit().await?;
        Ok(Some(()))
    }

    /// Of which kinds of operations a webhook is told. `None` when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn operations(
        &self,
        access: &Access,
        id: &WebhookId,
    ) -> Result<Option<BTreeSet<OperationKind>>, StoreError> {
        let mut read = self.read().await?;
        let found = webhook_row::select(&mut read, access, id, &self.keys).await?;
        Ok(found.map(|webhook| webhook.definition.operations))
    }

    /// Who is told of operations of a kind, and of which webhooks: never of itself.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn operation_recipients(
        &self,
        kind: OperationKind,
    ) -> Result<Vec<OperationRecipient>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                pairs!(
                    "r.id AS recipient, w.id AS subject, o.kinds",
                    "1 = 1 ORDER BY r.ordinal, w.ordinal"
                ),
                values![],
            )
            .await?;
        let mut recipients = Vec::new();
        for row in &found {
            if kinds(row)?.contains(&kind) {
                recipients.push(OperationRecipient {
                    webhook: rows::webhook_id(row, "recipient")?,
                    subject: rows::webhook_id(row, "subject")?,
                });
            }
        }
        Ok(recipients)
    }

    /// The webhooks that are not served as their owners mean it, with whoever is told of that and of which kinds. Who was switched
    /// off is told of its own pause first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn troubled_webhooks(
        &self,
    ) -> Result<Vec<(WebhookId, BTreeSet<OperationKind>, TroubledWebhook)>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                pairs!(
                    "r.id AS recipient, o.kinds, w.id, w.version, w.disabled_reason, w.refused, w.matched_revision, f.digest,
                     e.breaker, e.failing_since",
                    "(w.disabled_reason IS NOT NULL OR w.refused IS NOT NULL OR e.breaker = 'open')
                     AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.webhook = r.ordinal)
                     ORDER BY r.ordinal, w.ordinal"
                ),
                values![],
            )
            .await?;
        let troubled = |row| {
            let webhook = TroubledWebhook {
                id: rows::webhook_id(row, "id")?,
                version: row.unsigned("version")?,
                disabled_reason: row.optional_text("disabled_reason")?,
                refused: row.optional_text("refused")?,
                matched_revision: Revision(row.unsigned("matched_revision")?),
                filter_digest: row.text("digest")?,
                breaker: rows::breaker(row)?,
                failing_since: row.optional_time("failing_since")?,
            };
            Ok((rows::webhook_id(row, "recipient")?, kinds(row)?, webhook))
        };
        found.iter().map(troubled).collect()
    }

    /// The quotas of which nothing is left at `now`, where a webhook of their owner is told so; that of delivery slots where
    /// something waits for one, because all in use is what they are for; that of stored bytes only `with_stored`, because it looks
    /// at every message of the owner. Who was switched off is told of its own pause first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn used_up_quotas(
        &self,
        now: Timestamp,
        with_stored: bool,
    ) -> Result<Vec<UsedUpQuota>, StoreError> {
        let mut read = self.settled_snapshot().await?;
        let found = read
            .rows(
                "SELECT w.id, w.api_key, o.kinds FROM operational_webhooks o JOIN webhooks w ON w.ordinal = o.webhook
                 WHERE w.active = 1 AND w.deleted = 0 AND w.api_key IS NOT NULL
                     AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.webhook = w.ordinal)
                 ORDER BY w.ordinal",
                values![],
            )
            .await?;
        let mut used_up = Vec::new();
        for row in &found {
            if !kinds(row)?.contains(&OperationKind::Quota) {
                continue;
            }
            let webhook = rows::webhook_id(row, "id")?;
            let owner = row.integer("api_key")?;
            let of_owner = used_up_of(&mut read, owner, now, with_stored).await?;
            used_up.extend(
                of_owner
                    .into_iter()
                    .map(|(quota, used, limit)| UsedUpQuota {
                        webhook: webhook.clone(),
                        quota,
                        used,
                        limit,
                    }),
            );
        }
        Ok(used_up)
    }
}

/// The quotas of an API key of which nothing is left: name, what is used, what is allowed.
async fn used_up_of(
    read: &mut Connection,
    owner: i64,
    now: Timestamp,
    with_stored: bool,
) -> Result<Vec<(&'static str, u64, u64)>, StoreError> {
    let usage = usage_of(read, Some(owner)).await?;
    let limits = usage.quotas;
    let mut quotas = vec![
        (
            "webhooks",
            u64::from(usage.webhooks),
            limits.webhooks.map(u64::from),
        ),
        (
            "addresses",
            usage.addresses,
            limits.addresses.map(u64::from),
        ),
    ];
    if let (Some(limit), true) = (limits.stored_bytes(), with_stored) {
        let (bytes, _) = stored(read, Some(owner)).await?;
        quotas.push(("storedBytes", bytes, Some(limit)));
    }
    if let Some(limit) = limits.messages_per_second {
        let rate = rate_of(read, owner, limit, now).await?;
        // By then the last second may have been quieter.
        let used = if rate.throttled { limit } else { 0 };
        quotas.push(("messagesPerSecond", used.into(), Some(limit.into())));
    }
    let used_up = quotas.into_iter().filter_map(|(quota, used, limit)| {
        let limit = limit.filter(|limit| used >= *limit)?;
        Some((quota, used, limit))
    });
    let mut used_up: Vec<_> = used_up.collect();
    if let Some(limit) = limits.delivery_slots
        && let Some(used) = slots_used_up(read, owner, limit, now).await?
    {
        // Some may be left, though for other webhooks than the one that waits.
        used_up.push(("deliverySlots", used.into(), limit.into()));
    }
    Ok(used_up)
}

fn kinds(row: &Row) -> Result<BTreeSet<OperationKind>, StoreError> {
    rows::operation_kinds(&row.text("kinds")?)
}
