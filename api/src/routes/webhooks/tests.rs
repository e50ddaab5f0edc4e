//! Tests of the webhook routes over a real database, as a client sees them.

mod access;
mod backfill;
mod conditions;
mod definition;
mod edits;
mod history;
mod idls;
mod lifecycle;
mod relay;
mod sending;

use std::{num::NonZeroU32, path::Path, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use service_kit::{CancellationToken, Clock};
use sluice_store::{
    AddressLimits, BodyTemplate, Commit, Commitment, EventKind, FilterLimits, MessageId,
    MessageKind, NewMessage, Store, Timestamp, WebhookId,
};
use sluice_webhook_client::{Client, Reach};
use solana_pubkey::Pubkey;
use tempfile::TempDir;
use tower::ServiceExt;

use super::{Settings, router};
use crate::auth::{Authenticator, CallerLimiter, RateLimit};

/// Most programs of a webhook in these tests.
const MAX_PROGRAMS: usize = 10;

/// Most webhooks of one owner in these tests.
const MAX_WEBHOOKS: u32 = 5;

/// Requests of one API key at once in these tests.
const BURST: u32 = 20;

/// Tests of one caller at once in these tests.
const MAX_TESTS: u32 = 3;

/// Deadline of a test message: longer than a receiver takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

struct Api {
    router: Router,
    store: Store,
    shutdown: CancellationToken,
    folder: TempDir,
}

async fn api(allow_http_loopback: bool) -> Api {
    api_at(allow_http_loopback, true).await
}

async fn api_at(allow_http_loopback: bool, keyless: bool) -> Api {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = open(folder.path()).await;
    let settings = Settings {
        reach: if allow_http_loopback {
            Reach::PublicAndLoopback
        } else {
            Reach::Public
        },
        max_webhooks: MAX_WEBHOOKS,
        addresses: FilterLimits {
            accounts: 20,
            programs: MAX_PROGRAMS,
            token_owners: MAX_PROGRAMS,
        },
        delivery_timeout: Duration::from_secs(15),
        secret_overlap: Duration::from_secs(24 * 3600),
        tests: RateLimit {
            per_minute: NonZeroU32::new(1).expect("not zero"),
            burst: NonZeroU32::new(MAX_TESTS).expect("not zero"),
        },
    };
    let limit = RateLimit {
        per_minute: NonZeroU32::new(1).expect("not zero"),
        burst: NonZeroU32::new(BURST).expect("not zero"),
    };
    let authenticator = Authenticator::new(store.clone(), CallerLimiter::new(limit), keyless);
    let client = Client::new(DEADLINE, settings.reach).expect("TLS");
    let shutdown = CancellationToken::new();
    Api {
        router: router(
            store.clone(),
            settings,
            client,
            authenticator,
            Clock::system(),
            shutdown.clone(),
        ),
        store,
        shutdown,
        folder,
    }
}

async fn open(folder: &Path) -> Store {
    Store::open(&folder.join("sluice.db")).await.expect("opens")
}

impl Api {
    async fn send(&self, request: Request<Body>) -> Response {
        self.router
            .clone()
            .oneshot(request)
            .await
            .expect("infallible")
    }

    async fn raw(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        self.with(method, path, body, &[]).await
    }

    async fn with(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).expect("a request")).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        read(self.raw(method, path, body).await).await
    }

    async fn post(&self, body: &Value) -> (StatusCode, Value) {
        self.call(Method::POST, "/api/webhooks", Some(body)).await
    }

    /// Path and secret of a new webhook.
    async fn created(&self, body: &Value) -> (String, String) {
        let (status, created) = self.post(body).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let id = text(&created["webhook"]["id"]);
        (format!("/api/webhooks/{id}"), text(&created["secret"]))
    }

    /// Stores `count` messages for a webhook, as an indexer would, and returns their ids.
    async fn messages(&self, path: &str, count: u8) -> Vec<MessageId> {
        self.store_messages(path, count, &u64::MAX.to_string())
            .await
    }

    /// Stores a message of more than so many bytes.
    async fn message_of(&self, path: &str, bytes: usize) {
        self.store_messages(path, 1, &"7".repeat(bytes)).await;
    }

    async fn store_messages(&self, path: &str, count: u8, amount: &str) -> Vec<MessageId> {
        let webhook = id_of(path);
        let messages: Vec<_> = (1..=count)
            .map(|number| NewMessage {
                id: MessageId::from_bytes([number; 32]),
                webhook: webhook.clone(),
                kind: MessageKind::Event(EventKind::Transaction),
                commitment: Commitment::Confirmed,
                slot: 7,
                order_key: None,
                body: BodyTemplate::new(
                    format!(r#"{{"type":"transaction","webhookId":"{webhook}","sequence":"#),
                    format!(r#","data":{{"amount":{amount}}}}}"#).into(),
                ),
            })
            .collect();
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, now());
        self.store.commit(&commit).await.expect("stores");
        messages.into_iter().map(|message| message.id).collect()
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("a short body");
    (
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    )
}

fn now() -> Timestamp {
    Timestamp::from(Clock::system().now())
}

fn id_of(path: &str) -> WebhookId {
    let id = path.rsplit('/').next().expect("never empty");
    WebhookId::parse(id).expect("an id")
}

fn address(number: u32) -> String {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Pubkey::new_from_array(bytes).to_string()
}

fn valid() -> Value {
    json!({
        "url": "https://example.com/hook",
        "events": ["programEvent", "accountChange"],
        "filters": { "accounts": [address(1), address(2), address(1)], "programs": [address(3)] },
    })
}
