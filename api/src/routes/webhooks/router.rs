//! Router of the webhook routes, with authentication and rate limits.

use std::sync::Arc;

use axum::{Router, middleware};
use service_kit::{CancellationToken, Clock};
use sluice_store::Store;
use sluice_webhook_client::Client;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    addresses, backfill, create, delete, deliveries, events, get, idls, list, openapi::Components,
    operations, redeliver, relay, relay_streams::RelayStreams, rotate_secret, settings::Settings,
    skip, state::State, test, update, usage,
};
use crate::auth::{self, Authenticator, CallerLimiter};

/// The routes whose requests are counted, with their descriptions.
fn metered() -> OpenApiRouter<State> {
    OpenApiRouter::default()
        .routes(routes!(list::handler, create::handler))
        .routes(routes!(
            get::handler,
            update::put,
            update::patch,
            delete::handler
        ))
        .routes(routes!(addresses::add_accounts, addresses::remove_accounts))
        .routes(routes!(addresses::add_programs, addresses::remove_programs))
        .routes(routes!(test::handler))
        .routes(routes!(rotate_secret::rotate))
        .routes(routes!(deliveries::handler))
        .routes(routes!(redeliver::handler))
        .routes(routes!(skip::handler))
        .routes(routes!(operations::put, operations::get))
        .routes(routes!(backfill::request, backfill::get))
        .routes(routes!(backfill::request_dry_run, backfill::get_dry_run))
        .routes(routes!(events::handler))
        .routes(routes!(events::one))
        .routes(routes!(idls::put, idls::get, idls::delete))
        .routes(routes!(usage::handler))
        .routes(routes!(relay::open))
}

/// The route whose requests are not counted: how many reports there are is decided by how many messages the service
/// sends.
fn unmetered() -> OpenApiRouter<State> {
    OpenApiRouter::default().routes(routes!(relay::report))
}

/// The description of the webhook routes.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    let mut description = Components::openapi();
    description.merge(metered().merge(unmetered()).into_openapi());
    description
}

/// The webhook routes, complete with their state, behind `authenticator`. Tests are sent with `client`, and open
/// streams end at `shutdown`.
pub fn router(
    store: Store,
    settings: Settings,
    client: Client,
    authenticator: Authenticator,
    clock: Clock,
    shutdown: CancellationToken,
) -> Router {
    let state = State {
        store,
        settings,
        client,
        relay_streams: RelayStreams::default(),
        tests: Arc::new(CallerLimiter::new(settings.tests)),
        clock,
        shutdown,
    };
    let (metered, _) = metered().split_for_parts();
    let (unmetered, _) = unmetered().split_for_parts();
    let counted = middleware::from_fn_with_state(authenticator.clone(), auth::authenticate);
    let uncounted = middleware::from_fn_with_state(authenticator, auth::authenticate_unmetered);
    metered
        .route_layer(counted)
        .merge(unmetered.route_layer(uncounted))
        .with_state(state)
}
