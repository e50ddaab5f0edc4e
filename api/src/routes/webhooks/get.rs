//! `GET /api/webhooks/{id}`: answers one webhook.

use axum::{
    Json,
    extract::{Path, State as StateOf},
    response::IntoResponse,
};

use super::{
    etag::etag,
    parts::{Refusals, WebhookPath},
    problem::store_error,
    state::State,
    view::WebhookView,
};
use crate::{auth::Caller, error::ApiError};

/// One webhook
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    operation_id = "getWebhook",
    params(WebhookPath),
    responses(
        (status = 200, description = "The webhook.", body = WebhookView, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let webhook = state.webhook(&access, &id).await?;
    let tag = etag(webhook.version);
    let view = WebhookView::of(&state.store, webhook).await;
    Ok((tag, Json(view.map_err(store_error)?)))
}
