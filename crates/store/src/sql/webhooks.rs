//! Creates, reads, lists, updates and deletes webhooks, and rotates their secrets.

use super::{
    lanes,
    quotas::{check_addresses, usage_of},
    retried::retried,
    rows,
    store::Store,
    webhook_row::{
        self, SELECT, api_key_text, bump_revision, definition_columns, lock, lock_api_key,
        mark_deleted, select, select_row, update,
    },
};
use crate::{
    Access, CreatedWebhook, EncryptionKeys, Idempotency, MAX_PREVIOUS_SECRETS, NewWebhook,
    Revision, Secret, Secrets, StoreError, Timestamp, Webhook, WebhookDefinition, WebhookId,
    WebhookPage,
    backend::{Connection, Durability, signed, values},
    model::SealedColumn,
};

impl Store {
    /// Creates a webhook, unless its owner has as many already as its quota says, or `limit` where it has none.
    ///
    /// # Errors
    /// [`StoreError::MatchesNothing`], [`StoreError::TooManyWebhooks`], [`StoreError::AddressQuota`], [`StoreError::NoSuchApiKey`],
    /// or a failure of the database.
    pub async fn create_webhook(
        &self,
        new: &NewWebhook,
        limit: u32,
    ) -> Result<Webhook, StoreError> {
        let created = retried!(self.try_create_webhook(new, limit, None))?;
        Ok(created.webhook)
    }

    /// As [`Store::create_webhook`], unless the owner has a webhook that was created under the same idempotency key: that one
    /// is returned then.
    ///
    /// # Errors
    /// As [`Store::create_webhook`], and [`StoreError::IdempotencyKeyReused`].
    pub async fn create_webhook_once(
        &self,
        new: &NewWebhook,
        limit: u32,
        idempotency: &Idempotency,
    ) -> Result<CreatedWebhook, StoreError> {
        retried!(self.try_create_webhook(new, limit, Some(idempotency)))
    }

