//! `GET /health/ready`: whether quotes are exact and webhooks can be stored, and if not, why.

use std::time::Duration;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use sluice_chain_types::Slot;
use sluice_market::{NotReady, Status};
use sluice_store::StoreError;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::state::AppState;

/// How long the database may take: half of what a supervisor waits for a probe where nothing else is said. Whoever hangs does not
/// answer with a fault, and the probe would say nothing of the reason.
const STORE_PATIENCE: Duration = Duration::from_millis(500);

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
    reasons.extend(store_fault(state.store().check()).await);
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

/// Why webhooks cannot be stored, by what a check of the database says; `None` when they can.
async fn store_fault(check: impl Future<Output = Result<(), StoreError>>) -> Option<String> {
    match timeout(STORE_PATIENCE, check).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            // The cause may name a path or a host, which is for the log alone.
            tracing::error!(%error, "the database is not available");
            Some("store: the database is not available".to_owned())
        }
        Err(_) => {
            let waited = STORE_PATIENCE.as_millis();
            Some(format!(
                "store: the database has not answered for {waited} ms"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_database_that_hangs_is_named_while_a_supervisor_still_waits() {
        assert_eq!(store_fault(ready(Ok(()))).await, None);
        let told = store_fault(pending()).await;
        let silent = "store: the database has not answered for 500 ms";
        assert_eq!(told.as_deref(), Some(silent));
    }
}
