//! Middleware around the router: request ids, counts, traces, CORS, limits of clients, panics as 500.

mod cors;

use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use sluice_config::CorsOrigins;
use tower::{Service, ServiceBuilder, service_fn};
use tower_http::trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer};
use tracing::Level;

use self::cors::PublicCors;
use crate::{
    client::Peer,
    client_limits::ClientLimits,
    error::ApiError,
    metrics::{Metrics, Route},
    request_id::{self, RequestIds, X_REQUEST_ID},
};

/// What the layers need.
pub struct Layers<'a> {
    /// Which web pages may call the public routes.
    pub origins: &'a CorsOrigins,
    /// What each client may ask for.
    pub limits: Arc<ClientLimits>,
    /// Where requests are counted.
    pub metrics: Metrics,
    /// Who names requests.
    pub ids: RequestIds,
}

/// Puts the layers around the routes, outermost first. They surround the router as a whole: a layer of the router's
/// own costs each request several allocations.
pub fn apply(
    routes: Router,
    layers: Layers<'_>,
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
    let Layers {
        origins,
        limits,
        metrics,
        ids,
    } = layers;
    let answered = ServiceBuilder::new()
        .option_layer(trace)
        // Outside the limits, so that a page can read that it asked too often.
        .layer(PublicCors::new(origins))
        .layer_fn(|inner| limited(inner, Arc::clone(&limits), metrics.clone()))
        // Inside the trace, so that a panic is logged with its request like any other answer. On the heap, for every layer
        // around it holds the future of what is inside two or three times over, and copies it as often; and a connection
        // keeps the room of the longest future of all routes for as long as its stream lasts.
        .map_future(|answer| Box::pin(answer_panics(answer)))
        .service(routes);
    named_and_counted(answered, ids, metrics)
}

/// Gives each request an id, which its answer and the log name, and counts what became of it.
fn named_and_counted<S>(
    mut inner: S,
    ids: RequestIds,
    metrics: Metrics,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + use<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send,
{
    service_fn(move |request: Request| {
        let begun = Instant::now();
        let route = Route::of(request.uri().path());
        let id = ids.of(request.headers());
        let answer = request_id::under(id.clone(), inner.call(request));
        let metrics = metrics.clone();
        async move {
            let mut response = answer.await?;
            response.headers_mut().insert(X_REQUEST_ID, id);
            metrics.answered(route, response.status(), begun.elapsed());
            Ok(response)
        }
    })
}

/// Refuses what is beyond the limits of the client, and says in the other answers what is left of them.
fn limited<S>(
    mut inner: S,
    limits: Arc<ClientLimits>,
    metrics: Metrics,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + use<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send,
{
    service_fn(move |request: Request| {
        let route = Route::of(request.uri().path());
        let counted = limits.count(route, Peer::of(request.extensions()), request.headers());
        let answer = match counted {
            Ok(standing) => Ok((inner.call(request), standing)),
            Err(refusal) => {
                metrics.refused(refusal.name);
                Err((refusal, refusal.standing(&limits)))
            }
        };
        async move {
            let (mut response, standing) = match answer {
                Ok((answer, standing)) => (answer.await?, standing),
                Err((refusal, standing)) => (ApiError::from(refusal).into_response(), standing),
            };
            standing.put(response.headers_mut());
            Ok(response)
        }
    })
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
