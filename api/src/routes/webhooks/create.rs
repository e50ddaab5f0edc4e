//! `POST /api/webhooks`: creates a webhook and shows its signing secret once.

use axum::{
    Json,
    extract::{Request, State as StateOf},
    http::{HeaderName, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use sluice_store::{NewWebhook, Secret, Timestamp, WebhookId};
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

/// A new subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedWebhook)]
struct Created {
    webhook: WebhookView,
    /// The signing secret, which no other answer shows.
    secret: String,
}

/// Creates a webhook
///
/// The answer is the only one that ever shows the signing secret.
#[utoipa::path(
    post,
    path = "/api/webhooks",
    tag = "webhooks",
    operation_id = "createWebhook",
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
    let body: DefinitionBody = read_json(request, state.settings.max_body_bytes()).await?;
    let (definition, temporary) = body.create(&state.settings)?;
    served::check(&state, &definition).await?;
    let created = Timestamp::from(state.clock.now());
    let new = NewWebhook {
        id: WebhookId::from_random(rand::random()),
        owner,
        relay_until: temporary.then(|| created.after(relay::GRACE)),
        definition,
        secret: Secret::from_random(rand::random()),
        created,
    };
    let webhook = state
        .store
        .create_webhook(&new, state.settings.max_webhooks)
        .await
        .map_err(store_error)?;
    let headers: [(HeaderName, String); 2] = [
        (header::LOCATION, format!("/api/webhooks/{}", webhook.id)),
        // The secret must not end up in a cache.
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let tag = etag(webhook.version);
    let webhook = WebhookView::of(&state.store, webhook).await;
    let created = Created {
        webhook: webhook.map_err(store_error)?,
        secret: new.secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, headers, tag, Json(created)))
}
