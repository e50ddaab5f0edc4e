//! `/api/webhooks`: subscriptions to what happens on the chain.
//!
//! This side only writes down what is wanted; the indexer reads it from the database, matches and
//! delivers.

mod create;
mod definition;
mod delete;
mod get;
mod list;
mod update;
mod view;

#[cfg(test)]
mod tests;

use axum::{Router, routing::get};
use sluice_store::{Store, StoreError, WebhookId};

use crate::error::ApiError;

/// Most webhooks that may exist: matching costs the same for any number, but each one's filters are
/// held in memory by the indexer.
pub const MAX_WEBHOOKS: u32 = 1_000;

/// Longest identifier that an error repeats, in characters.
const MAX_ECHOED_ID_CHARS: usize = 80;

/// What the configuration decides about webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether a callback URL may be plain http to a loopback address.
    pub allow_http_loopback: bool,
}

#[derive(Clone, Debug)]
struct State {
    store: Store,
    settings: Settings,
}

/// The webhook routes, complete with their state.
pub fn router(store: Store, settings: Settings) -> Router {
    Router::new()
        .route("/api/webhooks", get(list::handler).post(create::handler))
        .route(
            "/api/webhooks/{id}",
            get(get::handler)
                .put(update::handler)
                .delete(delete::handler),
        )
        .with_state(State { store, settings })
}

/// What cannot be an identifier names no webhook, just as an identifier that was never given.
fn parse_id(text: &str) -> Result<WebhookId, ApiError> {
    WebhookId::parse(text).map_err(|_| not_found(text))
}

fn not_found(id: &str) -> ApiError {
    ApiError::NotFound {
        what: "webhook",
        id: id.chars().take(MAX_ECHOED_ID_CHARS).collect(),
    }
}

fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::TooManyWebhooks { limit } => ApiError::TooManyWebhooks { limit },
        other => ApiError::StoreUnavailable(other.into()),
    }
}
