//! Webhooks in SQLite.

use solana_pubkey::{PUBKEY_BYTES, Pubkey};
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

use super::{Durability, Store, unsigned};
use crate::{
    EventKinds, Filters, LiveWebhook, LiveWebhooks, NewWebhook, Revision, StoreError, Timestamp,
    Webhook, WebhookDefinition, WebhookId, WebhookPage,
};

impl Store {
    /// Creates a webhook, unless `limit` exist already.
    ///
    /// # Errors
    /// [`StoreError::TooManyWebhooks`], or a failure of the database, which also refuses a definition
    /// without kinds or without keys.
    pub async fn create_webhook(
        &self,
        new: &NewWebhook,
        limit: u32,
    ) -> Result<Webhook, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM webhooks")
            .fetch_one(&mut *write)
            .await?;
        if count >= i64::from(limit) {
            return Err(StoreError::TooManyWebhooks { limit });
        }
        let definition = &new.definition;
        sqlx::query(
            "INSERT INTO webhooks (id, url, wants_account_change, wants_transaction, wants_program_event,
                 accounts, programs, active, created_at, secret)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(new.id.as_str())
        .bind(&definition.url)
        .bind(definition.events.account_change)
        .bind(definition.events.transaction)
        .bind(definition.events.program_event)
        .bind(to_blob(&definition.filters.accounts))
        .bind(to_blob(&definition.filters.programs))
        .bind(definition.active)
        .bind(new.created.unix_millis())
        .bind(new.secret.expose())
        .execute(&mut *write)
        .await?;
        bump_revision(&mut write).await?;
        write.commit().await?;
        Ok(Webhook {
            id: new.id.clone(),
            definition: definition.clone(),
            disabled_reason: None,
            created: new.created,
            last_triggered: None,
        })
    }

    /// The webhook of this id, if there is one.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn webhook(&self, id: &WebhookId) -> Result<Option<Webhook>, StoreError> {
        let mut connection = self.read().await?;
        select(&mut connection, id).await
    }

    /// Up to `limit` webhooks in order of creation, after the position that the page before gave.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_webhooks(
        &self,
        after: Option<i64>,
        limit: u32,
    ) -> Result<WebhookPage, StoreError> {
        let mut connection = self.read().await?;
        // One more than asked for tells whether there is a next page.
        let mut rows =
            sqlx::query("SELECT * FROM webhooks WHERE ordinal > ? ORDER BY ordinal LIMIT ?")
                .bind(after.unwrap_or(0))
                .bind(i64::from(limit).saturating_add(1))
                .fetch_all(&mut *connection)
                .await?;
        let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if more {
            rows.pop();
        }
        let next = match rows.last() {
            Some(last) if more => Some(last.try_get("ordinal")?),
            _ => None,
        };
        let webhooks = rows.iter().map(webhook_of).collect::<Result<_, _>>()?;
        Ok(WebhookPage { webhooks, next })
    }

    /// Replaces what the owner wrote; `None` when there is no such webhook. Switching it on clears the
    /// reason for which the service had switched it off.
    ///
    /// # Errors
    /// A failure of the database, which also refuses a definition without kinds or without keys.
    pub async fn update_webhook(
        &self,
        id: &WebhookId,
        definition: &WebhookDefinition,
    ) -> Result<Option<Webhook>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some(before) = select(&mut write, id).await? else {
            return Ok(None);
        };
        let disabled_reason = before.disabled_reason.filter(|_| !definition.active);
        sqlx::query(
            "UPDATE webhooks SET url = ?, wants_account_change = ?, wants_transaction = ?,
                 wants_program_event = ?, accounts = ?, programs = ?, active = ?, disabled_reason = ?
             WHERE id = ?",
        )
        .bind(&definition.url)
        .bind(definition.events.account_change)
        .bind(definition.events.transaction)
        .bind(definition.events.program_event)
        .bind(to_blob(&definition.filters.accounts))
        .bind(to_blob(&definition.filters.programs))
        .bind(definition.active)
        .bind(&disabled_reason)
        .bind(id.as_str())
        .execute(&mut *write)
        .await?;
        if matching(&before.definition) != matching(definition) {
            bump_revision(&mut write).await?;
        }
        write.commit().await?;
        Ok(Some(Webhook {
            definition: definition.clone(),
            disabled_reason,
            ..before
        }))
    }

    /// Deletes a webhook with everything it is owed. False when there was none.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn delete_webhook(&self, id: &WebhookId) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let deleted = sqlx::query("DELETE FROM webhooks WHERE id = ?")
            .bind(id.as_str())
            .execute(&mut *write)
            .await?;
        if deleted.rows_affected() == 0 {
            return Ok(false);
        }
        bump_revision(&mut write).await?;
        write.commit().await?;
        Ok(true)
    }

    /// Every active webhook with the revision it belongs to, read in one snapshot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn live_webhooks(&self) -> Result<LiveWebhooks, StoreError> {
        let mut connection = self.read().await?;
        let mut snapshot = sqlx::Connection::begin(&mut *connection).await?;
        let revision = select_revision(&mut snapshot).await?;
        let rows = sqlx::query(
            "SELECT id, wants_account_change, wants_transaction, wants_program_event, accounts, programs
             FROM webhooks WHERE active = 1 ORDER BY ordinal",
        )
        .fetch_all(&mut *snapshot)
        .await?;
        let webhooks = rows
            .iter()
            .map(|row| {
                Ok(LiveWebhook {
                    id: id_of(row)?,
                    events: events_of(row)?,
                    filters: filters_of(row)?,
                })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(LiveWebhooks { revision, webhooks })
    }

    /// The current webhook revision: one row, cheap enough to be polled.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn webhook_revision(&self) -> Result<Revision, StoreError> {
        let mut connection = self.read().await?;
        select_revision(&mut connection).await
    }
}

