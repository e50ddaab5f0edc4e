//! Tests of the routes of API keys over a real database: a key gives no more than it has, and revoking opens nothing.

use std::num::NonZeroU32;

use axum::{
    body::{Body, to_bytes},
    http::{Extensions, HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use sluice_store::{ApiKeyId, ApiKeySecret, NewApiKey, Quotas, Scope, Scopes, Timestamp};
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;
use crate::{
    auth::{CSRF_TOKEN, CallerLimiter, RateLimit, SESSION_COOKIE},
    client::Source,
};

const PATH: &str = "/api/keys";

const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

struct Site {
    router: Router,
    authenticator: Authenticator,
    store: Store,
    _folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db")).await;
        let store = store.expect("opens");
        let limit = RateLimit {
            per_minute: NonZeroU32::MAX,
            burst: NonZeroU32::MAX,
        };
        let authenticator = Authenticator::new(store.clone(), CallerLimiter::new(limit), true);
        Self {
            router: router(store.clone(), authenticator.clone(), Clock::system()),
            authenticator,
            store,
            _folder: folder,
        }
    }

    /// A key made on the server: its id and its secret.
    async fn key(&self, number: u8, scopes: Scopes, days: Option<u32>) -> (ApiKeyId, String) {
        let secret = ApiKeySecret::from_random([number; 32]);
        let now = Timestamp::from(Clock::system().now());
        let new = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: format!("key {number}"),
            hash: secret.hash(),
            created: now,
            expires: days.map(|days| now.after(DAY.saturating_mul(days))),
            scopes,
        };
        self.store.create_api_key(&new).await.expect("stores");
        (new.id, secret.expose().to_owned())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, String)],
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).expect("a request");
        let answer = self.router.clone().oneshot(request).await;
        answer.expect("infallible")
    }

    async fn by(
        &self,
        secret: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let bearer = [("authorization", format!("Bearer {secret}"))];
        read(self.send(method, path, body, &bearer).await).await
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await;
    let value = serde_json::from_slice(&bytes.expect("a body")).unwrap_or(Value::Null);
    (status, value)
}

fn named(name: &str) -> Value {
    json!({ "name": name, "scopes": ["webhooks:read"] })
}

