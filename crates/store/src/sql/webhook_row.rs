//! The row of a webhook: reading it, locking it and writing it, for every operation on webhooks.

use std::collections::BTreeSet;

use super::{pauses, rows};
use crate::{
    Access, ApiKeyId, Conditions, EncryptionKeys, Filters, OperationKind, Revision, StoreError,
    Webhook, WebhookDefinition, WebhookId,
    backend::{Connection, Row, Value, signed, unsigned, values},
    model::SealedColumn,
};

/// Whole webhooks of an API key (`$1`, null for all) after an ordinal (`$2`), or of an id (`$3`).
pub(super) const SELECT: &str = "
    SELECT w.*, k.id AS api_key_id, k.revoked_at AS api_key_revoked_at, f.accounts, f.programs, f.token_owners, f.digest,
        f.conditions, e.last_triggered_at, o.kinds AS operation_kinds
    FROM webhooks w
    JOIN filters f ON f.webhook = w.ordinal
    JOIN endpoints e ON e.webhook = w.ordinal
    LEFT JOIN api_keys k ON k.ordinal = w.api_key
    LEFT JOIN operational_webhooks o ON o.webhook = w.ordinal
    WHERE w.deleted = 0 AND (CAST($1 AS TEXT) IS NULL OR k.id = $1)
        AND w.ordinal > $2 AND (CAST($3 AS TEXT) IS NULL OR w.id = $3)
    ORDER BY w.ordinal LIMIT $4";

/// An API key as a parameter: null for all webhooks.
pub(super) fn api_key_text(access: &Access) -> Option<String> {
    access.api_key().map(ToString::to_string)
}

/// Takes a webhook out of sight and out of matching.
pub(super) async fn mark_deleted(write: &mut Connection, ordinal: i64) -> Result<(), StoreError> {
    bump_revision(write).await?;
    write
        .execute(
            "UPDATE webhooks SET deleted = 1, active = 0 WHERE ordinal = $1",
            values![ordinal],
        )
        .await?;
    Ok(())
}

/// Switches a webhook off for `reason`, if it still points to `url`; its owner may have changed the
/// URL while the attempt that revealed the reason was in flight.
pub(super) async fn disable(
    write: &mut Connection,
    ordinal: i64,
    url: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let is_on = write
        .row(
            "SELECT ordinal FROM webhooks WHERE ordinal = $1 AND url = $2 AND active = 1",
            values![ordinal, url],
        )
        .await?;
    if is_on.is_none() {
        return Ok(());
    }
    bump_revision(write).await?;
    pauses::begin(write, ordinal).await?;
    write
        .execute(
            "UPDATE webhooks SET active = 0, disabled_reason = $3, version = version + 1
             WHERE ordinal = $1 AND url = $2 AND active = 1",
            values![ordinal, url, reason],
        )
        .await?;
    Ok(())
}

/// Counts a write that changes what is matched, and notes from which slot on it must count. Until the
/// transaction ends all others that would count wait for it: it comes before the writes to webhooks, and after the lock on
/// their sequences, everywhere.
pub(super) async fn bump_revision(write: &mut Connection) -> Result<Revision, StoreError> {
    let revision = write
        .one_row(
            "UPDATE webhook_revision SET revision = revision + 1 RETURNING revision",
            values![],
        )
        .await?
        .integer("revision")?;
    write
        .execute(
            "INSERT INTO filter_changes (revision, requested_slot)
             VALUES ($1, (SELECT slot + 1 FROM checkpoints WHERE commitment = 'confirmed'))",
            values![revision],
        )
        .await?;
    Ok(Revision(unsigned(revision, "webhook_revision.revision")?))
}

