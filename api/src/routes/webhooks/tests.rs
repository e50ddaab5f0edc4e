//! The webhook routes over a real database, as a client sees them.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use sluice_store::Store;
use solana_pubkey::Pubkey;
use tempfile::TempDir;
use tower::ServiceExt;

use super::{Settings, definition, router};

struct Api {
    router: Router,
    folder: TempDir,
}

async fn api(allow_http_loopback: bool) -> Api {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Store::open(&folder.path().join("sluice.db"))
        .await
        .expect("opens");
    Api {
        router: router(
            store,
            Settings {
                allow_http_loopback,
            },
        ),
        folder,
    }
}

impl Api {
    async fn raw(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .expect("a request");
        self.router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible")
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let response = self.raw(method, path, body).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 1 << 20)
            .await
            .expect("a short body");
        (
            status,
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        )
    }

    async fn post(&self, body: &Value) -> (StatusCode, Value) {
        self.call(Method::POST, "/api/webhooks", Some(body)).await
    }
}

fn key(number: u32) -> String {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Pubkey::new_from_array(bytes).to_string()
}

fn valid() -> Value {
    json!({
        "url": "https://example.com/hook",
        "events": ["programEvent", "accountChange"],
        "filters": { "accounts": [key(1), key(2), key(1)], "programs": [key(3)] },
    })
}

#[tokio::test]
async fn a_webhook_is_created_read_replaced_and_deleted() {
    let api = api(false).await;
    let response = api.raw(Method::POST, "/api/webhooks", Some(&valid())).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    let location = response.headers()[header::LOCATION]
        .to_str()
        .expect("text")
        .to_owned();
    let bytes = to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("a short body");
    let created: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(
        created["secret"]
            .as_str()
            .expect("shown once")
            .starts_with("whsec_")
    );
    assert_eq!(created.as_object().expect("an object").len(), 2);

    let (status, read) = api.call(Method::GET, &location, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(read, created["webhook"]);
    let fields: Vec<_> = read
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert_eq!(fields.len(), 7, "{fields:?}");
    assert_eq!(read["events"], json!(["accountChange", "programEvent"]));
    assert_eq!(
        read["filters"],
        json!({ "accounts": [key(1), key(2)], "programs": [key(3)] })
    );
    assert_eq!(
        (&read["active"], &read["lastTriggered"]),
        (&json!(true), &Value::Null)
    );
    assert!(read["created"].as_str().expect("a date").ends_with('Z'));

    let mut changed = valid();
    changed["active"] = json!(false);
    changed["filters"] = json!({ "programs": [key(4)] });
    let (status, replaced) = api.call(Method::PUT, &location, Some(&changed)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (&replaced["id"], &replaced["active"]),
        (&read["id"], &json!(false))
    );
    assert_eq!(
        replaced["filters"],
        json!({ "accounts": [], "programs": [key(4)] })
    );
    assert_eq!(replaced["created"], read["created"]);
    assert!(replaced.get("secret").is_none());

    let response = api.raw(Method::DELETE, &location, None).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    for (method, body) in [
        (Method::GET, None),
        (Method::PUT, Some(valid())),
        (Method::DELETE, None),
    ] {
        let (status, problem) = api.call(method, &location, body.as_ref()).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("not_found"))
        );
    }
}

