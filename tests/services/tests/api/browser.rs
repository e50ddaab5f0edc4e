//! Web pages of other origins: which routes a browser lets them call, as configured.

use reqwest::{Method, Response, header};
use sluice_harness::api::Lines;

use crate::client::Client;

const PAGE: &str = "https://shop.example";

/// Routes that a page may call, each with its method.
const PUBLIC: [(&str, &str); 3] = [
    ("/v1/quote", "GET"),
    ("/v1/swap/transaction", "POST"),
    ("/v1/swap/instruction", "POST"),
];

impl Client {
    /// With these lines more in the section `[api]` of the configuration.
    pub async fn start_as(api: &str) -> Self {
        let lines = Lines {
            api,
            ..Lines::default()
        };
        Self::start_set(lines).await
    }

    /// What a browser asks before a page calls this route with JSON.
    async fn preflight(&self, path: &str, method: &str) -> Response {
        let request = self
            .http
            .request(Method::OPTIONS, format!("{}{path}", self.harness.url))
            .header(header::ORIGIN, PAGE)
            .header(header::ACCESS_CONTROL_REQUEST_METHOD, method)
            .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "content-type");
        request.send().await.expect("an answer")
    }

    /// The answer that a page gets.
    async fn get_from_page(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.harness.url));
        let request = request.header(header::ORIGIN, PAGE);
        request.send().await.expect("an answer")
    }
}

fn header_of<'a>(response: &'a Response, name: &header::HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn allowed(response: &Response) -> Option<&str> {
    header_of(response, &header::ACCESS_CONTROL_ALLOW_ORIGIN)
}

#[tokio::test]
async fn every_page_calls_the_public_routes_and_none_those_of_webhooks() {
    let client = Client::start().await;
    for (path, method) in PUBLIC {
        let preflight = client.preflight(path, method).await;
        assert_eq!(preflight.status(), 200, "{path}");
        assert_eq!(allowed(&preflight), Some("*"), "{path}");
        let kept = header_of(&preflight, &header::ACCESS_CONTROL_MAX_AGE);
        assert_eq!(kept, Some("7200"), "{path}");
        let methods = header_of(&preflight, &header::ACCESS_CONTROL_ALLOW_METHODS);
        assert!(methods.is_some_and(|methods| methods.contains(method)));
        let headers = header_of(&preflight, &header::ACCESS_CONTROL_ALLOW_HEADERS);
        assert!(headers.is_some_and(|headers| headers.contains("content-type")));
    }
    // A page reads refusals too: they say what to do.
    let refused = client.get_from_page("/v1/quote").await;
    assert_eq!(refused.status(), 400);
    assert_eq!(allowed(&refused), Some("*"));
    for path in ["/api/webhooks", "/api/webhooks/whk_1/test"] {
        let preflight = client.preflight(path, "POST").await;
        assert!(!preflight.status().is_success(), "{path}");
        assert_eq!(allowed(&preflight), None, "{path}");
        assert_eq!(allowed(&client.get_from_page(path).await), None, "{path}");
    }
}

#[tokio::test]
async fn a_list_of_origins_lets_its_pages_call_alone() {
    let client = Client::start_as("cors-origins = [\"https://shop.example\"]").await;
    let preflight = client.preflight("/v1/quote", "GET").await;
    assert_eq!(allowed(&preflight), Some(PAGE));
    // Without it a cache between them would give one page the answer of another.
    let varies = header_of(&preflight, &header::VARY);
    assert!(varies.is_some_and(|varies| varies.contains("origin")));
    let other = Client::start_as("cors-origins = [\"https://other.example\"]").await;
    assert_eq!(allowed(&other.preflight("/v1/quote", "GET").await), None);
    assert_eq!(allowed(&other.get_from_page("/v1/quote").await), None);
}

#[tokio::test]
async fn switched_off_no_page_calls_anything() {
    let client = Client::start_as("cors-origins = \"off\"").await;
    let preflight = client.preflight("/v1/quote", "GET").await;
    assert!(!preflight.status().is_success());
    assert_eq!(allowed(&preflight), None);
    assert_eq!(allowed(&client.get_from_page("/v1/quote").await), None);
}
