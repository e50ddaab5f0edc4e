//! `GET /health/ready`: whether quotes are exact and webhooks can be stored, and if not, why.

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use sluice_chain_types::Slot;
use sluice_market::{NotReady, Status};
use utoipa::ToSchema;

use crate::state::AppState;

/// Answer of `GET /health/ready`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    ready: bool,
    /// Slot that the market is true for.
    #[schema(required)]
    slot: Option<u64>,
    /// What is missing, if anything.
    reasons: Vec<String>,
}

/// Whether the answers can be trusted
///
/// 200 when quotes are exact and webhooks can be stored, otherwise 503 with every reason.
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "health",
    responses(
        (status = 200, description = "They can.", body = Readiness),
        (status = 503, description = "They cannot, for these reasons.", body = Readiness),
    ),
)]
pub async fn ready(State(state): State<AppState>) -> (StatusCode, Json<Readiness>) {
    let mut reasons = Vec::new();
    let slot = match state.market().status() {
        Status::Ready { slot, .. } => Some(slot),
        Status::NotReady(NotReady { reason, slot, .. }) => {
            reasons.push(format!("market: {reason}"));
            slot
        }
    };
    if let Err(error) = state.store().check().await {
        // The cause may name a path or a host, which is for the log alone.
        tracing::error!(%error, "the database is not available");
        reasons.push("store: the database is not available".to_owned());
    }
    let ready = reasons.is_empty();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = Readiness {
        ready,
        slot: slot.map(Slot::get),
        reasons,
    };
    (status, Json(body))
}
