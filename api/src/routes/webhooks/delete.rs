//! `DELETE /api/webhooks/{id}`: removes a webhook and its pending deliveries.

use axum::{
    extract::{Path, State as StateOf},
    http::StatusCode,
};

use super::{
    parts::{Refusals, WebhookPath},
    problem::{not_found, parse_id, store_error},
    state::State,
};
use crate::{auth::Caller, error::ApiError};

/// Removes a webhook, with everything that it is still owed
#[utoipa::path(
    delete,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    operation_id = "deleteWebhook",
    params(WebhookPath),
    responses(
        (status = 204, description = "It is gone."),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let deleted = state
        .store
        .delete_webhook(&access, &parse_id(&id)?)
        .await
        .map_err(store_error)?;
    if deleted {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(not_found(&id))
    }
}
