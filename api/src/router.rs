//! Router: every route but those of webhooks and API keys, which `routes/webhooks` and `routes/keys` add with their authentication.

use axum::{Router, response::IntoResponse};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    error::ApiError,
    middleware::Quotes,
    routes::{health, mints, pools, priority_fees, quote, swap, transactions},
    state::AppState,
};

/// The routes with their descriptions.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(quote::get::get))
        .routes(routes!(quote::stream::stream))
        .routes(routes!(swap::transaction::transaction))
        .routes(routes!(swap::instruction::instruction))
        .routes(routes!(swap::check::check))
        .routes(routes!(transactions::send::send))
        .routes(routes!(transactions::explain::explain))
        .routes(routes!(transactions::get::get))
        .routes(routes!(transactions::stream::stream))
        .routes(routes!(pools::list::list))
        .routes(routes!(pools::get::get))
        .routes(routes!(mints::get))
        .routes(routes!(priority_fees::get))
        .routes(routes!(health::live::live))
        .routes(routes!(health::ready::ready))
}

/// What answers `GET /v1/quote`, without the way through all routes to it.
pub fn quotes(state: AppState) -> Quotes {
    Box::new(move |query| quote::get::answer(&state, query).into_response())
}

/// The whole API; `authenticated` are the routes of [`crate::routes::webhooks`] and
/// [`crate::routes::keys`], which see to that themselves.
pub fn router(state: AppState, authenticated: Router) -> Router {
    // Without the descriptions from here on: they are no part of what a request passes.
    let (routes, _) = routes().split_for_parts();
    routes
        .with_state(state)
        .merge(authenticated)
        .fallback(async || ApiError::NoRoute)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
}
