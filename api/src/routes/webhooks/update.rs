//! `PUT /api/webhooks/{id}`

use axum::{
    Json,
    extract::{Path, State as StateOf},
};

use super::{
    State,
    definition::{DefinitionBody, MAX_BODY_BYTES},
    not_found, parse_id, store_error,
    view::WebhookView,
};
use crate::{error::ApiError, extract::StrictJson};

/// Replaces a webhook's definition as a whole: what the body leaves out is not kept.
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Path(id): Path<String>,
    StrictJson(body): StrictJson<DefinitionBody, MAX_BODY_BYTES>,
) -> Result<Json<WebhookView>, ApiError> {
    let definition = body.validate(state.settings)?;
    let webhook = state
        .store
        .update_webhook(&parse_id(&id)?, &definition)
        .await
        .map_err(store_error)?;
    webhook
        .map(|webhook| Json(webhook.into()))
        .ok_or_else(|| not_found(&id))
}
