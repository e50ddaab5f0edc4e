//! `POST /api/webhooks`

use std::time::SystemTime;

use axum::{
    Json,
    extract::State as StateOf,
    http::{HeaderName, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use sluice_store::{NewWebhook, Secret, Timestamp, WebhookId};

use super::{
    MAX_WEBHOOKS, State,
    definition::{DefinitionBody, MAX_BODY_BYTES},
    store_error,
    view::WebhookView,
};
use crate::{error::ApiError, extract::StrictJson};

#[derive(Debug, Serialize)]
struct Created {
    webhook: WebhookView,
    secret: String,
}

/// Creates a subscription. The answer is the only one that ever shows the signing secret.
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    StrictJson(body): StrictJson<DefinitionBody, MAX_BODY_BYTES>,
) -> Result<impl IntoResponse, ApiError> {
    let new = NewWebhook {
        id: WebhookId::from_random(rand::random()),
        definition: body.validate(state.settings)?,
        secret: Secret::from_random(rand::random()),
        created: Timestamp::from(SystemTime::now()),
    };
    let webhook = state
        .store
        .create_webhook(&new, MAX_WEBHOOKS)
        .await
        .map_err(store_error)?;
    let headers: [(HeaderName, String); 2] = [
        (header::LOCATION, format!("/api/webhooks/{}", webhook.id)),
        // The secret must not end up in a cache.
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let created = Created {
        webhook: webhook.into(),
        secret: new.secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, headers, Json(created)))
}
