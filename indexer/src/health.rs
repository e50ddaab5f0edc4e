//! `GET /health/live` and `GET /health/ready`.

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use service_kit::CancellationToken;
use sluice_store::{Store, StoreError};
use tokio::{net::TcpListener, sync::watch};

use crate::{status::Status, webhooks::match_event::Subscriptions};

/// What the answers are made from.
#[derive(Clone, Debug)]
pub struct Health {
    /// The database.
    pub store: Store,
    /// What was seen of the stream.
    pub status: Status,
    /// The live webhooks, whose revision is the one wanted.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
}

/// Serves until `shutdown`.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    axum::serve(listener, router(health))
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
}

fn router(health: Health) -> Router {
    Router::new()
        // The process answers, hence it lives: nothing else may make a supervisor restart it.
        .route("/health/live", get(async || Json(json!({ "live": true }))))
        .route("/health/ready", get(ready))
        .with_state(health)
}

/// 200 when every event reaches its webhooks now, otherwise 503 with the reason.
async fn ready(State(health): State<Health>) -> Response {
    let stored = stored(&health.store).await;
    let reason = match &stored {
        Err(error) => Some(error.to_string()),
        Ok(_) => health.status.stream_fault(Instant::now()),
    };
    let stored = stored.unwrap_or(Value::Null);
    let status = if reason.is_none() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({
        "ready": reason.is_none(),
        "reason": reason,
        "slot": health.status.last_slot(),
        "checkpoint": stored["checkpoint"],
        "filter": {
            "wantedRevision": health.subscriptions.borrow().revision().0,
            "inForceRevision": stored["inForceRevision"],
            "inForceSinceSlot": stored["inForceSinceSlot"],
        },
        "pendingDeliveries": stored["pendingDeliveries"],
    });
    (status, Json(body)).into_response()
}

async fn stored(store: &Store) -> Result<Value, StoreError> {
    store.check().await?;
    let filter = store.filter_state().await?;
    Ok(json!({
        "checkpoint": store.checkpoint().await?,
        "inForceRevision": filter.map(|filter| filter.revision.0),
        "inForceSinceSlot": filter.map(|filter| filter.since_slot),
        "pendingDeliveries": store.pending_deliveries().await?,
    }))
}
