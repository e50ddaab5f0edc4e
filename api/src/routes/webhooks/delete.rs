//! `DELETE /api/webhooks/{id}`

use axum::{
    extract::{Path, State as StateOf},
    http::StatusCode,
};

use super::{State, not_found, parse_id, store_error};
use crate::error::ApiError;

/// Removes a webhook with everything that it is still owed.
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let deleted = state
        .store
        .delete_webhook(&parse_id(&id)?)
        .await
        .map_err(store_error)?;
    if deleted {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(not_found(&id))
    }
}