/// Reads a webhook for writing: until the transaction ends no other writes it, nor messages for it. A caller whose API key was
/// revoked meanwhile is refused.
pub(super) async fn lock(
    write: &mut Connection,
    access: &Access,
    id: &WebhookId,
    expected: Option<u64>,
    keys: &EncryptionKeys,
) -> Result<Option<(i64, Webhook)>, StoreError> {
    // An update that changes nothing is a lock that both databases know.
    let locked = write
        .execute(
            "UPDATE sequences SET next = next
             WHERE webhook = (SELECT ordinal FROM webhooks WHERE id = $1 AND deleted = 0)",
            values![id.as_str()],
        )
        .await?;
    if locked == 0 {
        return Ok(None);
    }
    let Some(row) = select_row(write, access, id).await? else {
        return Ok(None);
    };
    // The caller was let in before its key was revoked.
    if let (Some(key), Some(_)) = (access.api_key(), row.optional_time("api_key_revoked_at")?) {
        return Err(no_such_api_key(key));
    }
    let webhook = rows::webhook(&row, keys)?;
    if expected.is_some_and(|expected| expected != webhook.version) {
        return Err(StoreError::VersionConflict {
            current: webhook.version,
        });
    }
    Ok(Some((row.integer("ordinal")?, webhook)))
}

/// Columns of a definition, in this order: `url`, `wants_account_change`, `wants_transaction`, `wants_program_event`,
/// `commitment`, `delivery_order`, `description`, `headers`, `gzip`, `heartbeat_seconds`, `active`, `batch_messages`, `batch_bytes`,
/// `batch_wait_ms`, `delivery_options`.
pub(super) fn definition_columns(
    id: &WebhookId,
    definition: &WebhookDefinition,
    keys: &EncryptionKeys,
) -> Result<Vec<Value>, StoreError> {
    let headers = rows::headers_text(&definition.headers)?;
    let batch = definition.batch;
    Ok(values![
        definition.url.as_str(),
        definition.events.account_change,
        definition.events.transaction,
        definition.events.program_event,
        definition.commitment.name(),
        definition.order.name(),
        definition.description.clone(),
        keys.seal(id, SealedColumn::Headers, headers)?,
        definition.gzip,
        heartbeat_seconds(definition)?,
        definition.active,
        batch.map(|batch| i64::from(batch.max_messages)),
        batch.map(|batch| i64::from(batch.max_bytes)),
        batch.map(|batch| i64::try_from(batch.max_wait.as_millis()).unwrap_or(i64::MAX)),
        rows::delivery_options_text(&definition.delivery)?,
    ])
}

/// Writes everything but the filters.
pub(super) async fn update(
    write: &mut Connection,
    ordinal: i64,
    before: &Webhook,
    definition: &WebhookDefinition,
    keys: &EncryptionKeys,
) -> Result<(), StoreError> {
    let disabled_reason = before
        .disabled_reason
        .clone()
        .filter(|_| !definition.active);
    let revision = if changes_matching(&before.definition, definition) {
        bump_revision(write).await?
    } else {
        before.matched_revision
    };
    match (before.definition.active, definition.active) {
        (true, false) => pauses::begin(write, ordinal).await?,
        (false, true) => pauses::end(write, ordinal).await?,
        _ => {}
    }
    let mut columns = definition_columns(&before.id, definition, keys)?;
    columns.extend(values![
        disabled_reason,
        signed(revision.0, "revision")?,
        ordinal
    ]);
    write
        .execute(
            "UPDATE webhooks SET url = $1, wants_account_change = $2, wants_transaction = $3,
                 wants_program_event = $4, commitment = $5, delivery_order = $6, description = $7,
                 headers = $8, gzip = $9, heartbeat_seconds = $10, active = $11, batch_messages = $12,
                 batch_bytes = $13, batch_wait_ms = $14, delivery_options = $15, disabled_reason = $16,
                 refused = CASE WHEN matched_revision = $17 THEN refused END,
                 matched_revision = $17, version = version + 1
             WHERE ordinal = $18",
            columns,
        )
        .await?;
    Ok(())
}

pub(super) async fn select(
    connection: &mut Connection,
    access: &Access,
    id: &WebhookId,
    keys: &EncryptionKeys,
) -> Result<Option<Webhook>, StoreError> {
    let row = select_row(connection, access, id).await?;
    row.map(|row| rows::webhook(&row, keys)).transpose()
}

pub(super) async fn select_row(
    connection: &mut Connection,
    access: &Access,
    id: &WebhookId,
) -> Result<Option<Row>, StoreError> {
    connection
        .row(
            SELECT,
            values![api_key_text(access), 0_i64, id.as_str(), 1_i64],
        )
        .await
}

