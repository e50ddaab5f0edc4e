//! Quotas of API keys: sets them, shows what is used of them, and keeps owners to them.

use std::time::Duration;

use super::{retried::retried, shares, store::Store, webhook_row};
use crate::{
    Access, Quotas, StoreError, Timestamp, Usage,
    backend::{Connection, Durability, Row, values},
};

/// For how long a rate counts as holding messages back after it last did: longer than any pause between two looks at it.
const THROTTLED_FOR: Duration = Duration::from_secs(10);

/// The longest time that is told to one whose rate holds messages back: no more than what goes out until then are counted.
const LONGEST_WAIT_SECS: u64 = 60;

/// What webhooks and addresses an owner has: the API key with the ordinal `$1`, or none.
const USED: &str = "
    SELECT count(*) AS webhooks,
        CAST(coalesce(sum(octet_length(f.accounts) + octet_length(f.programs) + octet_length(f.token_owners)), 0) / 32
            AS BIGINT) AS addresses
    FROM webhooks w JOIN filters f ON f.webhook = w.ordinal
    WHERE w.deleted = 0 AND (w.api_key = $1 OR (w.api_key IS NULL AND CAST($1 AS BIGINT) IS NULL))";

impl Store {
    /// Sets the limits of an API key, by identifier or by name; false when there is none of the kind, or it was revoked.
    /// What it has beyond them stays, and it gets no more.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn set_quotas(&self, id_or_name: &str, quotas: Quotas) -> Result<bool, StoreError> {
        retried!(self.try_set_quotas(id_or_name, quotas))
    }

    async fn try_set_quotas(&self, id_or_name: &str, quotas: Quotas) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let changed = write
            .execute(
                "UPDATE api_keys SET max_webhooks = $2, max_addresses = $3, max_stored_mib = $4,
                     max_messages_per_second = $5, max_delivery_slots = $6
                 WHERE (id = $1 OR name = $1) AND revoked_at IS NULL",
                values![
                    id_or_name,
                    quotas.webhooks.map(i64::from),
                    quotas.addresses.map(i64::from),
                    quotas.stored_mib.map(i64::from),
                    quotas.messages_per_second.map(i64::from),
                    quotas.delivery_slots.map(i64::from)
                ],
            )
            .await?;
        write.commit().await?;
        Ok(changed > 0)
    }

    /// What a caller uses of its quotas at `now`.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn usage(&self, access: &Access, now: Timestamp) -> Result<Usage, StoreError> {
        retried!(self.try_usage(access, now))
    }

    /// Refuses what would have more kept for a caller of whom as much is kept as its quota says.
    ///
    /// # Errors
    /// [`StoreError::StoredQuota`], [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn check_stored(&self, access: &Access) -> Result<(), StoreError> {
        retried!(self.try_check(access, None))
    }

    /// Refuses what would have more messages wait for a caller whose rate holds some back at `now`, or of whom as much is kept as
    /// its quota says.
    ///
    /// # Errors
    /// [`StoreError::MessageRate`], [`StoreError::StoredQuota`], [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn check_messages(&self, access: &Access, now: Timestamp) -> Result<(), StoreError> {
        retried!(self.try_check(access, Some(now)))
    }

    /// Looks at what is kept, and at the rate where it is to be known as of a time.
    async fn try_check(
        &self,
        access: &Access,
        rate_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let Access::Key(key) = access else {
            return Ok(());
        };
        let mut snapshot = self.settled_snapshot().await?;
        let api_key = webhook_row::api_key_ordinal(&mut snapshot, key).await?;
        let quotas = limits_of(&mut snapshot, Some(api_key)).await?;
        // First, because it is one row, and what is kept are many.
        if let (Some(limit), Some(now)) = (quotas.messages_per_second, rate_at)
            && let Some(wait) = held_back(&mut snapshot, api_key, limit, now).await?
        {
            return Err(StoreError::MessageRate { limit, wait });
        }
        let Some(limit) = quotas.stored_bytes() else {
            return Ok(());
        };
        let (bytes, _) = stored(&mut snapshot, Some(api_key)).await?;
        if bytes < limit {
            return Ok(());
        }
        Err(StoreError::StoredQuota { bytes, limit })
    }

    async fn try_usage(&self, access: &Access, now: Timestamp) -> Result<Usage, StoreError> {
        let mut snapshot = self.settled_snapshot().await?;
        let api_key = match access {
            Access::All => None,
            Access::Key(key) => Some(webhook_row::api_key_ordinal(&mut snapshot, key).await?),
        };
        let mut usage = usage_of(&mut snapshot, api_key).await?;
        if let (Some(key), Some(limit)) = (api_key, usage.quotas.messages_per_second) {
            let rate = rate_of(&mut snapshot, key, limit, now).await?;
            (usage.messages_per_second, usage.throttled) = (Some(rate.used), rate.throttled);
        }
        usage.delivery_slots = shares::leased(&mut snapshot, api_key, now).await?;
        (usage.stored_bytes, _) = stored(&mut snapshot, api_key).await?;
        Ok(usage)
    }
}

