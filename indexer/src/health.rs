//! Health endpoints: `GET /health/live`, `GET /health/ready` and `GET /metrics`.

mod own_thread;
mod readings;

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use service_kit::{CancellationToken, Clock, open_metrics};
use sluice_geyser::Servers;
use sluice_store::{Store, Timestamp};
use tokio::{net::TcpListener, runtime::Handle, select, sync::watch};

use self::readings::Readings;
use crate::{events::subscription_index::Subscriptions, metrics::Metrics, status::Status};

/// Why a standby is not ready while the leader does not renew its lease.
const SILENT: &str = "the process that leads has been silent for longer than its lease";

/// State of the endpoints.
#[derive(Clone, Debug)]
pub struct Health {
    /// The database.
    pub store: Store,
    /// Whether this process leads, and how its stream is.
    pub status: Status,
    /// The active webhooks, whose revision is the one wanted.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// The stream's servers, of which it is shown how they stand against each other.
    pub servers: Servers,
    /// What is counted.
    pub metrics: Metrics,
    /// Shows how old the oldest message of the queue is.
    pub clock: Clock,
}

/// What the handlers see, on a thread of their own.
#[derive(Clone)]
struct Probed {
    health: Health,
    readings: Readings,
    /// The runtime that does the indexer's work: connections of the database belong to it.
    work: Handle,
}

/// Serves until `shutdown`, on a thread of its own. To be called on the runtime that does the indexer's work.
///
/// # Errors
/// When the listener fails for good, or the thread cannot be started.
pub async fn serve(
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let (readings, reading) = Readings::of(health.store.clone());
    let work = Handle::current();
    let probed = Probed {
        health,
        readings,
        work,
    };
    select! {
        served = own_thread::serve(listener, router(probed), shutdown) => served,
        never = reading => match never {},
    }
}

fn router(probed: Probed) -> Router {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(probed)
}

/// 200 when the runtime that does the work takes up a task, hence the process lives: nothing else may make a supervisor restart
/// it. While none is taken up there is no answer either.
async fn live(State(probed): State<Probed>) -> Response {
    let lives = probed.work.spawn(async {}).await.is_ok();
    let status = if lives {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(json!({ "live": lives }))).into_response()
}

/// 200 when every event reaches its webhooks now, otherwise 503 with the reason. The database's part of it is as it was told last.
async fn ready(State(probed): State<Probed>) -> Response {
    let Probed {
        health, readings, ..
    } = probed;
    let stored = readings.last().await;
    let reason = match &stored {
        Err(unread) => Some(unread.clone()),
        Ok(stored) if health.status.stands_by() && stored.leader_is_silent => {
            Some(SILENT.to_owned())
        }
        Ok(_) => health.status.stream_fault(Instant::now()),
    };
    let stored = stored.ok();
    let filter = stored.and_then(|stored| stored.filter);
    let status = if reason.is_none() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({
        "ready": reason.is_none(),
        "reason": reason,
        "standby": health.status.stands_by(),
        "leads": health.status.is_leader(),
        "slot": health.status.last_slot(),
        "checkpoint": stored.and_then(|stored| stored.checkpoint),
        "filter": {
            "wantedRevision": health.subscriptions.borrow().revision().0,
            "inForceRevision": filter.map(|filter| filter.revision.0),
            "inForceSinceSlot": filter.map(|filter| filter.in_force_slot),
        },
        "pendingDeliveries": stored.map(|stored| stored.pending_deliveries),
    });
    (status, Json(body)).into_response()
}

/// Every count. The queue's are left as they were while the database does not answer.
async fn metrics(State(probed): State<Probed>) -> Response {
    let Probed { health, work, .. } = probed;
    let store = health.store.clone();
    let counting = work.spawn(async move { store.queue_stats().await });
    match counting.await {
        Ok(Ok(stats)) => health
            .metrics
            .queue(&stats, Timestamp::from(health.clock.now())),
        Ok(Err(error)) => tracing::warn!(%error, "the queue cannot be counted"),
        Err(error) => tracing::warn!(%error, "the queue is not counted any more"),
    }
    if let Some(age) = health.status.slot_age(Instant::now()) {
        health.metrics.stream_age(age);
    }
    health.metrics.servers(&health.servers.standings());
    (
        [(CONTENT_TYPE, open_metrics::MEDIA_TYPE)],
        health.metrics.text(),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::to_bytes;
    use serde_json::Value;
    use sluice_store::Readiness;

    use super::*;

    /// Status and body of the readiness of a standby whose stream no slot has come by, where the database tells this of the leader.
    async fn readiness_of_a_standby(leader_is_silent: bool) -> (StatusCode, Value) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("sluice.db")).await;
        let (_told, subscriptions) = watch::channel(Arc::default());
        let status = Status::new(Duration::from_secs(60));
        status.leads(Some(false));
        let probed = Probed {
            health: Health {
                store: store.expect("opens"),
                status,
                subscriptions,
                servers: Servers::new([]),
                metrics: Metrics::default(),
                clock: Clock::system(),
            },
            readings: Readings::telling(Readiness {
                checkpoint: Some(7),
                filter: None,
                pending_deliveries: 0,
                leader_is_silent,
            }),
            work: Handle::current(),
        };
        let response = ready(State(probed)).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await;
        let body = serde_json::from_slice(&body.expect("reads")).expect("JSON");
        (status, body)
    }

    #[tokio::test]
    async fn a_standby_is_ready_as_long_as_its_leader_is_not_silent() {
        let (status, body) = readiness_of_a_standby(false).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            (&body["ready"], &body["reason"]),
            (&true.into(), &Value::Null)
        );
        let (status, body) = readiness_of_a_standby(true).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(
            (&body["ready"], &body["reason"]),
            (&false.into(), &SILENT.into())
        );
        assert_eq!(body["standby"], true);
    }
}
