//! `PUT` and `PATCH /api/webhooks/{id}`: replaces or changes a webhook's definition.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use sluice_store::{Access, StoreError, Timestamp, Webhook, WebhookDefinition};

use super::{
    definition::{
        DefinitionBody,
        bodies::{ChangeBody, ReplaceBody},
    },
    etag::{etag, expected_version},
    parts::{IfMatch, Refusals, WebhookPath},
    problem::{found, store_error},
    served,
    state::State,
    view::WebhookView,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// How often a change is laid over what somebody else wrote meanwhile, before it is given up.
const CHANGE_ATTEMPTS: u32 = 5;

/// Replaces a webhook's definition as a whole
///
/// What the body leaves out is not kept.
#[utoipa::path(
    put,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    operation_id = "replaceWebhook",
    params(WebhookPath, IfMatch),
    request_body = ReplaceBody,
    responses(
        (status = 200, description = "The webhook.", body = WebhookView, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn put(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let expected = expected_version(&headers)?;
    let body: DefinitionBody = read_json(request, state.settings.max_body_bytes()).await?;
    let before = state.webhook(&access, &id).await?;
    let definition = body.replace(&state.settings, before.relay_until.is_some())?;
    served::check(&state, &definition).await?;
    let after = write(&state, &access, &before, &definition, expected).await;
    answer(&state, found(after, &id)?).await
}

/// Changes what the body names and keeps the rest
///
/// Null restores a default.
#[utoipa::path(
    patch,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    operation_id = "changeWebhook",
    params(WebhookPath, IfMatch),
    request_body = ChangeBody,
    responses(
        (status = 200, description = "The webhook.", body = WebhookView, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn patch(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let expected = expected_version(&headers)?;
    let body: DefinitionBody = read_json(request, state.settings.max_body_bytes()).await?;
    let mut attempt = 1;
    loop {
        let before = state.webhook(&access, &id).await?;
        let temporary = before.relay_until.is_some();
        let definition =
            body.clone()
                .change(before.definition.clone(), &state.settings, temporary)?;
        served::check(&state, &definition).await?;
        let read = expected.unwrap_or(before.version);
        match write(&state, &access, &before, &definition, Some(read)).await {
            Err(StoreError::VersionConflict { .. })
                if expected.is_none() && attempt < CHANGE_ATTEMPTS =>
            {
                attempt += 1;
            }
            after => return answer(&state, found(after, &id)?).await,
        }
    }
}

async fn write(
    state: &State,
    access: &Access,
    before: &Webhook,
    definition: &WebhookDefinition,
    expected: Option<u64>,
) -> Result<Option<Webhook>, StoreError> {
    let store = &state.store;
    let after = store
        .update_webhook(access, &before.id, definition, expected)
        .await?;
    let moved = before.definition.url != definition.url;
    let woken = definition.active && !before.definition.active;
    if after.is_some() && (moved || woken) {
        // What was learnt of the endpoint may not be true of this one.
        let now = Timestamp::from(state.clock.now());
        store.restart_endpoint(&before.id, now).await?;
    }
    Ok(after)
}

async fn answer(state: &State, webhook: Webhook) -> Result<Response, ApiError> {
    let tag = etag(webhook.version);
    let view = WebhookView::of(&state.store, webhook).await;
    Ok((tag, Json(view.map_err(store_error)?)).into_response())
}
