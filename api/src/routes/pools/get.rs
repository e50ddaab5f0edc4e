//! `GET /v1/pools/{id}`: one pool as of the newest slot.

use axum::{
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use super::wire::Pool;
use crate::{
    answer,
    error::{ApiError, ProblemBody},
    extract::{Address, QueryMap, parse_pubkey},
    state::AppState,
};

/// Room for an answer, bytes.
const ROOM: usize = 1_024;

/// A pool and the slot that it was read at.
#[derive(Debug, Serialize, ToSchema)]
pub struct PoolResponse {
    /// Slot whose end this is.
    slot: u64,
    pool: Pool,
}

impl IntoResponse for PoolResponse {
    fn into_response(self) -> Response {
        answer::json(&self, ROOM)
    }
}

/// A pool
///
/// Its reserves, price and fees as of the newest complete slot. A pool is known from the slot that opened it, its opening time
/// notwithstanding.
#[utoipa::path(
    get,
    path = "/v1/pools/{id}",
    tag = "pools",
    operation_id = "getPool",
    params(("id" = Address, Path, description = "Address of the pool.")),
    responses(
        (status = 200, description = "The pool.", body = PoolResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<PoolResponse, ApiError> {
    QueryMap::parse(query.as_deref().unwrap_or_default(), &[])?;
    let address = parse_pubkey("id", &id)?;
    let view = state.market().view(QuoteCommitment::Processed)?;
    let pool = view.pool(&address).ok_or_else(|| ApiError::NotFound {
        what: "pool of the exchange at",
        id: address.to_string(),
    })?;
    Ok(PoolResponse {
        slot: view.slot().get(),
        pool: Pool::new(&pool),
    })
}
