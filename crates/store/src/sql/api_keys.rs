//! API keys: creates, lists and revokes them, and gives webhooks to another one.

use super::{idls, pauses, quotas::quotas, retried::retried, rows, store::Store, webhook_row};
use crate::{
    AcceptedApiKey, Access, ApiKey, ApiKeyHash, ApiKeyId, NewApiKey, Quotas, Scope, Scopes,
    StoreError, Timestamp,
    backend::{Connection, Durability, Row, Sql, database_time, signed, values},
};

/// Why the webhooks of a revoked API key are off.
const REVOKED: &str = "the API key it belongs to was revoked";

const SELECT: &str = "
    SELECT k.id, k.name, k.created_at, k.revoked_at, k.expires_at, k.scopes, k.max_webhooks, k.max_addresses,
        k.max_stored_mib, k.max_messages_per_second, k.max_delivery_slots,
        (SELECT count(*) FROM webhooks w WHERE w.api_key = k.ordinal AND w.deleted = 0) AS webhooks
    FROM api_keys k WHERE CAST($1 AS TEXT) IS NULL OR k.id = $1 ORDER BY k.ordinal";

/// The API key of a hash, while it is accepted.
const ACCEPTED: Sql = Sql {
    sqlite: concat!(
        "SELECT id, scopes FROM api_keys WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ",
        database_time!(sqlite),
        ")"
    ),
    postgres: concat!(
        "SELECT id, scopes FROM api_keys WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ",
        database_time!(postgres),
        ")"
    ),
};

impl Store {
    /// Stores an API key.
    ///
    /// # Errors
    /// [`StoreError::ApiKeyExists`] when another one, revoked or not, has its name, or a failure of the
    /// database.
    pub async fn create_api_key(&self, new: &NewApiKey) -> Result<ApiKey, StoreError> {
        self.create_limited_api_key(new, Quotas::default()).await
    }

    /// [`Self::create_api_key`], with limits of its own from the beginning.
    ///
    /// # Errors
    /// As there.
    pub async fn create_limited_api_key(
        &self,
        new: &NewApiKey,
        quotas: Quotas,
    ) -> Result<ApiKey, StoreError> {
        retried!(self.try_create_limited_api_key(new, quotas))
    }

