//! Middleware around the whole router: request traces, CORS, and panics answered as 500.

mod cors;

use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use sluice_config::CorsOrigins;
use tower::{Service, ServiceBuilder};
use tower_http::trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer};
use tracing::Level;

use self::cors::PublicCors;
use crate::error::ApiError;

/// Puts the layers around the routes, outermost first. They surround the router as a whole: a layer of the router's
/// own costs each request several allocations.
pub fn apply(
    routes: Router,
    origins: &CorsOrigins,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + use<>
{
    let traces = tracing::enabled!(target: "tower_http::trace", Level::DEBUG);
    let trace = traces.then(|| {
        ServiceBuilder::new()
            .map_response(|response: Response<_>| response.map(Body::new))
            .layer(
                TraceLayer::new_for_http()
                    .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG))
                    .on_response(DefaultOnResponse::new().level(Level::DEBUG))
                    // A cause is logged where it is turned into an answer; a second line per 503
                    // would drown it while a health check polls.
                    .on_failure(()),
            )
    });
    ServiceBuilder::new()
        .option_layer(trace)
        .layer(PublicCors::new(origins))
        // Inside the trace, so that a panic is logged with its request like any other answer.
        .map_future(answer_panics)
        .service(routes)
}

/// Turns a panic of a handler into a 500.
async fn answer_panics(
    answer: impl Future<Output = Result<Response, Infallible>>,
) -> Result<Response, Infallible> {
    let caught = AssertUnwindSafe(answer).catch_unwind().await;
    caught.unwrap_or_else(|cause| Ok(panicked(&*cause)))
}

fn panicked(cause: &(dyn Any + Send)) -> Response {
    let text = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a value that is not text");
    ApiError::Internal(anyhow::anyhow!("a handler panicked: {text}")).into_response()
}
