//! `POST /api/webhooks`: creates a webhook and shows its signing secret once.

use axum::{
    Json,
    extract::{Request, State as StateOf},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use sluice_store::{
    Access, CreatedWebhook, Idempotency, NewWebhook, Secret, StoreError, Timestamp,
    WebhookDefinition, WebhookId,
};
use utoipa::ToSchema;

use super::{
    definition::{DefinitionBody, bodies::NewWebhookBody},
    etag::etag,
    parts::Refusals,
    problem::store_error,
    relay, served,
    state::State,
    view::WebhookView,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Longest idempotency key, bytes: a random number of any notation is shorter.
const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// A new subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedWebhook)]
struct Created {
    webhook: WebhookView,
    /// The signing secret, which only the answer to a repetition under the same `Idempotency-Key` shows again.
    secret: String,
}

/// Creates a webhook
///
/// The answer is the only one that ever shows the signing secret. A request that is repeated under the same `Idempotency-Key`,
/// because its answer was lost, is answered with the webhook that it created, and creates no other.
#[utoipa::path(
    post,
    path = "/api/webhooks",
    tag = "webhooks",
    operation_id = "createWebhook",
    params(("Idempotency-Key" = Option<String>, Header, description = "A random text of the caller's, at most 255 printable ASCII characters. With another definition it is refused: idempotency_key_reused.", max_length = 255)),
    request_body = NewWebhookBody,
    responses(
        (status = 201, description = "The webhook, and its secret this once.", body = Created, headers(("Location" = String, description = "Its path."), ("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(owner): Caller,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let key = idempotency_key(request.headers())?;
    let body: DefinitionBody = read_json(request, state.settings.max_body_bytes()).await?;
    let (definition, temporary) = body.create(&state.settings)?;
    let idempotency = key.map(|key| Idempotency::new(key, &definition, temporary));
    let checked = check(&state, &owner, &definition).await;
    let Err(refusal) = checked else {
        let created = create(&state, owner, (definition, temporary), idempotency).await;
        return answer(&state, created.map_err(store_error)?).await;
    };
    // Of a repetition it is not the limits of now that count: nothing but its answer shows the secret again.
    let Some(idempotency) = idempotency else {
        return Err(refusal);
    };
    let earlier = state.store.created_webhook(&owner, &idempotency).await;
    let earlier = earlier.map_err(store_error)?;
    answer(&state, earlier.ok_or(refusal)?).await
}

/// Checks whether a webhook of this definition may be created, but for what the store counts as it creates it.
///
/// # Errors
/// [`ApiError::StoredQuota`], [`ApiError::NotServed`], or a failure of the database.
async fn check(
    state: &State,
    owner: &Access,
    definition: &WebhookDefinition,
) -> Result<(), ApiError> {
    let stored = state.store.check_stored(owner).await;
    stored.map_err(store_error)?;
    served::check(state, definition).await
}

async fn create(
    state: &State,
    owner: Access,
    (definition, temporary): (WebhookDefinition, bool),
    idempotency: Option<Idempotency>,
) -> Result<CreatedWebhook, StoreError> {
    let created = Timestamp::from(state.clock.now());
    let new = NewWebhook {
        id: WebhookId::from_random(rand::random()),
        owner,
        relay_until: temporary.then(|| created.after(relay::GRACE)),
        definition,
        secret: Secret::from_random(rand::random()),
        created,
    };
    let limit = state.settings.max_webhooks;
    match idempotency {
        Some(idempotency) => {
            let store = &state.store;
            store.create_webhook_once(&new, limit, &idempotency).await
        }
        None => Ok(CreatedWebhook {
            webhook: state.store.create_webhook(&new, limit).await?,
            secret: new.secret,
            repeated: false,
        }),
    }
}

async fn answer(
    state: &State,
    created: CreatedWebhook,
) -> Result<impl IntoResponse + use<>, ApiError> {
    let CreatedWebhook {
        webhook, secret, ..
    } = created;
    let headers: [(HeaderName, String); 2] = [
        (header::LOCATION, format!("/api/webhooks/{}", webhook.id)),
        // The secret must not end up in a cache.
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let tag = etag(webhook.version);
    let webhook = WebhookView::of(&state.store, webhook).await;
    let created = Created {
        webhook: webhook.map_err(store_error)?,
        secret: secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, headers, tag, Json(created)))
}

/// The header `Idempotency-Key`, if there is one.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(key) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(ApiError::invalid("Idempotency-Key", "must be given once"));
    }
    let key = key.as_bytes();
    let fits = (1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&key.len());
    if !fits || !key.iter().all(u8::is_ascii_graphic) {
        return Err(ApiError::invalid(
            "Idempotency-Key",
            format!(
                "must be 1 to {MAX_IDEMPOTENCY_KEY_BYTES} printable ASCII characters without blanks"
            ),
        ));
    }
    Ok(Some(String::from_utf8_lossy(key).into_owned()))
}
