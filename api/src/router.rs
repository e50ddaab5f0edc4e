//! Every route on one page.

use axum::{
    Router,
    routing::{get, post},
};

use crate::{
    error::ApiError,
    middleware,
    routes::{health, quote, swap, webhooks},
    state::AppState,
};

/// The whole API. `webhooks_open` says whether the webhook routes are served.
pub fn router(state: AppState, webhooks_open: bool, webhooks: webhooks::Settings) -> Router {
    let mut routes = Router::new()
        .route("/v1/quote", get(quote::get))
        .route("/v1/swap/transaction", post(swap::transaction))
        .route("/v1/swap/instruction", post(swap::instruction))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .with_state(state.clone());
    if webhooks_open {
        routes = routes.merge(webhooks::router(state.store().clone(), webhooks));
    }
    let routes = routes
        .fallback(async || ApiError::NoRoute)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed);
    middleware::apply(routes)
}
