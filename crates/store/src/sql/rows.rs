//! Maps rows of webhooks, messages and endpoints to plain types.

use std::{collections::BTreeSet, time::Duration};

use solana_pubkey::{PUBKEY_BYTES, Pubkey};

use crate::{
    ActiveWebhook, ApiKeyId, Batch, Breaker, Commitment, Conditions, DeliveryOptions,
    DeliveryOrder, EncryptionKeys, EndpointState, EventKinds, Filters, MessageId, MessageKind,
    OperationKind, Revision, Secret, Secrets, SignatureVersion, StoreError, Tenant, Timestamp,
    Webhook, WebhookDefinition, WebhookId, backend::Row, model::SealedColumn,
};

pub(super) fn webhook(row: &Row, keys: &EncryptionKeys) -> Result<Webhook, StoreError> {
    let api_key = match row.optional_text("api_key_id")? {
        Some(_) => Some(api_key_id(row, "api_key_id")?),
        None => None,
    };
    let filters = filters(row)?;
    let delivery = delivery_options(row)?;
    let is_asymmetric = delivery.signs_by(SignatureVersion::V1a);
    let secret = is_asymmetric.then(|| current_secret(row, keys));
    Ok(Webhook {
        id: webhook_id(row, "id")?,
        api_key,
        version: row.unsigned("version")?,
        matched_revision: Revision(row.unsigned("matched_revision")?),
        filter_digest: digest(row, &filters)?,
        definition: WebhookDefinition {
            url: row.text("url")?,
            events: events(row)?,
            filters,
            conditions: conditions(row)?,
            operations: match row.optional_text("operation_kinds")? {
                Some(text) => operation_kinds(&text)?,
                None => BTreeSet::new(),
            },
            active: row.flag("active")?,
            commitment: commitment(row)?,
            order: order(row)?,
            description: row.optional_text("description")?,
            headers: webhook_headers(row, keys)?,
            gzip: row.flag("gzip")?,
            heartbeat: heartbeat(row)?,
            batch: batch(row)?,
            delivery,
        },
        disabled_reason: row.optional_text("disabled_reason")?,
        refused: row.optional_text("refused")?,
        created: row.time("created_at")?,
        last_triggered: row.optional_time("last_triggered_at")?,
        asymmetric_secret: secret.transpose()?,
        previous_secrets_until: row.optional_time("previous_secrets_until")?,
        relay_until: row.optional_time("relay_until")?,
    })
}

pub(super) fn active_webhook(row: &Row) -> Result<ActiveWebhook, StoreError> {
    let filters = filters(row)?;
    Ok(ActiveWebhook {
        id: webhook_id(row, "id")?,
        owner: tenant(row)?,
        events: events(row)?,
        filter_digest: digest(row, &filters)?,
        filters,
        conditions: conditions(row)?,
        commitment: commitment(row)?,
        heartbeat: heartbeat(row)?,
        first_slot: row.optional_unsigned("first_slot")?,
    })
}

/// The owner of a webhook.
pub(super) fn tenant(row: &Row) -> Result<Tenant, StoreError> {
    row.optional_integer("api_key").map(Tenant)
}

pub(super) fn webhook_id(row: &Row, column: &str) -> Result<WebhookId, StoreError> {
    WebhookId::parse(&row.text(column)?).map_err(|_| StoreError::Corrupt {
        what: "webhooks.id",
    })
}

/// Reads a column that holds an API key's identifier.
pub(super) fn api_key_id(row: &Row, column: &str) -> Result<ApiKeyId, StoreError> {
    ApiKeyId::parse(&row.text(column)?).map_err(|_| StoreError::Corrupt {
        what: "api_keys.id",
    })
}

pub(super) fn message_id(row: &Row) -> Result<MessageId, StoreError> {
    MessageId::parse(&row.text("id")?).map_err(|_| StoreError::Corrupt {
        what: "messages.id",
    })
}

pub(super) fn kind(row: &Row) -> Result<MessageKind, StoreError> {
    MessageKind::from_name(&row.text("kind")?).ok_or(StoreError::Corrupt {
        what: "messages.kind",
    })
}

pub(super) fn commitment(row: &Row) -> Result<Commitment, StoreError> {
    Commitment::from_name(&row.text("commitment")?)
        .ok_or(StoreError::Corrupt { what: "commitment" })
}

pub(super) fn order(row: &Row) -> Result<DeliveryOrder, StoreError> {
    DeliveryOrder::from_name(&row.text("delivery_order")?).ok_or(StoreError::Corrupt {
        what: "webhooks.delivery_order",
    })
}

