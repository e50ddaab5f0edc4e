//! Router of the webhook routes, with authentication and rate limits.

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{MethodRouter, get, post},
};
use service_kit::CancellationToken;
use sluice_store::Store;
use sluice_webhook_client::Client;

use super::{
    addresses, create, delete, deliveries, events, get, list, redeliver, relay,
    relay_streams::Relays, rotate_secret, settings::Settings, state::State, test, update,
};
use crate::auth::{self, CallerLimiter, Gate};

/// The webhook routes, complete with their state, behind `gate`. Tests are sent with `client`, and open
/// streams end at `shutdown`.
pub fn router(
    store: Store,
    settings: Settings,
    client: Client,
    gate: Gate,
    shutdown: CancellationToken,
) -> Router {
    let state = State {
        store,
        settings,
        client,
        relays: Relays::default(),
        tests: Arc::new(CallerLimiter::new(settings.tests)),
        shutdown,
    };
    Router::new()
        .route("/api/webhooks", get(list::handler).post(create::handler))
        .route(
            "/api/webhooks/{id}",
            get(get::handler)
                .put(update::put)
                .patch(update::patch)
                .delete(delete::handler),
        )
        .route(
            "/api/webhooks/{id}/accounts",
            post(addresses::add_accounts).delete(addresses::remove_accounts),
        )
        .route(
            "/api/webhooks/{id}/programs",
            post(addresses::add_programs).delete(addresses::remove_programs),
        )
        .route("/api/webhooks/{id}/test", post(test::handler))
        .route(
            "/api/webhooks/{id}/rotate-secret",
            post(rotate_secret::rotate),
        )
        .route("/api/webhooks/{id}/deliveries", get(deliveries::handler))
        .route("/api/webhooks/{id}/redeliver", post(redeliver::handler))
        .route("/api/webhooks/{id}/events", get(events::handler))
        .route_layer(middleware::from_fn_with_state(gate.clone(), auth::admit))
        .route("/api/webhooks/{id}/stream", stream_routes(gate))
        .with_state(state)
}

/// Opening a stream counts as a request like any other. Reports do not: how many there are is decided by how
/// many messages the service sends.
fn stream_routes(gate: Gate) -> MethodRouter<State> {
    let metered = middleware::from_fn_with_state(gate.clone(), auth::admit);
    let unmetered = middleware::from_fn_with_state(gate, auth::admit_unmetered);
    let reports = post(relay::report).route_layer(unmetered);
    get(relay::open).route_layer(metered).merge(reports)
}
