//! Every layer on one page, outermost last.

use std::any::Any;

use axum::{Router, response::IntoResponse, response::Response};
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer},
};
use tracing::Level;

use crate::error::ApiError;

/// Wraps the routes. A panic becomes a 500 inside the trace layer, so that it is logged with its
/// request like any other answer.
pub fn apply(routes: Router) -> Router {
    routes.layer(CatchPanicLayer::custom(panicked)).layer(
        TraceLayer::new_for_http()
            .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG))
            .on_response(DefaultOnResponse::new().level(Level::DEBUG))
            // A cause is logged where it is turned into an answer; a second line per 503 would
            // drown it while a health check polls.
            .on_failure(()),
    )
}

fn panicked(cause: Box<dyn Any + Send + 'static>) -> Response {
    let text = cause
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a value that is not text".to_owned());
    ApiError::Internal(anyhow::anyhow!("a handler panicked: {text}")).into_response()
}
