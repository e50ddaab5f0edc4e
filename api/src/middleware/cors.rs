//! CORS: lets web pages call `/v1/*` from a browser, and no other route.

use std::time::Duration;

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, Method, header},
};
use sluice_config::{CorsOrigins, CorsSwitch};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{
    idempotency::IDEMPOTENCY_KEY,
    rate_limit::{RATE_LIMIT, RATE_LIMIT_POLICY},
    request_id::X_REQUEST_ID,
};

/// The routes that web pages may call. Those of webhooks take an API key, which belongs in no page.
const PUBLIC: &str = "/v1/";

/// How long a browser may remember what it was allowed: two hours, the most that any of them does.
const REMEMBERED: Duration = Duration::from_secs(2 * 60 * 60);

/// What the answers' headers say that a page may want to read.
const READABLE: [HeaderName; 4] = [
    header::RETRY_AFTER,
    RATE_LIMIT,
    RATE_LIMIT_POLICY,
    X_REQUEST_ID,
];

/// What is said to pages that call the public routes.
pub struct PublicCors(Option<CorsLayer>);

impl PublicCors {
    /// As configured. An origin that is no header is none that a browser sends.
    #[must_use]
    pub fn new(origins: &CorsOrigins) -> Self {
        let allowed = match origins {
            CorsOrigins::All(CorsSwitch::Off) => return Self(None),
            CorsOrigins::All(CorsSwitch::Any) => AllowOrigin::any(),
            CorsOrigins::These(origins) => {
                let headers = origins.iter().map(|origin| HeaderValue::from_str(origin));
                AllowOrigin::list(headers.filter_map(Result::ok))
            }
        };
        let layer = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers([header::CONTENT_TYPE, X_REQUEST_ID, IDEMPOTENCY_KEY])
            .expose_headers(READABLE)
            .max_age(REMEMBERED);
        Self(Some(layer))
    }

    /// What is said to the page that makes this request. Most are made by none, and those are not searched for answers to one.
    #[must_use]
    pub fn of<B>(&self, request: &Request<B>) -> Option<&CorsLayer> {
        self.0.as_ref().filter(|_| {
            request.headers().contains_key(header::ORIGIN)
                && request.uri().path().starts_with(PUBLIC)
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::StatusCode, response::Response, routing::get};
    use tower::{Layer, ServiceExt};

    use super::*;

    const PAGE: &str = "https://shop.example";

    /// The answer to a request from a page of another origin; with `asks` the preflight of that method.
    async fn answer(origins: &CorsOrigins, path: &str, asks: Option<&str>) -> Response {
        let routes = Router::new()
            .route("/v1/quote", get(async || "a quote"))
            .route("/api/webhooks", get(async || "webhooks"));
        let mut request = Request::builder().uri(path).header(header::ORIGIN, PAGE);
        if let Some(method) = asks {
            request = request
                .method(Method::OPTIONS)
                .header(header::ACCESS_CONTROL_REQUEST_METHOD, method);
        }
        let request = request.body(Body::empty()).expect("a request");
        let cors = PublicCors::new(origins);
        let answer = match cors.of(&request) {
            Some(cors) => cors.layer(routes).oneshot(request).await,
            None => routes.oneshot(request).await,
        };
        answer.expect("an answer")
    }

    fn allowed(response: &Response) -> Option<&str> {
        let allowed = response
            .headers()
            .get(header::ACCESS_CONTROL_ALLOW_ORIGIN)?;
        allowed.to_str().ok()
    }

    #[tokio::test]
    async fn every_page_may_call_the_public_routes_and_remembers_that() {
        let any = CorsOrigins::default();
        let preflight = answer(&any, "/v1/quote", Some("GET")).await;
        assert_eq!(preflight.status(), StatusCode::OK);
        assert_eq!(allowed(&preflight), Some("*"));
        let remembered = &preflight.headers()[header::ACCESS_CONTROL_MAX_AGE];
        assert_eq!(remembered, "7200");
        assert_eq!(allowed(&answer(&any, "/v1/quote", None).await), Some("*"));
    }

    #[tokio::test]
    async fn no_page_may_call_the_webhook_routes() {
        let any = CorsOrigins::default();
        for asks in [None, Some("GET")] {
            let answer = answer(&any, "/api/webhooks", asks).await;
            assert_eq!(allowed(&answer), None, "{asks:?}");
        }
    }

    #[tokio::test]
    async fn a_list_allows_its_pages_alone_and_off_allows_none() {
        let these = |origin: &str| CorsOrigins::These(vec![origin.to_owned()]);
        let listed = answer(&these(PAGE), "/v1/quote", None).await;
        assert_eq!(allowed(&listed), Some(PAGE));
        let other = answer(&these("https://other.example"), "/v1/quote", None).await;
        assert_eq!(allowed(&other), None);
        let off = CorsOrigins::All(CorsSwitch::Off);
        let preflight = answer(&off, "/v1/quote", Some("GET")).await;
        assert_eq!(allowed(&preflight), None);
    }
}