/// Whether the difference is one of what is matched, or what else the indexer makes messages of.
fn changes_matching(before: &WebhookDefinition, after: &WebhookDefinition) -> bool {
    let matching = |definition: &WebhookDefinition| {
        (
            definition.events,
            definition.active,
            definition.commitment,
            definition.heartbeat,
        )
    };
    matching(before) != matching(after)
        || before.filters != after.filters
        || before.conditions != after.conditions
}

fn heartbeat_seconds(definition: &WebhookDefinition) -> Result<Option<i64>, StoreError> {
    definition
        .heartbeat
        .map(|interval| signed(interval.as_secs(), "heartbeat"))
        .transpose()
}

/// Writes of which kinds of operations a webhook is told, whole.
pub(super) async fn replace_operations(
    write: &mut Connection,
    ordinal: i64,
    kinds: &BTreeSet<OperationKind>,
) -> Result<(), StoreError> {
    if kinds.is_empty() {
        let delete = "DELETE FROM operational_webhooks WHERE webhook = $1";
        write.execute(delete, values![ordinal]).await?;
        return Ok(());
    }
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    write
        .execute(
            "INSERT INTO operational_webhooks (webhook, kinds) VALUES ($1, $2)
             ON CONFLICT (webhook) DO UPDATE SET kinds = excluded.kinds",
            values![ordinal, serde_json::to_string(&names).unwrap_or_default()],
        )
        .await?;
    Ok(())
}

/// Refuses a definition of which no message could ever come.
pub(super) fn check_asks_for_something(definition: &WebhookDefinition) -> Result<(), StoreError> {
    if definition.asks_for_nothing() {
        return Err(StoreError::MatchesNothing);
    }
    Ok(())
}

/// Writes the filters and conditions of a webhook, whole.
pub(super) async fn replace_filters(
    write: &mut Connection,
    ordinal: i64,
    filters: &Filters,
    conditions: &Conditions,
) -> Result<(), StoreError> {
    write
        .execute(
            "UPDATE filters SET accounts = $2, programs = $3, token_owners = $4, digest = $5, conditions = $6
             WHERE webhook = $1",
            values![
                ordinal,
                rows::address_bytes(&filters.accounts),
                rows::address_bytes(&filters.programs),
                rows::address_bytes(&filters.token_owners),
                filters.digest(),
                rows::conditions_text(conditions)?
            ],
        )
        .await?;
    Ok(())
}

/// The ordinal of an API key that is accepted.
pub(super) async fn api_key_ordinal(
    connection: &mut Connection,
    key: &ApiKeyId,
) -> Result<i64, StoreError> {
    connection
        .row(
            "SELECT ordinal FROM api_keys WHERE id = $1 AND revoked_at IS NULL",
            values![key.as_str()],
        )
        .await?
        .ok_or_else(|| no_such_api_key(key))?
        .integer("ordinal")
}

/// As [`api_key_ordinal`], for a transaction that gives something to the API key: until it ends nobody revokes the key. It comes
/// first, as everywhere.
pub(super) async fn lock_api_key(
    write: &mut Connection,
    key: &ApiKeyId,
) -> Result<i64, StoreError> {
    // The lock of a foreign key is weaker, and must not wait for who revokes: of a webhook that a transaction writes twice PostgreSQL
    // takes it behind all other locks.
    let lock = "SELECT ordinal FROM api_keys WHERE id = $1 FOR SHARE";
    write.lock(lock, values![key.as_str()]).await?;
    api_key_ordinal(write, key).await
}

/// Keeps others from writing the webhooks of an API key, or those that belong to none, until the transaction ends.
pub(super) async fn lock_all_of(
    write: &mut Connection,
    api_key: Option<i64>,
) -> Result<(), StoreError> {
    write
        .lock(
            "SELECT s.webhook FROM sequences s JOIN webhooks w ON w.ordinal = s.webhook
             WHERE coalesce(w.api_key, 0) = coalesce(CAST($1 AS BIGINT), 0) AND w.deleted = 0
             ORDER BY s.webhook FOR UPDATE OF s",
            values![api_key],
        )
        .await?;
    Ok(())
}

fn no_such_api_key(key: &ApiKeyId) -> StoreError {
    StoreError::NoSuchApiKey {
        key: key.to_string(),
    }
}
