//! `POST /api/keys`: makes an API key and shows its secret once.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use serde::{Deserialize, Serialize};
use sluice_store::{
    ApiKey, ApiKeyId, ApiKeySecret, MAX_API_KEY_DAYS, NewApiKey, Quotas, Scope, Scopes, Timestamp,
    api_key_name_fault,
};
use utoipa::ToSchema;

use super::{Grantor, Keys, MAX_BODY_BYTES, MAX_KEYS, store_error, view::ApiKeyView};
use crate::{
    auth::Grant,
    error::{ApiError, ProblemBody},
    extract::{StrictJson, optional_object},
};

/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What a new key is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = NewApiKey)]
pub(super) struct NewKeyBody {
    /// A name by which people know it, such as the service that uses it; no two keys ever share one.
    #[schema(min_length = 1, max_length = 60)]
    name: String,
    /// What it may do: `webhooks:read`, `webhooks:write`, `keys:write`; at least one, and none that the caller's key lacks.
    #[schema(min_items = 1)]
    scopes: Vec<String>,
    /// Days after which it stops being accepted by itself, not after the caller's own key does. Absent or null, it ends when that
    /// one does, or when it is revoked.
    #[schema(minimum = 1, maximum = 3650)]
    expires_in_days: Option<u32>,
    /// Limits of its own.
    #[serde(default, deserialize_with = "optional_object")]
    quotas: Option<QuotasBody>,
}

/// Limits of a key's own, none above those of the caller's key, which hold where one is absent or null; where that has none, those
/// hold that are configured for all.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = NewApiKeyQuotas)]
struct QuotasBody {
    /// Webhooks.
    #[schema(minimum = 1)]
    webhooks: Option<u32>,
    /// Addresses that its webhooks watch together.
    #[schema(minimum = 1)]
    addresses: Option<u32>,
    /// MiB of the messages that are kept for its webhooks.
    #[schema(minimum = 1)]
    stored_mib: Option<u32>,
    /// Messages that are handed over to its endpoints in a second, repetitions included. What is more waits.
    #[schema(minimum = 1)]
    messages_per_second: Option<u32>,
    /// Deliveries that are under way for it at once.
    #[schema(minimum = 1)]
    delivery_slots: Option<u32>,
}

/// A new key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedApiKey)]
pub(super) struct Created {
    key: ApiKeyView,
    /// The key itself, to be sent as `Authorization: Bearer`. It is not shown again.
    secret: String,
}

/// Makes an API key
///
/// The answer is the only one that ever shows the key itself. It needs a key with the scope `keys:write`, and gives no more than
/// that one has. Where the answer is lost, revoke the key and make another.
#[utoipa::path(
    post,
    path = "/api/keys",
    tag = "keys",
    operation_id = "createKey",
    request_body = NewKeyBody,
    responses(
        (status = 201, description = "The key, and its secret this once.", body = Created),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("apiKey" = [])),
)]
pub(super) async fn handler(
    State(keys): State<Keys>,
    Grantor(grant): Grantor,
    StrictJson(body): StrictJson<NewKeyBody, MAX_BODY_BYTES>,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1], Json<Created>), ApiError> {
    let all = keys.store.api_keys().await.map_err(store_error)?;
    if all.len() >= MAX_KEYS {
        let fault = format!(
            "would be that of one more than {MAX_KEYS} keys; make it on the server with `sluice keys add`"
        );
        return Err(ApiError::invalid("name", fault));
    }
    let own = all
        .iter()
        .find(|key| Some(&key.id) == grant.access.api_key());
    let secret = ApiKeySecret::from_random(rand::random());
    let now = Timestamp::from(keys.clock.now());
    let scopes = scopes(&body.scopes, &grant)?;
    let expires = expires(body.expires_in_days, now, own)?;
    let quotas = quotas(&body.quotas.unwrap_or_default(), own)?;
    if let Some(fault) = api_key_name_fault(&body.name) {
        return Err(ApiError::invalid("name", fault));
    }
    let new = NewApiKey {
        id: ApiKeyId::from_random(rand::random()),
        name: body.name,
        hash: secret.hash(),
        created: now,
        expires,
        scopes,
    };
    let made = keys.store.create_limited_api_key(&new, quotas).await;
    let created = Created {
        key: ApiKeyView::of(made.map_err(store_error)?),
        secret: secret.expose().to_owned(),
    };
    // The secret must not end up in a cache.
    let kept = [(header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, kept, Json(created)))
}

/// The scopes of these names, all of them the caller's too.
fn scopes(names: &[String], grant: &Grant) -> Result<Scopes, ApiError> {
    let known = || Scope::ALL.map(Scope::name).join(", ");
    if names.is_empty() {
        let fault = format!("must name at least one of {}", known());
        return Err(ApiError::invalid("scopes", fault));
    }
    let mut scopes = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let scope = Scope::from_name(name).ok_or_else(|| {
            let fault = format!("must be one of {}", known());
            ApiError::invalid(format!("scopes[{index}]"), fault)
        })?;
        grant.need(scope)?;
        scopes.push(scope);
    }
    Ok(Scopes::only(scopes))
}

/// When the key ends: as asked, and not after the caller's own.
fn expires(
    days: Option<u32>,
    now: Timestamp,
    own: Option<&ApiKey>,
) -> Result<Option<Timestamp>, ApiError> {
    const FIELD: &str = "expiresInDays";
    let latest = own.and_then(|key| key.expires);
    let Some(days) = days else {
        return Ok(latest);
    };
    if !(1..=MAX_API_KEY_DAYS).contains(&days) {
        let fault = format!("must be 1 to {MAX_API_KEY_DAYS}; without it the key has no end");
        return Err(ApiError::invalid(FIELD, fault));
    }
    let asked = now.after(DAY.saturating_mul(days));
    match latest {
        Some(latest) if asked > latest => Err(ApiError::invalid(
            FIELD,
            format!("would end after your own key, which ends {latest}; ask for fewer days"),
        )),
        _ => Ok(Some(asked)),
    }
}

/// The limits of the key, none above the caller's own.
fn quotas(body: &QuotasBody, own: Option<&ApiKey>) -> Result<Quotas, ApiError> {
    let most = own.map(|key| key.quotas).unwrap_or_default();
    let of = |field: &str, asked: Option<u32>, most: Option<u32>| match (asked, most) {
        (Some(0), _) => Err(ApiError::invalid(
            format!("quotas.{field}"),
            "must be at least 1; leave it out for the limit that is configured",
        )),
        (Some(asked), Some(most)) if asked > most => Err(ApiError::invalid(
            format!("quotas.{field}"),
            format!("must be at most {most}, which is the limit of your own key"),
        )),
        (asked, most) => Ok(asked.or(most)),
    };
    Ok(Quotas {
        webhooks: of("webhooks", body.webhooks, most.webhooks)?,
        addresses: of("addresses", body.addresses, most.addresses)?,
        stored_mib: of("storedMib", body.stored_mib, most.stored_mib)?,
        messages_per_second: of(
            "messagesPerSecond",
            body.messages_per_second,
            most.messages_per_second,
        )?,
        delivery_slots: of("deliverySlots", body.delivery_slots, most.delivery_slots)?,
    })
}
