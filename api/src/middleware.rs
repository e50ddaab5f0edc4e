//! Middleware around the router: request ids, counts, traces, CORS, limits of clients, panics as 500.

mod cors;

use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe, pin::pin, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::{FutureExt, future::Either};
use sluice_config::CorsOrigins;
use tower::{Layer, Service, ServiceExt, service_fn};
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

/// The routes with what every request passes on its way to them: one for all requests, since layers in the sense of tower
/// are cloned for each, and move what they hold from one to the next.
pub struct Surrounded {
    routes: Router,
    /// Which web pages may call the public routes.
    cors: PublicCors,
    /// What each client may ask for.
    limits: ClientLimits,
    /// Where requests are counted.
    metrics: Metrics,
    /// Who names requests.
    ids: RequestIds,
    is_traced: bool,
}

impl Surrounded {
    /// Surrounds the routes. Whether requests are traced is asked of the log once, here.
    #[must_use]
    pub fn new(
        routes: Router,
        origins: &CorsOrigins,
        limits: ClientLimits,
        metrics: Metrics,
        ids: RequestIds,
    ) -> Self {
        Self {
            routes,
            cors: PublicCors::new(origins),
            limits,
            metrics,
            ids,
            is_traced: tracing::enabled!(target: "tower_http::trace", Level::DEBUG),
        }
    }

    /// Answers a request. It is given an id, which its answer and the log name, and what becomes of it is counted.
    pub async fn answer(&self, request: Request) -> Response {
        let begun = Instant::now();
        let route = Route::of(request.uri().path());
        let id = self.ids.of(request.headers());
        let answer = if self.is_traced {
            Either::Left(Box::pin(self.traced(route, request)))
        } else {
            Either::Right(self.shared(route, request))
        };
        let mut response = request_id::under(id.clone(), pin!(answer)).await;
        response.headers_mut().insert(X_REQUEST_ID, id);
        self.metrics
            .answered(route, response.status(), begun.elapsed());
        response
    }

    /// Logs the request and its answer.
    async fn traced(&self, route: Route, request: Request) -> Response {
        let trace = TraceLayer::new_for_http()
            .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG))
            .on_response(DefaultOnResponse::new().level(Level::DEBUG))
            // A cause is logged where it is turned into an answer; a second line per 503 would drown it while a health check
            // polls.
            .on_failure(());
        let inner = service_fn(|request| self.shared(route, request).map(Ok::<_, Infallible>));
        let Ok(response) = trace.layer(inner).oneshot(request).await;
        response.map(Body::new)
    }

    /// Says to a page of another origin what it may do. Outside the limits, so that a page can read that it asked too often.
    fn shared(&self, route: Route, request: Request) -> impl Future<Output = Response> {
        let Some(cors) = self.cors.of(&request) else {
            return Either::Left(self.limited(route, request));
        };
        let inner =
            service_fn(move |request| self.limited(route, request).map(Ok::<_, Infallible>));
        let answer = cors.layer(inner).oneshot(request);
        Either::Right(Box::pin(answer.map(|Ok(response)| response)))
    }

    /// Refuses what is beyond the limits of the client, and says in the other answers what is left of them.
    fn limited(&self, route: Route, request: Request) -> impl Future<Output = Response> {
        let peer = Peer::of(request.extensions());
        let counted = self.limits.count(route, peer, request.headers());
        let answer = counted.map(|standing| {
            // Inside the trace, so that a panic is logged with its request like any other answer.
            let answer = AssertUnwindSafe(self.routes.clone().call(request)).catch_unwind();
            (answer, standing)
        });
        async move {
            let (mut response, standing) = match answer {
                Ok((answer, standing)) => {
                    let Ok(response) = answer.await.unwrap_or_else(panicked);
                    (response, standing)
                }
                Err(refusal) => {
                    self.metrics.refused(refusal.name);
                    let standing = refusal.standing(&self.limits);
                    (ApiError::from(refusal).into_response(), standing)
                }
            };
            standing.put(response.headers_mut());
            response
        }
    }
}

/// The 500 that a panic of a handler becomes.
fn panicked(cause: Box<dyn Any + Send>) -> Result<Response, Infallible> {
    let text = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a value that is not text");
    Ok(ApiError::Internal(anyhow::anyhow!("a handler panicked: {text}")).into_response())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use axum::{
        http::{StatusCode, header},
        routing::get,
    };

    use super::*;
    use crate::{auth::RateLimit, client::Proxies, rate_limit::RATE_LIMIT};

    /// Routes whose clients may ask so often.
    fn surrounded(burst: u32, is_traced: bool) -> Surrounded {
        let routes = Router::new()
            .route("/v1/quote", get(async || "a quote"))
            .route("/v1/pools", get(async || -> &str { panic!("by a test") }));
        let limit = RateLimit {
            per_minute: NonZeroU32::MIN,
            burst: NonZeroU32::new(burst).expect("above zero"),
        };
        let proxies = Proxies::new(Vec::new(), "x-forwarded-for");
        let limits = ClientLimits::new(limit, limit, proxies, true);
        let (origins, metrics) = (CorsOrigins::default(), Metrics::default());
        Surrounded {
            is_traced,
            ..Surrounded::new(routes, &origins, limits, metrics, RequestIds::new(7))
        }
    }

    fn from_a_page(path: &str) -> Request {
        let request = Request::get(path).header(header::ORIGIN, "https://shop.example");
        request.body(Body::empty()).expect("a request")
    }

    #[tokio::test]
    async fn what_surrounds_the_routes_shows_in_every_answer() {
        for is_traced in [false, true] {
            let routes = surrounded(2, is_traced);
            let paths = ["/v1/quote", "/v1/pools", "/v1/quote"];
            let expected = [
                StatusCode::OK,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::TOO_MANY_REQUESTS,
            ];
            for (number, (path, status)) in paths.into_iter().zip(expected).enumerate() {
                let answer = routes.answer(from_a_page(path)).await;
                assert_eq!(answer.status(), status, "{path}, traced {is_traced}");
                let id = format!("0000000000000007-{number}");
                assert_eq!(answer.headers()[X_REQUEST_ID], *id);
                assert_eq!(answer.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
                assert!(answer.headers().contains_key(RATE_LIMIT), "{path}");
            }
        }
    }
}
