//! `GET /v1/transactions/{signature}`: what became of a transaction that was sent here.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
};

use super::{signature, unknown, wire::TransactionStatus};
use crate::{
    error::{ApiError, ProblemBody},
    extract::QueryMap,
    state::AppState,
};

/// What became of a transaction
///
/// Of one that was sent by `POST /v1/transactions` to this process, until ten minutes after its end. It is what the stream
/// has shown: no node is asked.
#[utoipa::path(
    get,
    path = "/v1/transactions/{signature}",
    tag = "transactions",
    operation_id = "getTransaction",
    params(("signature" = String, Path, description = "Its first signature, base 58.")),
    responses(
        (status = 200, description = "What is known of it.", body = TransactionStatus),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<TransactionStatus>, ApiError> {
    QueryMap::parse(query.as_deref().unwrap_or_default(), &[])?;
    let signature = signature(&text)?;
    let followed = state.sender().get(&signature);
    let followed = followed.ok_or_else(|| unknown(&signature))?;
    Ok(Json(TransactionStatus::new(&signature, &followed)))
}
