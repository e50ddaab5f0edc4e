//! `GET /api/webhooks/{id}`

use axum::{
    Json,
    extract::{Path, State as StateOf},
};

use super::{State, not_found, parse_id, store_error, view::WebhookView};
use crate::error::ApiError;

/// One webhook.
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Path(id): Path<String>,
) -> Result<Json<WebhookView>, ApiError> {
    let webhook = state
        .store
        .webhook(&parse_id(&id)?)
        .await
        .map_err(store_error)?;
    webhook
        .map(|webhook| Json(webhook.into()))
        .ok_or_else(|| not_found(&id))
}
