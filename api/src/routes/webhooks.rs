//! `/api/webhooks`: subscriptions to what happens on the chain.
//!
//! These routes write definitions to the database; the indexer reads them there, matches and delivers. Of
//! deliveries they write three things: a redelivery makes messages due again; a changed URL or a webhook
//! switched on again resets its circuit breaker; and the messages of a temporary webhook are leased here, go
//! down the connection that its owner holds open, and are recorded as reported or released. A test is sent from
//! here with the client of real deliveries, and nothing of it is stored.
//!
//! | for | see |
//! |---|---|
//! | what may be written, what is read | `definition`, `settings`, `view` |
//! | a webhook | `create`, `get`, `list`, `update`, `delete`, `addresses`, `rotate_secret` |
//! | what became of it | `deliveries`, `events`, `redeliver`, `test`, `sample` |
//! | a temporary webhook's connection | `relay` |
//! | the description of all this | `openapi`, `schema` |

mod addresses;
mod create;
mod definition;
mod delete;
mod deliveries;
mod events;
mod get;
mod list;
mod openapi;
mod paging;
mod parts;
mod redeliver;
mod relay;
mod rotate_secret;
mod sample;
mod schema;
mod settings;
mod test;
mod update;
mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, header},
    middleware,
    routing::{MethodRouter, get, post},
};
use service_kit::CancellationToken;
use sluice_store::{Access, Store, StoreError, Webhook, WebhookId};
use sluice_webhook_client::Client;

use self::relay::Relays;
pub use self::{openapi::Description, sample::body as sample_body, settings::Settings};
use crate::{
    auth::{self, CallerLimiter, Gate},
    error::ApiError,
};

/// Longest identifier that an error repeats, in characters.
const MAX_ECHOED_ID_CHARS: usize = 80;

/// Longest body of requests that hold a few short fields, bytes.
const SMALL_BODY_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
struct State {
    store: Store,
    settings: Settings,
    client: Client,
    relays: Relays,
    tests: Arc<CallerLimiter>,
    shutdown: CancellationToken,
}

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

impl State {
    async fn webhook(&self, access: &Access, id: &str) -> Result<Webhook, ApiError> {
        let found = self.store.webhook(access, &parse_id(id)?).await;
        found.map_err(store_error)?.ok_or_else(|| not_found(id))
    }
}

/// What cannot be an identifier names no webhook, just as an identifier that was never given.
fn parse_id(text: &str) -> Result<WebhookId, ApiError> {
    WebhookId::parse(text).map_err(|_| not_found(text))
}

fn not_found(id: &str) -> ApiError {
    missing("webhook", id)
}

fn missing(what: &'static str, id: &str) -> ApiError {
    ApiError::NotFound {
        what,
        id: id.chars().take(MAX_ECHOED_ID_CHARS).collect(),
    }
}

fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::TooManyWebhooks { limit } => ApiError::TooManyWebhooks { limit },
        StoreError::VersionConflict { current } => ApiError::VersionConflict { current },
        StoreError::TooManyAddresses { what, count, limit } => ApiError::invalid(
            what,
            format!("would make {count}, but at most {limit} are allowed; use several webhooks"),
        ),
        StoreError::TooManySecrets { limit, until } => ApiError::invalid(
            "overlapSeconds",
            format!(
                "would let more than {limit} secrets sign beside the new one; wait until {until}, when the first of \
                 them ends, or give 0, which ends all of them now"
            ),
        ),
        StoreError::MatchesNothing => ApiError::invalid(
            "filters",
            "would match nothing any more; switch the webhook off (active: false) or delete it",
        ),
        // Revoked since the request was let in.
        StoreError::NoSuchApiKey { .. } => ApiError::Unauthorized {
            fault: "this API key does not exist or was revoked",
            presented: true,
        },
        other => ApiError::StoreUnavailable(other.into()),
    }
}

/// The version that the caller has seen, from `If-Match`; `None` when it does not care.
fn expected_version(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .and_then(paging::digits);
    version.map(Some).ok_or_else(|| {
        ApiError::invalid(
            "If-Match",
            "must be the ETag of an earlier answer, such as \"3\", or *",
        )
    })
}

/// The entity tag of a webhook's version.
fn etag(version: u64) -> [(header::HeaderName, HeaderValue); 1] {
    let value = HeaderValue::from_str(&format!("\"{version}\""));
    let value = value.expect("digits between quotes are a header value");
    [(header::ETAG, value)]
}
