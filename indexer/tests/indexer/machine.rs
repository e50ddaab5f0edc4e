//! The indexer under test and what surrounds it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap};
use serde_json::Value;
use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_geyser::{
    Request, SlotStatus, Update,
    scripted::{Connection, ScriptedServer},
};
use sluice_store::{
    Access, EventKind, Filters, NewWebhook, Secret, Store, Timestamp, WebhookDefinition, WebhookId,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

use crate::updates::{block, program, slot};

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("a step hangs")
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A stream, a database and a receiver, and perhaps an indexer between them.
pub struct Machine {
    pub server: ScriptedServer,
    pub store: Store,
    pub path: PathBuf,
    pub receiver_url: String,
    pub received: Received,
    /// Removed when the machine is.
    _folder: TempDir,
}

/// A running indexer.
pub struct Indexer {
    pub health: SocketAddr,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

async fn receiver() -> (String, Received) {
    let received = Received::default();
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let record = async |State(received): State<Received>, headers: HeaderMap, body: Bytes| {
        received.lock().expect("not poisoned").push((headers, body));
    };
    let router = Router::new()
        .fallback(record)
        .with_state(Arc::clone(&received));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    listener.local_addr().expect("bound")
}

impl Machine {
    pub async fn new() -> Self {
        let server = ScriptedServer::start().await.expect("listens");
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let store = Store::open(&path).await.expect("opens");
        let (receiver_url, received) = receiver().await;
        Self {
            server,
            store,
            path,
            receiver_url,
            received,
            _folder: folder,
        }
    }

    /// Starts an indexer.
    pub async fn start(&self) -> Indexer {
        let (health, shutdown) = (free_address().await, CancellationToken::new());
        let config = config(self.server.endpoint().url.as_str(), &self.path, health);
        let running = tokio::spawn(sluice_indexer::run(config, shutdown.clone()));
        Indexer {
            health,
            shutdown,
            running,
        }
    }

    /// What a webhook on everything about the program asks for.
    pub fn definition(&self) -> WebhookDefinition {
        WebhookDefinition::new(
            self.receiver_url.clone(),
            EventKind::ALL.into_iter().collect(),
            Filters {
                accounts: Vec::new(),
                programs: vec![program()],
            },
        )
    }

    pub async fn create(&self, number: u8, definition: WebhookDefinition) -> WebhookId {
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Access::All,
            relay_until: None,
            definition,
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from(SystemTime::now()),
        };
        self.store
            .create_webhook(&new, 10)
            .await
            .expect("created")
            .id
    }

    pub async fn webhook(&self, number: u8) -> WebhookId {
        self.create(number, self.definition()).await
    }

    /// Opens the first connection, on which slot 10 is confirmed, and returns the name of its slots filter.
    pub async fn listening(&mut self) -> (Connection, String) {
        let (connection, request) = self.accept().await;
        assert_eq!(request.from_slot, None, "it starts with what comes");
        let name = request.slots.expect("slots are always asked for");
        send(&connection, [block(10)]).await;
        send(&connection, settle(&name, 10)).await;
        (connection, name)
    }

    /// The next connection and what it asks for.
    pub async fn accept(&mut self) -> (Connection, Request) {
        let mut connection = soon(self.server.accept()).await;
        let request = request(&mut connection).await;
        (connection, request)
    }

    /// What was received, in order of arrival, once there are so many.
    pub async fn received(&self, count: usize) -> Vec<(HeaderMap, Bytes)> {
        let wait = async {
            while self.received.lock().expect("not poisoned").len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        };
        soon(wait).await;
        self.received.lock().expect("not poisoned").clone()
    }

    /// The bodies received, by webhook and sequence, once there are so many. No more must come soon.
    pub async fn bodies(&self, count: usize) -> Vec<Value> {
        self.received(count).await;
        sleep(Duration::from_millis(100)).await;
        let received = self.received(count).await;
        let mut bodies: Vec<Value> = received
            .iter()
            .map(|(_, body)| serde_json::from_slice(body).expect("JSON"))
            .collect();
        assert_eq!(bodies.len(), count, "{bodies:#?}");
        bodies.sort_by_key(|body| {
            let webhook = body["webhookId"].as_str().map(str::to_owned);
            (webhook, body["sequence"].as_u64())
        });
        bodies
    }
}

impl Indexer {
    pub async fn get(&self, path: &str) -> reqwest::Response {
        let url = format!("http://{}{path}", self.health);
        let client = reqwest::Client::new();
        let wait = async {
            loop {
                if let Ok(response) = client.get(&url).send().await {
                    return response;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        soon(wait).await
    }

    pub async fn ready(&self) -> (u16, Value) {
        let response = self.get("/health/ready").await;
        let status = response.status().as_u16();
        (status, response.json().await.expect("JSON"))
    }

    pub async fn until_ready(&self, condition: impl Fn(u16, &Value) -> bool) -> Value {
        let wait = async {
            loop {
                let (status, body) = self.ready().await;
                if condition(status, &body) {
                    return body;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        soon(wait).await
    }

    pub async fn until_checkpoint(&self, slot: u64) -> Value {
        self.until_ready(|_, body| body["checkpoint"] == slot).await
    }

    pub async fn until_checkpoint_past(&self, slot: u64) {
        let past = |_, body: &Value| body["checkpoint"].as_u64().is_some_and(|at| at >= slot);
        self.until_ready(past).await;
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        soon(self.running)
            .await
            .expect("no panic")
            .expect("stops cleanly");
    }

    /// Ends it in the middle of whatever it does.
    pub async fn kill(self) {
        self.running.abort();
        assert!(soon(self.running).await.is_err());
    }
}

fn config(endpoint: &str, path: &Path, health: SocketAddr) -> Config {
    let text = format!(
        r#"
        [chain]
        rpc-url = "http://127.0.0.1:1"
        [geyser]
        endpoint = "{endpoint}"
        [store]
        path = "{}"
        [indexer]
        listen = "{health}"
        [webhooks]
        allow-http-loopback = true
        "#,
        path.display()
    );
    Config::parse(&text, Path::new("test")).expect("valid")
}

/// The connection's next subscription.
pub async fn request(connection: &mut Connection) -> Request {
    soon(connection.received())
        .await
        .expect("the client is there")
        .request
}

pub async fn send(connection: &Connection, updates: impl IntoIterator<Item = Update>) {
    for update in updates {
        soon(connection.send(update))
            .await
            .expect("the client is there");
    }
}

/// The bank is frozen, and the slot confirmed.
pub fn settle(filter: &str, number: u64) -> [Update; 2] {
    [SlotStatus::Processed, SlotStatus::Confirmed].map(|status| slot(filter, number, status))
}