    /// The webhook of an owner that was created under an idempotency key, if there is one.
    ///
    /// # Errors
    /// [`StoreError::IdempotencyKeyReused`], [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn created_webhook(
        &self,
        owner: &Access,
        idempotency: &Idempotency,
    ) -> Result<Option<CreatedWebhook>, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let api_key = match owner {
            Access::All => None,
            Access::Key(key) => Some(webhook_row::api_key_ordinal(&mut snapshot, key).await?),
        };
        created_before(&mut snapshot, api_key, idempotency, &self.keys).await
    }

    async fn try_create_webhook(
        &self,
        new: &NewWebhook,
        limit: u32,
        idempotency: Option<&Idempotency>,
    ) -> Result<CreatedWebhook, StoreError> {
        webhook_row::check_asks_for_something(&new.definition)?;
        let mut write = self.write(Durability::Durable).await?;
        let api_key = match &new.owner {
            Access::All => None,
            Access::Key(key) => Some(lock_api_key(&mut write, key).await?),
        };
        // Before counting, so that two who create at once do not both find room.
        let revision = bump_revision(&mut write).await?;
        if let Some(idempotency) = idempotency
            && let Some(earlier) =
                created_before(&mut write, api_key, idempotency, &self.keys).await?
        {
            return Ok(earlier);
        }
        let usage = usage_of(&mut write, api_key).await?;
        let limit = usage.quotas.webhooks.unwrap_or(limit);
        if usage.webhooks >= limit {
            return Err(StoreError::TooManyWebhooks { limit });
        }
        let ordinal = insert(&mut write, new, api_key, revision, idempotency, &self.keys).await?;
        check_addresses(&mut write, ordinal).await?;
        let webhook = select(&mut write, &Access::All, &new.id, &self.keys).await?;
        write.commit().await?;
        Ok(CreatedWebhook {
            webhook: webhook.ok_or(StoreError::Corrupt { what: "webhooks" })?,
            secret: new.secret.clone(),
            repeated: false,
        })
    }

    /// The webhook of this id, if there is one.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn webhook(
        &self,
        access: &Access,
        id: &WebhookId,
    ) -> Result<Option<Webhook>, StoreError> {
        let mut read = self.read().await?;
        select(&mut read, access, id, &self.keys).await
    }

    /// Up to `limit` webhooks in order of creation, after the position that the page before gave.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_webhooks(
        &self,
        access: &Access,
        after: Option<i64>,
        limit: u32,
    ) -> Result<WebhookPage, StoreError> {
        let mut read = self.read().await?;
        let any: Option<String> = None;
        // One more than asked for shows whether there is a next page.
        let mut found = read
            .rows(
                SELECT,
                values![
                    api_key_text(access),
                    after.unwrap_or(0),
                    any,
                    i64::from(limit).saturating_add(1)
                ],
            )
            .await?;
        let more = found.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if more {
            found.pop();
        }
        let next = match found.last() {
            Some(last) if more => Some(last.integer("ordinal")?),
            _ => None,
        };
        let webhooks = found
            .iter()
            .map(|row| rows::webhook(row, &self.keys))
            .collect::<Result<_, _>>()?;
        Ok(WebhookPage { webhooks, next })
    }

    /// Replaces what the owner wrote; `None` when there is no such webhook. Switching it on clears the
    /// reason for which the service had switched it off. With `expected`, only a webhook of that version
    /// is written.
    ///
    /// # Errors
    /// [`StoreError::MatchesNothing`], [`StoreError::VersionConflict`], [`StoreError::AddressQuota`], [`StoreError::NoSuchApiKey`]
    /// for a caller whose key was revoked, or a failure of the database.
    pub async fn update_webhook(
        &self,
        access: &Access,
        id: &WebhookId,
        definition: &WebhookDefinition,
        expected: Option<u64>,
    ) -> Result<Option<Webhook>, StoreError> {
        retried!(self.try_update_webhook(access, id, definition, expected))
    }

    async fn try_update_webhook(
        &self,
        access: &Access,
        id: &WebhookId,
        definition: &WebhookDefinition,
        expected: Option<u64>,
    ) -> Result<Option<Webhook>, StoreError> {
        webhook_row::check_asks_for_something(definition)?;
        let mut write = self.write(Durability::Durable).await?;
        let Some((ordinal, before)) = lock(&mut write, access, id, expected, &self.keys).await?
        else {
            return Ok(None);
        };
        if before.definition.operations != definition.operations {
            webhook_row::replace_operations(&mut write, ordinal, &definition.operations).await?;
        }
        if before.definition.filters != definition.filters
            || before.definition.conditions != definition.conditions
        {
            let (filters, conditions) = (&definition.filters, &definition.conditions);
            webhook_row::replace_filters(&mut write, ordinal, filters, conditions).await?;
        }
        update(&mut write, ordinal, &before, definition, &self.keys).await?;
        if before.definition.filters.count() < definition.filters.count() {
            check_addresses(&mut write, ordinal).await?;
        }
        if before.definition.order != definition.order {
            lanes::rebuild(&mut write, ordinal, definition.order).await?;
        }
        let after = select(&mut write, &Access::All, id, &self.keys).await?;
        write.commit().await?;
        Ok(after)
    }

    /// Gives a webhook a new signing secret. The one before signs as well until `previous_until`, and those
    /// before that one until their own ends, but no longer. `None` when there is no such webhook.
    ///
    /// # Errors
    /// [`StoreError::TooManySecrets`] when more than [`MAX_PREVIOUS_SECRETS`] would sign beside the new one, or a
    /// failure of the database.
    pub async fn rotate_secret(
        &self,
        access: &Access,
        id: &WebhookId,
        secret: &Secret,
        previous_until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        retried!(self.try_rotate_secret(access, id, secret, previous_until, now))
    }

    async fn try_rotate_secret(
        &self,
        access: &Access,
        id: &WebhookId,
        secret: &Secret,
        previous_until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((ordinal, _)) = lock(&mut write, access, id, None, &self.keys).await? else {
            return Ok(None);
        };
        let Some(row) = select_row(&mut write, access, id).await? else {
            return Ok(None);
        };
        let replaced = rows::current_secret(&row, &self.keys)?;
        let mut previous = vec![(replaced, previous_until)];
        previous.extend(rows::previous_secrets(&row, now, &self.keys)?);
        for (_, until) in &mut previous {
            *until = previous_until.min(*until);
        }
        previous.retain(|(_, until)| now < *until);
        if previous.len() > MAX_PREVIOUS_SECRETS {
            let ends = previous.iter().map(|(_, until)| *until);
            return Err(StoreError::TooManySecrets {
                limit: MAX_PREVIOUS_SECRETS,
                until: ends.min().unwrap_or(previous_until),
            });
        }
        write
            .execute(
                "UPDATE webhooks SET previous_secrets = $2, previous_secrets_until = $3, secret = $4,
                     version = version + 1
                 WHERE ordinal = $1",
                values![
                    ordinal,
                    rows::previous_secrets_json(&previous)?
                        .map(|text| self.keys.seal(id, SealedColumn::PreviousSecrets, text))
                        .transpose()?,
                    previous.iter().map(|(_, until)| *until).max(),
                    seal_secret(&self.keys, id, secret)?
                ],
            )
            .await?;
        let after = select(&mut write, &Access::All, id, &self.keys).await?;
        write.commit().await?;
        Ok(after)
    }

    /// The secrets with which a message to this webhook is signed at `now`; `None` when there is no such
    /// webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn secrets(
        &self,
        access: &Access,
        id: &WebhookId,
        now: Timestamp,
    ) -> Result<Option<Secrets>, StoreError> {
        let mut read = self.read().await?;
        let row = select_row(&mut read, access, id).await?;
        row.map(|row| rows::secrets(&row, now, &self.keys))
            .transpose()
    }

    /// Extends a temporary webhook; false when there is none of this id.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn extend_relay(
        &self,
        access: &Access,
        id: &WebhookId,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        retried!(self.try_extend_relay(access, id, until))
    }

    async fn try_extend_relay(
        &self,
        access: &Access,
        id: &WebhookId,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let changed = write
            .execute(
                "UPDATE webhooks SET relay_until = $2
                 WHERE id = $1 AND deleted = 0 AND relay_until IS NOT NULL
                     AND (CAST($3 AS TEXT) IS NULL
                         OR api_key = (SELECT ordinal FROM api_keys WHERE id = $3))",
                values![id.as_str(), until, api_key_text(access)],
            )
            .await?;
        write.commit().await?;
        Ok(changed > 0)
    }

    /// Deletes a webhook with its messages. False when there was none. It is gone when this returns;
    /// [`Store::prune`] removes the rest of its messages bit by bit.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn delete_webhook(
        &self,
        access: &Access,
        id: &WebhookId,
    ) -> Result<bool, StoreError> {
        let Some(ordinal) = retried!(self.try_delete_webhook(access, id))? else {
            return Ok(false);
        };
        retried!(self.remove_deleted(Some(ordinal)))?;
        Ok(true)
    }

    /// The ordinal of the webhook that is deleted now; `None` when there was none.
    async fn try_delete_webhook(
        &self,
        access: &Access,
        id: &WebhookId,
    ) -> Result<Option<i64>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((ordinal, _)) = lock(&mut write, access, id, None, &self.keys).await? else {
            return Ok(None);
        };
        mark_deleted(&mut write, ordinal).await?;
        write.commit().await?;
        Ok(Some(ordinal))
    }
}