#[tokio::test]
async fn lists_page_through_all_webhooks() {
    let api = api(false).await;
    for _ in 0..3 {
        assert_eq!(api.post(&valid()).await.0, StatusCode::CREATED);
    }
    let (_, first) = api.call(Method::GET, "/api/webhooks?limit=2", None).await;
    assert_eq!(first["webhooks"].as_array().map(Vec::len), Some(2));
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let (_, last) = api
        .call(
            Method::GET,
            &format!("/api/webhooks?limit=2&cursor={cursor}"),
            None,
        )
        .await;
    assert_eq!(last["webhooks"].as_array().map(Vec::len), Some(1));
    assert_eq!(last["nextCursor"], Value::Null);
    for bad in [
        "limit=0",
        "limit=101",
        "limit=x",
        "cursor=x",
        "cursor=-1",
        "page=2",
    ] {
        let (status, _) = api
            .call(Method::GET, &format!("/api/webhooks?{bad}"), None)
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn every_fault_is_refused_and_its_field_named() {
    let api = api(false).await;
    let faults = [
        ("url", json!(null), "url"),
        ("url", json!("example.com"), "url"),
        ("url", json!("http://example.com/"), "url"),
        ("url", json!("http://127.0.0.1/"), "url"),
        ("url", json!("ftp://example.com/"), "url"),
        ("url", json!("https://user@example.com/"), "url"),
        ("url", json!("https://:pass@example.com/"), "url"),
        ("url", json!("https://example.com/#top"), "url"),
        (
            "url",
            json!(format!(
                "https://example.com/{}",
                "a".repeat(definition::MAX_URL_BYTES)
            )),
            "url",
        ),
        ("url", json!(7), "url"),
        ("events", json!(null), "events"),
        ("events", json!([]), "events"),
        ("events", json!(["transaction", "swap"]), "events[1]"),
        ("events", json!(["transaction", "transaction"]), "events[1]"),
        ("filters", json!(null), "filters"),
        ("filters", json!({}), "filters"),
        (
            "filters",
            json!({ "accounts": [key(1), "x"] }),
            "filters.accounts[1]",
        ),
        (
            "filters",
            json!({ "programs": [""] }),
            "filters.programs[0]",
        ),
        ("active", json!("yes"), "active"),
    ];
    for (field, value, named) in faults {
        let mut body = valid();
        body[field] = value.clone();
        let (status, problem) = api.post(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field} = {value}");
        assert_eq!(
            problem["field"],
            json!(named),
            "{field} = {value}: {problem}"
        );
    }
    let (_, page) = api.call(Method::GET, "/api/webhooks", None).await;
    assert_eq!(page["webhooks"], json!([]), "nothing was stored");
}

#[tokio::test]
async fn unknown_fields_are_refused_by_name() {
    let api = api(false).await;
    let mut misspelt = valid();
    misspelt["acitve"] = json!(false);
    let (status, problem) = api.post(&misspelt).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        problem["detail"].as_str().expect("text").contains("acitve"),
        "{problem}"
    );
    let mut nested = valid();
    nested["filters"]["mints"] = json!([]);
    let (status, problem) = api.post(&nested).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        problem["detail"].as_str().expect("text").contains("mints"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_webhook_that_can_never_fire_is_refused() {
    let api = api(false).await;
    let body = json!({
        "url": "https://example.com/hook",
        "events": ["programEvent"],
        "filters": { "accounts": [key(1)] },
    });
    let (status, problem) = api.post(&body).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("filters.programs"))
    );
}

#[tokio::test]
async fn the_number_of_programs_is_limited() {
    let api = api(false).await;
    let count = u32::try_from(definition::MAX_PROGRAMS).expect("small");
    let mut body = valid();
    body["filters"] = json!({ "programs": (0..count).map(key).collect::<Vec<_>>() });
    assert_eq!(api.post(&body).await.0, StatusCode::CREATED);
    body["filters"] = json!({ "programs": (0..=count).map(key).collect::<Vec<_>>() });
    let (status, problem) = api.post(&body).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("filters.programs"))
    );
}

#[tokio::test]
async fn plain_http_needs_the_setting_and_a_loopback_address() {
    let api = api(true).await;
    let mut body = valid();
    for good in [
        "http://127.0.0.1:9/hook",
        "http://localhost/",
        "http://[::1]:80/",
        "https://example.com/",
    ] {
        body["url"] = json!(good);
        assert_eq!(api.post(&body).await.0, StatusCode::CREATED, "{good}");
    }
    for bad in [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://localhost.example.com/",
        "http://0.0.0.0/",
    ] {
        body["url"] = json!(bad);
        assert_eq!(api.post(&body).await.0, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn a_vanished_database_is_a_passing_fault() {
    let api = api(false).await;
    std::fs::remove_file(api.folder.path().join("sluice.db")).expect("deletes");
    let (status, problem) = api.post(&valid()).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("store_unavailable"))
    );
    assert_eq!(problem["retryable"], true);
}
