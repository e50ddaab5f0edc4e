//! Router: every route but those of webhooks, which `routes/webhooks` adds with their authentication.

use axum::{
    Router,
    routing::{get, post},
};

use crate::{
    error::ApiError,
    routes::{health, quote, swap},
    state::AppState,
};

/// The whole API; `webhooks` are the routes of [`crate::routes::webhooks`], which have a gate of their own.
pub fn router(state: AppState, webhooks: Router) -> Router {
    Router::new()
        .route("/v1/quote", get(quote::get))
        .route("/v1/swap/transaction", post(swap::transaction))
        .route("/v1/swap/instruction", post(swap::instruction))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .with_state(state)
        .merge(webhooks)
        .fallback(async || ApiError::NoRoute)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
}
