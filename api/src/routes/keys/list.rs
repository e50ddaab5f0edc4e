//! `GET /api/keys`: every API key of the installation.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Keys, store_error, view::ApiKeyView};
use crate::error::{ApiError, ProblemBody};

/// Every API key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeyList)]
pub(super) struct Listed {
    /// In order of creation, revoked ones included.
    keys: Vec<ApiKeyView>,
}

/// Every API key, revoked ones included
///
/// Needs a key with the scope `keys:write`, which no key has that was not given it by name.
#[utoipa::path(
    get,
    path = "/api/keys",
    tag = "keys",
    operation_id = "listKeys",
    responses(
        (status = 200, description = "The keys, without their secrets.", body = Listed),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    State(keys): State<Keys>,
) -> Result<([(HeaderName, &'static str); 1], Json<Listed>), ApiError> {
    let all = keys.store.api_keys().await.map_err(store_error)?;
    let keys = all.into_iter().map(ApiKeyView::of).collect();
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Listed { keys })))
}