/// The secrets that sign at `now`.
pub(super) fn secrets(
    row: &Row,
    now: Timestamp,
    keys: &EncryptionKeys,
) -> Result<Secrets, StoreError> {
    let previous = previous_secrets(row, now, keys)?;
    Ok(Secrets {
        current: current_secret(row, keys)?,
        previous: previous.into_iter().map(|(secret, _)| secret).collect(),
    })
}

/// The current secret.
pub(super) fn current_secret(row: &Row, keys: &EncryptionKeys) -> Result<Secret, StoreError> {
    let stored = row.text("secret")?;
    let secret = keys.open(&webhook_id(row, "id")?, SealedColumn::Secret, stored)?;
    Ok(Secret::from_stored(secret))
}

/// The secrets before the current one that sign at `now`, the latest first, each with its end.
pub(super) fn previous_secrets(
    row: &Row,
    now: Timestamp,
    keys: &EncryptionKeys,
) -> Result<Vec<(Secret, Timestamp)>, StoreError> {
    let Some(stored) = row.optional_text("previous_secrets")? else {
        return Ok(Vec::new());
    };
    let id = webhook_id(row, "id")?;
    let text = keys.open(&id, SealedColumn::PreviousSecrets, stored)?;
    let stored: Vec<(String, i64)> =
        serde_json::from_str(&text).map_err(|_| StoreError::Corrupt {
            what: "webhooks.previous_secrets",
        })?;
    let previous = stored.into_iter().map(|(secret, until)| {
        let until = Timestamp::from_unix_millis(until);
        (Secret::from_stored(secret), until)
    });
    Ok(previous.filter(|(_, until)| now < *until).collect())
}

/// Writes what [`previous_secrets`] reads; nothing when there are none.
pub(super) fn previous_secrets_json(
    previous: &[(Secret, Timestamp)],
) -> Result<Option<String>, StoreError> {
    if previous.is_empty() {
        return Ok(None);
    }
    let stored: Vec<(&str, i64)> = previous
        .iter()
        .map(|(secret, until)| (secret.expose(), until.unix_millis()))
        .collect();
    let text = serde_json::to_string(&stored);
    text.map(Some)
        .map_err(|error| StoreError::Database(error.into()))
}

/// Reads a JSON array of pairs.
pub(super) fn headers(
    row: &Row,
    column: &'static str,
) -> Result<Vec<(String, String)>, StoreError> {
    parse_headers(&row.text(column)?, column)
}

/// The headers that the owner of a webhook wants sent.
pub(super) fn webhook_headers(
    row: &Row,
    keys: &EncryptionKeys,
) -> Result<Vec<(String, String)>, StoreError> {
    let (id, stored) = (webhook_id(row, "id")?, row.text("headers")?);
    let text = keys.open(&id, SealedColumn::Headers, stored)?;
    parse_headers(&text, "webhooks.headers")
}

fn parse_headers(text: &str, what: &'static str) -> Result<Vec<(String, String)>, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Corrupt { what })
}

/// Writes a JSON array of pairs.
pub(super) fn headers_text(headers: &[(String, String)]) -> Result<String, StoreError> {
    serde_json::to_string(headers).map_err(|error| StoreError::Database(error.into()))
}

pub(super) fn address_bytes(addresses: &[Pubkey]) -> Vec<u8> {
    addresses
        .iter()
        .flat_map(|address| address.to_bytes())
        .collect()
}

fn events(row: &Row) -> Result<EventKinds, StoreError> {
    Ok(EventKinds {
        account_change: row.flag("wants_account_change")?,
        transaction: row.flag("wants_transaction")?,
        program_event: row.flag("wants_program_event")?,
    })
}

/// The kinds of operations that a stored JSON array names.
pub(super) fn operation_kinds(text: &str) -> Result<BTreeSet<OperationKind>, StoreError> {
    const CORRUPT: StoreError = StoreError::Corrupt {
        what: "operational_webhooks.kinds",
    };
    let names: Vec<String> = serde_json::from_str(text).map_err(|_| CORRUPT)?;
    // A later release may know more of them.
    Ok(names
        .iter()
        .filter_map(|name| OperationKind::from_name(name))
        .collect())
}