/// Switches a webhook off for `reason`, if it still points to `url`; its owner may have changed the
/// URL while the attempt that revealed the reason was under way.
pub(super) async fn disable(
    connection: &mut SqliteConnection,
    id: &WebhookId,
    url: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let disabled = sqlx::query(
        "UPDATE webhooks SET active = 0, disabled_reason = ? WHERE id = ? AND url = ? AND active = 1",
    )
    .bind(reason)
    .bind(id.as_str())
    .bind(url)
    .execute(&mut *connection)
    .await?;
    if disabled.rows_affected() > 0 {
        bump_revision(connection).await?;
    }
    Ok(())
}

/// The part of a definition that decides what is matched.
fn matching(definition: &WebhookDefinition) -> (EventKinds, &Filters, bool) {
    (definition.events, &definition.filters, definition.active)
}

async fn bump_revision(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query("UPDATE webhook_revision SET revision = revision + 1")
        .execute(connection)
        .await?;
    Ok(())
}

async fn select_revision(connection: &mut SqliteConnection) -> Result<Revision, StoreError> {
    let revision = sqlx::query_scalar("SELECT revision FROM webhook_revision")
        .fetch_one(connection)
        .await?;
    Ok(Revision(unsigned(revision, "webhook_revision.revision")?))
}

async fn select(
    connection: &mut SqliteConnection,
    id: &WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let row = sqlx::query("SELECT * FROM webhooks WHERE id = ?")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(webhook_of).transpose()
}

fn webhook_of(row: &SqliteRow) -> Result<Webhook, StoreError> {
    let last_triggered: Option<i64> = row.try_get("last_triggered_at")?;
    Ok(Webhook {
        id: id_of(row)?,
        definition: WebhookDefinition {
            url: row.try_get("url")?,
            events: events_of(row)?,
            filters: filters_of(row)?,
            active: row.try_get("active")?,
        },
        disabled_reason: row.try_get("disabled_reason")?,
        created: Timestamp::from_unix_millis(row.try_get("created_at")?),
        last_triggered: last_triggered.map(Timestamp::from_unix_millis),
    })
}

fn id_of(row: &SqliteRow) -> Result<WebhookId, StoreError> {
    WebhookId::parse(row.try_get("id")?).map_err(|_| StoreError::Corrupt {
        what: "webhooks.id",
    })
}

fn events_of(row: &SqliteRow) -> Result<EventKinds, StoreError> {
    Ok(EventKinds {
        account_change: row.try_get("wants_account_change")?,
        transaction: row.try_get("wants_transaction")?,
        program_event: row.try_get("wants_program_event")?,
    })
}

fn filters_of(row: &SqliteRow) -> Result<Filters, StoreError> {
    Ok(Filters {
        accounts: from_blob(row.try_get("accounts")?),
        programs: from_blob(row.try_get("programs")?),
    })
}

fn to_blob(keys: &[Pubkey]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_bytes()).collect()
}

/// A CHECK keeps the length a multiple of a key's.
fn from_blob(blob: &[u8]) -> Vec<Pubkey> {
    blob.as_chunks::<PUBKEY_BYTES>()
        .0
        .iter()
        .map(|key| Pubkey::new_from_array(*key))
        .collect()
}
