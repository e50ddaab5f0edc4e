//! Middleware around the router: request ids, counts, traces, CORS, limits of clients, panics as 500.

mod cors;

use std::{
    any::Any,
    convert::Infallible,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    time::Instant,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    http::{HeaderValue, Method},
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
    client_limits::{ClientLimits, Refusal, Standing},
    error::ApiError,
    metrics::{Metrics, Route},
    request_id::{self, RequestIds, X_REQUEST_ID},
};

/// Answers a quote for what follows the question mark of its path, as the route of quotes does.
pub type Quotes = Box<dyn Fn(&str) -> Response + Send + Sync>;

/// The routes with what every request passes on its way to them: one for all requests, since layers in the sense of tower
/// are cloned for each, and move what they hold from one to the next.
pub struct Surrounded {
    routes: Router,
    /// The one of them that is asked most, by itself.
    quotes: Quotes,
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
    /// Surrounds the routes, of which `quotes` answers one. Whether requests are traced is asked of the log once, here.
    #[must_use]
    pub fn new(
        routes: Router,
        quotes: Quotes,
        origins: &CorsOrigins,
        limits: ClientLimits,
        metrics: Metrics,
        ids: RequestIds,
    ) -> Self {
        Self {
            routes,
            quotes,
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
        let response = request_id::under(id.clone(), pin!(answer)).await;
        self.counted(response, id, route, begun)
    }

    /// The answer to a plain request for a quote that came from `peer`, as [`Self::answer`] would give it; `None` for every
    /// other request. Quotes are asked for most, and to find their route among all, and to wait for what is there at once,
    /// takes twice as long as to price them.
    pub fn quote<B: HttpBody>(&self, request: &Request<B>, peer: IpAddr) -> Option<Response> {
        let begun = Instant::now();
        let route = Route::of(request.uri().path());
        let is_plain = route == Route::Quote
            && request.method() == Method::GET
            && request.body().is_end_stream()
            && self.cors.of(request).is_none()
            && !self.is_traced;
        if !is_plain {
            return None;
        }
        let id = self.ids.of(request.headers());
        let response = request_id::over(id.clone(), || {
            let (mut response, standing) = match self.limits.count(route, peer, request.headers()) {
                Ok(standing) => {
                    let query = request.uri().query().unwrap_or_default();
                    let answer = catch_unwind(AssertUnwindSafe(|| (self.quotes)(query)));
                    (answer.unwrap_or_else(panicked), standing)
                }
                Err(refusal) => self.refused(refusal),
            };
            standing.put(response.headers_mut());
            response
        });
        Some(self.counted(response, id, route, begun))
    }

    /// The answer with the id of its request, once it is counted.
    fn counted(
        &self,
        mut response: Response,
        id: HeaderValue,
        route: Route,
        begun: Instant,
    ) -> Response {
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
                    let Ok(response) = answer.await.unwrap_or_else(|cause| Ok(panicked(cause)));
                    (response, standing)
                }
                Err(refusal) => self.refused(refusal),
            };
            standing.put(response.headers_mut());
            response
        }
    }

    /// The answer to what is beyond a limit, and what it says of that.
    fn refused(&self, refusal: Refusal) -> (Response, Standing) {
        self.metrics.refused(refusal.name);
        let standing = refusal.standing(&self.limits);
        (ApiError::from(refusal).into_response(), standing)
    }
}

/// The 500 that a panic of a handler becomes.
fn panicked(cause: Box<dyn Any + Send>) -> Response {
    let text = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("a value that is not text");
    ApiError::Internal(anyhow::anyhow!("a handler panicked: {text}")).into_response()
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, num::NonZeroU32};

    use axum::{
        body::to_bytes,
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
        let quotes: Quotes = Box::new(|query| {
            assert_ne!(query, "panic", "by a test");
            "a quote".into_response()
        });
        let ids = RequestIds::new(7);
        Surrounded {
            is_traced,
            ..Surrounded::new(routes, quotes, &origins, limits, metrics, ids)
        }
    }

    fn plain(path: &str) -> Request {
        Request::get(path).body(Body::empty()).expect("a request")
    }

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

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

    #[tokio::test]
    async fn a_plain_quote_is_surrounded_like_every_answer() {
        let routes = surrounded(3, false);
        let expected = [
            ("/v1/quote?amount=1", StatusCode::OK),
            ("/v1/quote?panic", StatusCode::INTERNAL_SERVER_ERROR),
            ("/v1/quote", StatusCode::OK),
            ("/v1/quote", StatusCode::TOO_MANY_REQUESTS),
        ];
        for (number, (path, status)) in expected.into_iter().enumerate() {
            let answer = routes.quote(&plain(path), PEER).expect("a plain quote");
            assert_eq!(answer.status(), status, "{path}");
            let id = format!("0000000000000007-{number}");
            assert_eq!(answer.headers()[X_REQUEST_ID], *id);
            assert!(answer.headers().contains_key(RATE_LIMIT), "{path}");
        }
        // Both ways count against one limit, and answer the same.
        let refused = routes.answer(plain("/v1/quote")).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let routes = surrounded(9, false);
        let mut known = routes.quote(&plain("/v1/quote"), PEER).expect("plain");
        let mut answer = routes.answer(plain("/v1/quote")).await;
        for answer in [&mut known, &mut answer] {
            let headers = answer.headers_mut();
            headers.remove(X_REQUEST_ID).expect("an id");
            headers.remove(RATE_LIMIT).expect("what is left");
            // What the connection adds where the route has not.
            headers.remove(header::CONTENT_LENGTH);
        }
        assert_eq!(known.headers(), answer.headers());
        let text = async |answer: Response| to_bytes(answer.into_body(), 99).await.expect("text");
        assert_eq!(text(known).await, text(answer).await);
    }

    #[test]
    fn what_is_more_than_a_plain_quote_is_left_to_the_routes() {
        let routes = surrounded(9, false);
        let request = |method: Method, path: &str, body: &'static str| {
            let request = Request::builder().method(method).uri(path);
            request.body(Body::from(body)).expect("a request")
        };
        for other in [
            request(Method::HEAD, "/v1/quote", ""),
            request(Method::OPTIONS, "/v1/quote", ""),
            request(Method::POST, "/v1/quote", ""),
            request(Method::GET, "/v1/quote/", ""),
            request(Method::GET, "/v1/quote/stream", ""),
            request(Method::GET, "/v1/quote", "a body"),
            from_a_page("/v1/quote"),
        ] {
            assert!(routes.quote(&other, PEER).is_none(), "{other:?}");
        }
        let traced = surrounded(9, true);
        assert!(traced.quote(&plain("/v1/quote"), PEER).is_none());
    }
}