    async fn try_create_limited_api_key(
        &self,
        new: &NewApiKey,
        quotas: Quotas,
    ) -> Result<ApiKey, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let stored = write
            .execute(
                "INSERT INTO api_keys (id, name, hash, created_at, expires_at, scopes, max_webhooks, max_addresses,
                     max_stored_mib, max_messages_per_second, max_delivery_slots)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
                 ON CONFLICT (name) DO NOTHING",
                values![
                    new.id.as_str(),
                    new.name.as_str(),
                    new.hash.as_str(),
                    new.created,
                    new.expires,
                    scopes_text(&new.scopes),
                    quotas.webhooks.map(i64::from),
                    quotas.addresses.map(i64::from),
                    quotas.stored_mib.map(i64::from),
                    quotas.messages_per_second.map(i64::from),
                    quotas.delivery_slots.map(i64::from)
                ],
            )
            .await?;
        if stored == 0 {
            return Err(StoreError::ApiKeyExists {
                name: new.name.clone(),
            });
        }
        write.commit().await?;
        Ok(ApiKey {
            id: new.id.clone(),
            name: new.name.clone(),
            created: new.created,
            revoked: None,
            expires: new.expires,
            webhooks: 0,
            quotas,
            scopes: new.scopes.clone(),
        })
    }

    /// Every API key, revoked ones included, in order of creation.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let mut read = self.read().await?;
        let any: Option<String> = None;
        let rows = read.rows(SELECT, values![any]).await?;
        rows.iter().map(api_key_of).collect()
    }

    /// Whether an API key was ever made. While none was, only callers on the same machine may be let in; revoking the
    /// last one must not open to them what it has closed.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn api_keys_in_use(&self) -> Result<bool, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .row("SELECT ordinal FROM api_keys LIMIT 1", values![])
            .await?;
        Ok(found.is_some())
    }

    /// The API key of this hash, unless it was revoked or has expired.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn api_key_by_hash(
        &self,
        hash: &ApiKeyHash,
    ) -> Result<Option<AcceptedApiKey>, StoreError> {
        let mut read = self.read().await?;
        let row = read.row(ACCEPTED, values![hash.as_str()]).await?;
        let accepted = |row: Row| {
            Ok(AcceptedApiKey {
                id: rows::api_key_id(&row, "id")?,
                scopes: scopes(&row)?,
            })
        };
        row.map(accepted).transpose()
    }

    /// Revokes an API key, by identifier or by name, and switches its webhooks off, since their owner could
    /// do so no more. `None` when there is none of the kind, or it was revoked before.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn revoke_api_key(
        &self,
        id_or_name: &str,
        now: Timestamp,
    ) -> Result<Option<ApiKey>, StoreError> {
        retried!(self.try_revoke_api_key(id_or_name, now))
    }

    async fn try_revoke_api_key(
        &self,
        id_or_name: &str,
        now: Timestamp,
    ) -> Result<Option<ApiKey>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        // It waits for everybody who is giving something to the key.
        let revoked = write
            .row(
                "UPDATE api_keys SET revoked_at = $2
                 WHERE (id = $1 OR name = $1) AND revoked_at IS NULL RETURNING ordinal, id",
                values![id_or_name, now],
            )
            .await?;
        let Some(revoked) = revoked else {
            return Ok(None);
        };
        let key = revoked.integer("ordinal")?;
        webhook_row::lock_all_of(&mut write, Some(key)).await?;
        // Even if none seems to be on: where a transaction reads as of its beginning, one that was switched on since is noticed by
        // this alone.
        webhook_row::bump_revision(&mut write).await?;
        pauses::begin_all_of(&mut write, key).await?;
        write
            .execute(
                "UPDATE webhooks SET active = 0, disabled_reason = $2, version = version + 1
                 WHERE api_key = $1 AND active = 1 AND deleted = 0",
                values![key, REVOKED],
            )
            .await?;
        let key = select(&mut write, &revoked.text("id")?).await?;
        write.commit().await?;
        Ok(Some(key))
    }

    /// Gives every webhook of `from`, and its IDLs, to the API key `to`, and returns how many webhooks. From [`Access::All`] come those
    /// that belong to no API key. Those that revoking the key switched off stay so until their new owner
    /// switches them on. The requests that created them were another owner's, so they are repeated no more.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApiKey`] for `to`, or a failure of the database.
    pub async fn adopt_webhooks(&self, from: &Access, to: &ApiKeyId) -> Result<u64, StoreError> {
        retried!(self.try_adopt_webhooks(from, to))
    }

    async fn try_adopt_webhooks(&self, from: &Access, to: &ApiKeyId) -> Result<u64, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let ordinal = webhook_row::lock_api_key(&mut write, to).await?;
        let from = match from {
            Access::All => None,
            Access::Key(from) => {
                let known = "SELECT ordinal FROM api_keys WHERE id = $1";
                let Some(row) = write.row(known, values![from.as_str()]).await? else {
                    return Ok(0);
                };
                Some(row.integer("ordinal")?)
            }
        };
        webhook_row::lock_all_of(&mut write, from).await?;
        idls::adopt(&mut write, from, ordinal).await?;
        // What is decoded for them may be another: indexers are to learn whose they are.
        let revision = webhook_row::bump_revision(&mut write).await?;
        let moved = write
            .execute(
                "UPDATE webhooks SET api_key = $2, idempotency_key = NULL, matched_revision = $3
                 WHERE coalesce(api_key, 0) = coalesce(CAST($1 AS BIGINT), 0) AND deleted = 0",
                values![from, ordinal, signed(revision.0, "revision")?],
            )
            .await?;
        write.commit().await?;
        Ok(moved)
    }
}

async fn select(connection: &mut Connection, id: &str) -> Result<ApiKey, StoreError> {
    let row = connection.one_row(SELECT, values![id]).await?;
    api_key_of(&row)
}

fn api_key_of(row: &Row) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        id: rows::api_key_id(row, "id")?,
        name: row.text("name")?,
        created: row.time("created_at")?,
        revoked: row.optional_time("revoked_at")?,
        expires: row.optional_time("expires_at")?,
        webhooks: row.count("webhooks")?,
        quotas: quotas(row)?,
        scopes: scopes(row)?,
    })
}

/// The stored form of scopes: their names with blanks between them, null for all.
fn scopes_text(scopes: &Scopes) -> Option<String> {
    let names = |named: &[Scope]| {
        let names: Vec<_> = named.iter().map(|scope| scope.name()).collect();
        names.join(" ")
    };
    scopes.named().map(names)
}

/// A name that this release does not know gives nothing.
fn scopes(row: &Row) -> Result<Scopes, StoreError> {
    let stored = row.optional_text("scopes")?;
    Ok(stored.map_or(Scopes::ALL, |names| {
        Scopes::only(names.split_whitespace().filter_map(Scope::from_name))
    }))
}