fn heartbeat(row: &Row) -> Result<Option<Duration>, StoreError> {
    let seconds = row.optional_integer("heartbeat_seconds")?;
    seconds
        .map(|seconds| {
            u64::try_from(seconds)
                .map(Duration::from_secs)
                .map_err(|_| StoreError::Corrupt {
                    what: "webhooks.heartbeat_seconds",
                })
        })
        .transpose()
}

/// From `batch_messages`, `batch_bytes` and `batch_wait_ms` of a webhook.
pub(super) fn batch(row: &Row) -> Result<Option<Batch>, StoreError> {
    let Some(max_messages) = row.optional_integer("batch_messages")? else {
        return Ok(None);
    };
    let corrupt = |_| StoreError::Corrupt {
        what: "webhooks.batch_messages",
    };
    Ok(Some(Batch {
        max_messages: u32::try_from(max_messages).map_err(corrupt)?,
        max_bytes: row.count("batch_bytes")?,
        max_wait: Duration::from_millis(row.unsigned("batch_wait_ms")?),
    }))
}

/// Null where all are as for every webhook.
pub(super) fn delivery_options(row: &Row) -> Result<DeliveryOptions, StoreError> {
    let Some(stored) = row.optional_text("delivery_options")? else {
        return Ok(DeliveryOptions::default());
    };
    serde_json::from_str(&stored).map_err(|_| StoreError::Corrupt {
        what: "webhooks.delivery_options",
    })
}

/// The stored form of delivery options.
pub(super) fn delivery_options_text(
    options: &DeliveryOptions,
) -> Result<Option<String>, StoreError> {
    if options.is_default() {
        return Ok(None);
    }
    let text = serde_json::to_string(options);
    text.map(Some)
        .map_err(|error| StoreError::Database(error.into()))
}

/// How many attempts may be leased to an endpoint, by what was learnt of it and what its owner asks for.
pub(super) fn leasable(row: &Row) -> Result<Option<u32>, StoreError> {
    Ok(delivery_options(row)?.leasable(concurrency_limit(row)?))
}

fn filters(row: &Row) -> Result<Filters, StoreError> {
    Ok(Filters {
        accounts: addresses_of(&row.bytes("accounts")?),
        programs: addresses_of(&row.bytes("programs")?),
        token_owners: addresses_of(&row.bytes("token_owners")?),
    })
}

/// Null where there are none, as in rows of earlier releases.
fn conditions(row: &Row) -> Result<Conditions, StoreError> {
    let Some(stored) = row.optional_text("conditions")? else {
        return Ok(Conditions::default());
    };
    serde_json::from_str(&stored).map_err(|_| StoreError::Corrupt {
        what: "filters.conditions",
    })
}

/// The stored form of conditions.
pub(super) fn conditions_text(conditions: &Conditions) -> Result<Option<String>, StoreError> {
    if conditions.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(conditions);
    text.map(Some).map_err(|_| StoreError::Corrupt {
        what: "filters.conditions",
    })
}

/// Webhooks of the first schema have no digest until they are written again.
fn digest(row: &Row, filters: &Filters) -> Result<String, StoreError> {
    let stored = row.text("digest")?;
    Ok(if stored.is_empty() {
        filters.digest()
    } else {
        stored
    })
}

/// A CHECK keeps the length a multiple of an address's.
fn addresses_of(bytes: &[u8]) -> Vec<Pubkey> {
    bytes
        .as_chunks::<PUBKEY_BYTES>()
        .0
        .iter()
        .map(|address| Pubkey::new_from_array(*address))
        .collect()
}

pub(super) fn endpoint(row: &Row) -> Result<EndpointState, StoreError> {
    Ok(EndpointState {
        breaker: breaker(row)?,
        failures: row.count("failures")?,
        failing_since: row.optional_time("failing_since")?,
        trips: row.count("trips")?,
        paused_until: row.optional_time("paused_until")?,
        concurrency_limit: concurrency_limit(row)?,
    })
}

pub(super) fn breaker(row: &Row) -> Result<Breaker, StoreError> {
    let name = row.text("breaker")?;
    let breaker = Breaker::ALL.into_iter().find(|each| each.name() == name);
    breaker.ok_or(StoreError::Corrupt {
        what: "endpoints.breaker",
    })
}

pub(super) fn concurrency_limit(row: &Row) -> Result<Option<u32>, StoreError> {
    let limit = row.optional_integer("concurrency_limit")?;
    limit
        .map(|limit| {
            u32::try_from(limit).map_err(|_| StoreError::Corrupt {
                what: "endpoints.concurrency_limit",
            })
        })
        .transpose()
}
