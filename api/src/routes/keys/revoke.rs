//! `DELETE /api/keys/{id}`: revokes an API key.

use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use sluice_store::{ApiKeyId, Timestamp};

use super::{Keys, store_error};
use crate::{
    error::{ApiError, ProblemBody},
    extract::echoed,
};

/// Revokes an API key, at once and for good
///
/// Its webhooks are switched off. A key may revoke itself; revoking the last one lets nobody in without a key.
#[utoipa::path(
    delete,
    path = "/api/keys/{id}",
    tag = "keys",
    operation_id = "revokeKey",
    params(("id" = String, Path, description = "Its identifier.")),
    responses(
        (status = 204, description = "It is accepted no more."),
        (status = "4XX", description = "Refused; `code` says why. `not_found` where there is none, or it was revoked before.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security(("apiKey" = [])),
)]
pub(super) async fn handler(
    State(keys): State<Keys>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::NotFound {
        what: "API key in use",
        id: echoed(&id),
    };
    // By identifier alone: a name in a path is easily another key's.
    let key = ApiKeyId::parse(&id).map_err(|_| missing())?;
    let now = Timestamp::from(keys.clock.now());
    let revoked = keys.store.revoke_api_key(key.as_str(), now).await;
    revoked.map_err(store_error)?.ok_or_else(missing)?;
    Ok(StatusCode::NO_CONTENT)
}
