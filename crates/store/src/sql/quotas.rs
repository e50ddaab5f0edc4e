//! Quotas of API keys: sets them, shows what is used of them, and keeps owners to them.

use super::{retried::retried, store::Store, webhook_row};
use crate::{
    Access, Quotas, StoreError, Usage,
    backend::{Connection, Durability, Row, values},
};

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
        let mut write = self.write(Durability::Durable).await?;
        let changed = write
            .execute(
                "UPDATE api_keys SET max_webhooks = $2, max_addresses = $3, max_stored_mib = $4
                 WHERE (id = $1 OR name = $1) AND revoked_at IS NULL",
                values![
                    id_or_name,
                    quotas.webhooks.map(i64::from),
                    quotas.addresses.map(i64::from),
                    quotas.stored_mib.map(i64::from)
                ],
            )
            .await?;
        write.commit().await?;
        Ok(changed > 0)
    }

    /// What a caller uses of its quotas.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn usage(&self, access: &Access) -> Result<Usage, StoreError> {
        retried!(self.try_usage(access))
    }

    async fn try_usage(&self, access: &Access) -> Result<Usage, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let api_key = match access {
            Access::All => None,
            Access::Key(key) => Some(webhook_row::api_key_ordinal(&mut snapshot, key).await?),
        };
        let mut usage = usage_of(&mut snapshot, api_key).await?;
        (usage.stored_bytes, _) = stored(&mut snapshot, api_key).await?;
        Ok(usage)
    }
}

/// Bytes of the bodies that are kept for an owner's webhooks, and how many these are. It looks at each of them.
pub(super) async fn stored(
    connection: &mut Connection,
    api_key: Option<i64>,
) -> Result<(u64, u64), StoreError> {
    let row = connection
        .one_row(
            "SELECT CAST(coalesce(sum(octet_length(m.body)), 0) AS BIGINT) AS bytes, count(*) AS messages
             FROM webhooks w JOIN messages m ON m.webhook = w.ordinal
             WHERE w.api_key = $1 OR (w.api_key IS NULL AND CAST($1 AS BIGINT) IS NULL)",
            values![api_key],
        )
        .await?;
    Ok((row.unsigned("bytes")?, row.unsigned("messages")?))
}

/// What the owner uses, as this transaction sees it, but for what is stored for it.
pub(super) async fn usage_of(
    connection: &mut Connection,
    api_key: Option<i64>,
) -> Result<Usage, StoreError> {
    let used = connection.one_row(USED, values![api_key]).await?;
    let limits = connection
        .row(
            "SELECT max_webhooks, max_addresses, max_stored_mib FROM api_keys WHERE ordinal = $1",
            values![api_key],
        )
        .await?;
    Ok(Usage {
        webhooks: used.count("webhooks")?,
        addresses: used.unsigned("addresses")?,
        stored_bytes: 0,
        quotas: limits.as_ref().map(quotas).transpose()?.unwrap_or_default(),
    })
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
    let limit = |column: &'static str| {
        let limit = row.optional_integer(column)?;
        let limit = limit.map(u32::try_from).transpose();
        limit.map_err(|_| StoreError::Corrupt { what: column })
    };
    Ok(Quotas {
        webhooks: limit("max_webhooks")?,
        addresses: limit("max_addresses")?,
        stored_mib: limit("max_stored_mib")?,
    })
}