/// The webhook of an owner that an earlier request under this key created.
async fn created_before(
    connection: &mut Connection,
    api_key: Option<i64>,
    idempotency: &Idempotency,
    keys: &EncryptionKeys,
) -> Result<Option<CreatedWebhook>, StoreError> {
    let found = connection
        .row(
            "SELECT id, idempotency_hash FROM webhooks
             WHERE deleted = 0 AND coalesce(api_key, 0) = coalesce(CAST($1 AS BIGINT), 0) AND idempotency_key = $2",
            values![api_key, idempotency.key.as_str()],
        )
        .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    let id = rows::webhook_id(&found, "id")?;
    if found.optional_text("idempotency_hash")?.as_ref() != Some(&idempotency.hash) {
        return Err(StoreError::IdempotencyKeyReused {
            webhook: id.to_string(),
        });
    }
    let Some(row) = select_row(connection, &Access::All, &id).await? else {
        return Err(StoreError::Corrupt { what: "webhooks" });
    };
    Ok(Some(CreatedWebhook {
        webhook: rows::webhook(&row, keys)?,
        secret: rows::current_secret(&row, keys)?,
        repeated: true,
    }))
}

fn seal_secret(
    keys: &EncryptionKeys,
    id: &WebhookId,
    secret: &Secret,
) -> Result<String, StoreError> {
    Ok(keys.seal(id, SealedColumn::Secret, secret.expose().to_owned())?)
}

async fn insert(
    write: &mut Connection,
    new: &NewWebhook,
    api_key: Option<i64>,
    revision: Revision,
    idempotency: Option<&Idempotency>,
    keys: &EncryptionKeys,
) -> Result<i64, StoreError> {
    let definition = &new.definition;
    let mut columns = definition_columns(&new.id, definition, keys)?;
    columns.extend(values![
        new.id.as_str(),
        api_key,
        signed(revision.0, "revision")?,
        new.created,
        seal_secret(keys, &new.id, &new.secret)?,
        new.relay_until,
        idempotency.map(|given| given.key.clone()),
        idempotency.map(|given| given.hash.clone()),
    ]);
    let ordinal = write
        .one_row(
            "INSERT INTO webhooks (url, wants_account_change, wants_transaction, wants_program_event, commitment,
                 delivery_order, description, headers, gzip, heartbeat_seconds, active, batch_messages, batch_bytes, batch_wait_ms,
                 delivery_options, id, api_key,
                 matched_revision, created_at, secret, relay_until, idempotency_key, idempotency_hash, first_slot)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                 (SELECT requested_slot FROM filter_changes WHERE revision = $18))
             RETURNING ordinal",
            columns,
        )
        .await?
        .integer("ordinal")?;
    write
        .execute(
            "INSERT INTO filters (webhook, accounts, programs, token_owners, digest, conditions)
             VALUES ($1, $2, $3, $4, $5, $6)",
            values![
                ordinal,
                rows::address_bytes(&definition.filters.accounts),
                rows::address_bytes(&definition.filters.programs),
                rows::address_bytes(&definition.filters.token_owners),
                definition.filters.digest(),
                rows::conditions_text(&definition.conditions)?
            ],
        )
        .await?;
    webhook_row::replace_operations(write, ordinal, &definition.operations).await?;
    for table in [
        "INSERT INTO sequences (webhook) VALUES ($1)",
        "INSERT INTO endpoints (webhook) VALUES ($1)",
    ] {
        write.execute(table, values![ordinal]).await?;
    }
    Ok(ordinal)
}