/// Bytes of the bodies that are kept for an owner's webhooks, and how many these are: what several messages share counts for each
/// of them. It looks at each of them.
pub(super) async fn stored(
    connection: &mut Connection,
    api_key: Option<i64>,
) -> Result<(u64, u64), StoreError> {
    let row = connection
        .one_row(
            "SELECT CAST(coalesce(sum(octet_length(m.body) + m.shared_bytes), 0) AS BIGINT) AS bytes, count(*) AS messages
             FROM webhooks w JOIN messages m ON m.webhook = w.ordinal
             WHERE w.api_key = $1 OR (w.api_key IS NULL AND CAST($1 AS BIGINT) IS NULL)",
            values![api_key],
        )
        .await?;
    Ok((row.unsigned("bytes")?, row.unsigned("messages")?))
}

/// What of its rate an API key has used.
pub(super) struct RateUsed {
    /// Messages that were handed over in the last second.
    pub(super) used: u32,
    /// Whether the rate has held messages back just now.
    pub(super) throttled: bool,
}

pub(super) async fn rate_of(
    connection: &mut Connection,
    api_key: i64,
    limit: u32,
    now: Timestamp,
) -> Result<RateUsed, StoreError> {
    let row = connection
        .one_row(
            "SELECT next_message_micros, throttled_at FROM api_keys WHERE ordinal = $1",
            values![api_key],
        )
        .await?;
    let at = row.optional_time("throttled_at")?;
    Ok(RateUsed {
        used: shares::handed_over(row.integer("next_message_micros")?, limit, now),
        throttled: at.is_some_and(|at| at.after(THROTTLED_FOR) > now),
    })
}

/// How long the messages take that wait for an API key because of its rate; `None` where none does.
async fn held_back(
    connection: &mut Connection,
    api_key: i64,
    limit: u32,
    now: Timestamp,
) -> Result<Option<Duration>, StoreError> {
    // The rate counts as used up as well where its last turn was taken, and nothing is left that waits for another.
    if !rate_of(connection, api_key, limit, now).await?.throttled {
        return Ok(None);
    }
    let per_second = i64::from(limit.max(1));
    let longest = i64::try_from(LONGEST_WAIT_SECS).unwrap_or(i64::MAX);
    let row = connection
        .one_row(
            "SELECT count(*) AS waiting FROM (
                 SELECT 1 FROM webhooks w JOIN deliveries d ON d.webhook = w.ordinal
                 WHERE w.api_key = $1 AND d.due_at <= $2 LIMIT $3) due",
            values![api_key, now, per_second.saturating_mul(longest)],
        )
        .await?;
    let seconds = row.unsigned("waiting")?.div_ceil(limit.max(1).into());
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

/// What the owner uses, as this transaction sees it, but for what is stored, leased and handed over for it.
pub(super) async fn usage_of(
    connection: &mut Connection,
    api_key: Option<i64>,
) -> Result<Usage, StoreError> {
    let used = connection.one_row(USED, values![api_key]).await?;
    Ok(Usage {
        webhooks: used.count("webhooks")?,
        addresses: used.unsigned("addresses")?,
        stored_bytes: 0,
        messages_per_second: None,
        throttled: false,
        delivery_slots: 0,
        quotas: limits_of(connection, api_key).await?,
    })
}

/// The limits that the owner has of its own.
async fn limits_of(
    connection: &mut Connection,
    api_key: Option<i64>,
) -> Result<Quotas, StoreError> {
    let row = connection
        .row(
            "SELECT max_webhooks, max_addresses, max_stored_mib, max_messages_per_second, max_delivery_slots
             FROM api_keys WHERE ordinal = $1",
            values![api_key],
        )
        .await?;
    Ok(row.as_ref().map(quotas).transpose()?.unwrap_or_default())
}

/// Refuses what a webhook was made to watch in this transaction when its owner watches too much with it. Others that add to
/// what an owner watches wait for the transaction, which has counted a revision.
pub(super) async fn check_addresses(
    write: &mut Connection,
    webhook: i64,
) -> Result<(), StoreError> {
    let owner = write
        .one_row(
            "SELECT api_key FROM webhooks WHERE ordinal = $1",
            values![webhook],
        )
        .await?
        .optional_integer("api_key")?;
    if owner.is_none() {
        return Ok(());
    }
    let usage = usage_of(write, owner).await?;
    match usage.quotas.addresses {
        Some(limit) if usage.addresses > u64::from(limit) => Err(StoreError::AddressQuota {
            count: usage.addresses,
            limit,
        }),
        _ => Ok(()),
    }
}

/// The limits in a row of an API key.
pub(super) fn quotas(row: &Row) -> Result<Quotas, StoreError> {
    Ok(Quotas {
        webhooks: row.optional_count("max_webhooks")?,
        addresses: row.optional_count("max_addresses")?,
        stored_mib: row.optional_count("max_stored_mib")?,
        messages_per_second: row.optional_count("max_messages_per_second")?,
        delivery_slots: row.optional_count("max_delivery_slots")?,
    })
}