#[tokio::test]
async fn a_key_is_made_shown_once_used_and_revoked() {
    let site = Site::new().await;
    let (own, operator) = site.key(1, Scopes::only(Scope::ALL), None).await;
    let body = json!({
        "name": "billing", "scopes": ["webhooks:read", "keys:write"], "expiresInDays": 7, "quotas": { "webhooks": 3 },
    });
    let bearer = [("authorization", format!("Bearer {operator}"))];
    let made = site.send(Method::POST, PATH, Some(&body), &bearer).await;
    assert_eq!(made.headers()[header::CACHE_CONTROL], "no-store");
    let (status, made) = read(made).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(
        made["key"]["scopes"],
        json!(["webhooks:read", "keys:write"])
    );
    assert_eq!(made["key"]["quotas"]["webhooks"], 3);
    assert!(made["key"]["expires"].is_string());
    let secret = made["secret"].as_str().expect("a secret");

    let (status, listed) = site.by(secret, Method::GET, PATH, None).await;
    assert_eq!(status, StatusCode::OK, "it is accepted at once");
    let text = listed.to_string();
    assert!(!text.contains(secret) && !text.contains("secret"), "{text}");
    assert_eq!(listed["keys"][1], made["key"]);

    let (status, problem) = site
        .by(&operator, Method::POST, PATH, Some(&named("billing")))
        .await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("name"))
    );

    let id = made["key"]["id"].as_str().expect("an id");
    let path = format!("{PATH}/{id}");
    let (status, _) = site.by(&operator, Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = site.by(secret, Method::GET, PATH, None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "at once");
    let again = [&path, "/api/keys/billing", "/api/keys/key%20with%20blanks"];
    for path in again {
        let (status, problem) = site.by(&operator, Method::DELETE, path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {problem}");
    }

    let last = format!("{PATH}/{own}");
    let (status, _) = site.by(&operator, Method::DELETE, &last, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "also itself");
    for method in [Method::GET, Method::POST] {
        let (status, _) = read(site.send(method, PATH, Some(&named("a")), &[]).await).await;
        assert_eq!(
            status,
            StatusCode::UNAUTHORIZED,
            "the last one opens nothing"
        );
    }
}

#[tokio::test]
async fn only_keys_with_the_scope_reach_those_of_others_and_nobody_makes_the_first_here() {
    let site = Site::new().await;
    let (status, none) = read(site.send(Method::GET, PATH, None, &[]).await).await;
    assert_eq!((status, none), (StatusCode::OK, json!({ "keys": [] })));
    let first = site
        .send(Method::POST, PATH, Some(&named("first")), &[])
        .await;
    let (status, problem) = read(first).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    assert_eq!(problem["scope"], "keys:write");

    let (id, tenant) = site.key(1, Scopes::ALL, None).await;
    let (_, operator) = site.key(2, Scopes::only([Scope::KeysWrite]), None).await;
    for (method, path, body) in [
        (Method::GET, PATH.to_owned(), None),
        (Method::POST, PATH.to_owned(), Some(named("more"))),
        (Method::DELETE, format!("{PATH}/{id}"), None),
    ] {
        let (status, problem) = site.by(&tenant, method, &path, body.as_ref()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {problem}");
        assert_eq!(problem["code"], "missing_scope");
    }
    let (status, problem) = site
        .by(&operator, Method::POST, PATH, Some(&named("more")))
        .await;
    assert_eq!(
        status,
        StatusCode::FORBIDDEN,
        "what it has not itself: {problem}"
    );
    assert_eq!(problem["scope"], "webhooks:read");
    let keys = site.store.api_keys().await.expect("reads");
    assert_eq!(keys.len(), 2, "nothing was made");
}

#[tokio::test]
async fn a_key_gives_no_later_end_and_no_higher_limit_than_its_own() {
    let site = Site::new().await;
    let (id, operator) = site.key(1, Scopes::only(Scope::ALL), Some(10)).await;
    let own = Quotas {
        webhooks: Some(5),
        addresses: None,
        stored_mib: Some(64),
        messages_per_second: Some(9),
        delivery_slots: None,
    };
    let limited = site.store.set_quotas(id.as_str(), own).await;
    assert!(limited.expect("writes"));
    for (change, field) in [
        (json!({ "expiresInDays": 11 }), "expiresInDays"),
        (json!({ "expiresInDays": 0 }), "expiresInDays"),
        (json!({ "expiresInDays": 3651 }), "expiresInDays"),
        (json!({ "quotas": { "webhooks": 6 } }), "quotas.webhooks"),
        (json!({ "quotas": { "storedMib": 0 } }), "quotas.storedMib"),
        (json!({ "quotas": { "bytes": 1 } }), "bytes"),
        (json!({ "scopes": [] }), "scopes"),
        (json!({ "scopes": ["swap"] }), "scopes[0]"),
        (json!({ "name": " a" }), "name"),
        (json!({ "name": "key_1" }), "name"),
        (json!({ "secret": "mine" }), "secret"),
    ] {
        let mut body = named("more");
        let members = change.as_object().expect("members").clone();
        body.as_object_mut().expect("an object").extend(members);
        let (status, problem) = site.by(&operator, Method::POST, PATH, Some(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{change}: {problem}");
        let named = problem["field"].as_str().expect("a field");
        assert!(named.ends_with(field), "{change}: {problem}");
    }
    let (status, made) = site
        .by(&operator, Method::POST, PATH, Some(&named("more")))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let keys = site.store.api_keys().await.expect("reads");
    assert_eq!(keys.len(), 2, "refusals made nothing");
    assert_eq!(keys[1].quotas, own, "unless asked for less, its own");
    assert_eq!(keys[1].expires, keys[0].expires);
}

#[tokio::test]
async fn a_session_changes_keys_with_its_token_alone() {
    let site = Site::new().await;
    let (_, operator) = site.key(1, Scopes::only(Scope::ALL), None).await;
    let name = site
        .authenticator
        .sign_in(&operator, [[9; 32], [8; 32]])
        .await;
    let name = name.expect("opens").expect("a session");
    let cookie = ("cookie", format!("{SESSION_COOKIE}={name}"));
    let value = cookie.1.parse().expect("a value");
    let headers = HeaderMap::from_iter([(header::COOKIE, value)]);
    let source = Source::of(&headers, &Extensions::new());
    let page = site.authenticator.page_session(&headers, source);
    let token = page.await.expect("shown").expect("a session").csrf_token;
    let body = named("from a page");
    let made = site.send(
        Method::POST,
        PATH,
        Some(&body),
        std::slice::from_ref(&cookie),
    );
    assert_eq!(made.await.status(), StatusCode::UNAUTHORIZED, "without it");
    let header = CSRF_TOKEN;
    let with = [cookie, (header.as_str(), token)];
    let made = site.send(Method::POST, PATH, Some(&body), &with).await;
    assert_eq!(made.status(), StatusCode::CREATED);
}
