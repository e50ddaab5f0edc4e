//! Indexer harness: the whole indexer between a scripted stream, a database and a webhook receiver.
//!
//! The stream is the test's own to write, update by update; database and receiver are real ones, and the receiver takes
//! only what a webhook's secret signed.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use serde_json::Value;
use service_kit::{CancellationToken, Clock, telemetry};
use sluice_config::Config;
use sluice_geyser::{
    Endpoint, Request, Update,
    scripted::{Connection, ScriptedServer},
};
use sluice_store::{
    Access, EventKind, Filters, NewWebhook, Secret, Store, Timestamp, WebhookDefinition, WebhookId,
    testing::PrivateCluster,
};
use sluice_testkit::{
    free_port::free_address,
    updates::program,
    webhook_receiver::{Reply, WebhookReceiver},
};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::services;

/// No step takes longer unless something hangs: several times the lease of a delivery whose indexer was killed, and of a
/// busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How long temporary webhooks last: longer than any test.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Waits for a step that must not take long.
///
/// # Panics
/// When it takes longer than [`PATIENCE`].
pub async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("a step hangs")
}

/// Where the database is. What is removed or stopped with the harness is held here.
enum Place {
    /// An SQLite file.
    File { path: PathBuf, _folder: TempDir },
    /// A database on a PostgreSQL server.
    Server {
        url: String,
        name: String,
        _cluster: Arc<PrivateCluster>,
    },
}

/// A stream, a database and a receiver, and perhaps an indexer between them.
pub struct IndexerHarness {
    /// The stream.
    pub server: ScriptedServer,
    /// The database, as a second process would open it.
    pub store: Store,
    /// The receiver of all webhooks. It takes what one of their secrets signed.
    pub receiver: WebhookReceiver,
    place: Place,
    streams: Vec<Endpoint>,
    probes_limits: bool,
    idl_refresh_hours: u32,
    longest_standstill_secs: u64,
    /// The node from which missed slots are read.
    node: Option<String>,
    /// The collector to which traces are sent.
    collector: Option<String>,
}

/// A running indexer.
pub struct Indexer {
    /// Where it answers health checks.
    pub health: SocketAddr,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl IndexerHarness {
    /// With an SQLite file.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn sqlite() -> Self {
        Self::sqlite_in(&std::env::temp_dir()).await
    }

    /// With an SQLite file in a new folder of this one.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn sqlite_in(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let _folder = folder;
        Self::on(Place::File { path, _folder }).await
    }

    /// With a database of its own on the server that all tests share, which is kept in `folder`.
    ///
    /// # Panics
    /// When the server does not start.
    pub async fn postgres(folder: &Path, test: &str) -> Self {
        let cluster = PrivateCluster::shared(folder).expect("PostgreSQL starts");
        Self::on_server(Arc::new(cluster), test).await
    }

    /// With a database of its own on this server.
    ///
    /// # Panics
    /// When it cannot be created.
    pub async fn on_server(cluster: Arc<PrivateCluster>, test: &str) -> Self {
        // Tests of one process differ by the number. Names are cut to 63 bytes, so it comes first.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}_{number}_{test}", std::process::id());
        let url = cluster.create_database(&name).await.expect("creates");
        let _cluster = cluster;
        let place = Place::Server {
            url,
            name,
            _cluster,
        };
        Self::on(place).await
    }

    async fn on(place: Place) -> Self {
        let store = match &place {
            Place::File { path, .. } => Store::open(path).await,
            Place::Server { url, .. } => Store::connect(url).await,
        };
        let receiver = WebhookReceiver::always(Reply::Accept).await;
        let server = ScriptedServer::start().await.expect("listens");
        Self {
            streams: vec![server.endpoint()],
            probes_limits: false,
            idl_refresh_hours: 0,
            longest_standstill_secs: 60,
            server,
            store: store.expect("opens"),
            receiver: receiver.expect("a free port"),
            place,
            node: None,
            collector: None,
        }
    }

    /// Has indexers that are started from now on send traces to the collector at this URL. Without one they send none.
    pub fn trace_to(&mut self, url: String) {
        self.collector = Some(url);
    }

    /// Has indexers that are started from now on read missed slots from the node at this URL. Without one they read none.
    pub fn backfill_from(&mut self, url: String) {
        self.node = Some(url);
    }

    /// Has indexers that are started from now on read from that node the IDLs that programs publish, once a day.
    pub fn read_idls(&mut self) {
        self.idl_refresh_hours = 24;
    }

    /// Has indexers that are started from now on tell after so many seconds that slots come and none is stored.
    pub const fn tell_standstill_after(&mut self, secs: u64) {
        self.longest_standstill_secs = secs;
    }

    /// Has indexers that are started from now on listen to this server instead of the scripted one.
    pub fn listen_to(&mut self, stream: &Endpoint) {
        self.listen_to_all([stream]);
    }

    /// Has indexers that are started from now on listen to these servers at once.
    pub fn listen_to_all<'a>(&mut self, streams: impl IntoIterator<Item = &'a Endpoint>) {
        self.streams = streams.into_iter().cloned().collect();
    }

    /// Has indexers that are started from now on find out what the servers take in one request, on streams that are not of
    /// the test's script.
    pub const fn probe_limits(&mut self) {
        self.probes_limits = true;
    }

    /// The SQLite file, unless the database is a server.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File { path, .. } => Some(path),
            Place::Server { .. } => None,
        }
    }

    /// The name of the database, if a server has it.
    pub fn database(&self) -> Option<String> {
        match &self.place {
            Place::File { .. } => None,
            Place::Server { name, .. } => Some(name.clone()),
        }
    }

    /// Starts an indexer.
    pub async fn start(&self) -> Indexer {
        self.start_at(free_address().expect("a free port"))
    }

    /// Starts an indexer whose health no test asks for, so that it may have any port.
    pub fn start_unseen(&self) -> Indexer {
        self.start_at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Starts an indexer that reaches the database, which is a server's, by this URL.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start_on_database(&self, url: &str) -> Indexer {
        let health = free_address().expect("a free port");
        self.start_with(health, &format!("url = \"{url}\""), Clock::system())
    }

    /// Starts an indexer on a host whose clock shows this time.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn start_on_host(&self, shows: Timestamp) -> Indexer {
        let health = free_address().expect("a free port");
        let host = Clock::stopped_at(shows.into());
        self.start_with(health, &self.database_setting(), host)
    }

    fn start_at(&self, health: SocketAddr) -> Indexer {
        self.start_with(health, &self.database_setting(), Clock::system())
    }

    fn database_setting(&self) -> String {
        match &self.place {
            Place::File { path, .. } => format!("path = \"{}\"", path.display()),
            Place::Server { url, .. } => format!("url = \"{url}\""),
        }
    }

    fn start_with(&self, health: SocketAddr, database: &str, host: Clock) -> Indexer {
        let shutdown = CancellationToken::new();
        let config = self.config(health, database);
        // Of a test that fails, the log tells why.
        telemetry::init(telemetry::Format::Text);
        let running = tokio::spawn(services::indexer(config, host, shutdown.clone()));
        Indexer {
            health,
            shutdown,
            running,
        }
    }

    fn config(&self, health: SocketAddr, database: &str) -> Config {
        let (rpc_url, calls) = match &self.node {
            Some(url) => (url.as_str(), 1000),
            None => ("http://127.0.0.1:1", 0),
        };
        let endpoints = self.streams.iter();
        let endpoints: String = endpoints
            .map(|endpoint| format!("[[geyser.endpoints]]\nurl = \"{}\"\n", endpoint.url))
            .collect();
        let collector = self.collector.iter();
        let telemetry: String = collector
            .map(|url| format!("[telemetry]\notlp-endpoint = \"{url}\"\n"))
            .collect();
        let probe_limits = self.probes_limits;
        let idl_refresh_hours = self.idl_refresh_hours;
        let longest_standstill_secs = self.longest_standstill_secs;
        let text = format!(
            r#"
            [chain]
            rpc-url = "{rpc_url}"
            [geyser]
            probe-limits = {probe_limits}
            {endpoints}
            [store]
            {database}
            [indexer]
            listen = "{health}"
            backfill-calls-per-second = {calls}
            longest-standstill-secs = {longest_standstill_secs}
            [webhooks]
            allow-http-loopback = true
            idl-refresh-hours = {idl_refresh_hours}
            {telemetry}
            "#,
        );
        Config::parse(&text, Path::new("test")).expect("valid")
    }

    /// What a webhook on everything about the program asks for.
    pub fn definition(&self) -> WebhookDefinition {
        WebhookDefinition::new(
            self.receiver.url(),
            EventKind::ALL.into_iter().collect(),
            Filters {
                accounts: Vec::new(),
                programs: vec![program()],
                ..Filters::default()
            },
        )
    }

    /// Creates a webhook, whose id and secret are made of `number`.
    pub async fn create(&self, number: u8, definition: WebhookDefinition) -> WebhookId {
        self.create_owned(number, &Access::All, definition).await
    }

    /// The same of this owner.
    pub async fn create_owned(
        &self,
        number: u8,
        owner: &Access,
        definition: WebhookDefinition,
    ) -> WebhookId {
        self.insert(number, owner, definition, None).await
    }

    /// A temporary webhook: its messages are not posted but wait until they are read.
    pub async fn create_temporary(&self, number: u8, definition: WebhookDefinition) -> WebhookId {
        let end = Timestamp::from(Clock::system().now()).after(DAY);
        self.insert(number, &Access::All, definition, Some(end))
            .await
    }

    async fn insert(
        &self,
        number: u8,
        owner: &Access,
        definition: WebhookDefinition,
        relay_until: Option<Timestamp>,
    ) -> WebhookId {
        let secret = Secret::from_random([number; 32]);
        self.receiver.trust(secret.expose());
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: owner.clone(),
            relay_until,
            definition,
            secret,
            created: Timestamp::from(Clock::system().now()),
        };
        self.store
            .create_webhook(&new, 10)
            .await
            .expect("created")
            .id
    }

    /// Creates a webhook on everything about the program.
    pub async fn webhook(&self, number: u8) -> WebhookId {
        self.create(number, self.definition()).await
    }

    /// The next connection and what it asks for.
    pub async fn accept(&mut self) -> (Connection, Request) {
        let mut connection = soon(self.server.accept()).await;
        let request = request(&mut connection).await;
        (connection, request)
    }
}

impl Indexer {
    /// The answer to a GET of this path, once the service listens.
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

    /// What it exports.
    ///
    /// # Panics
    /// When that is no text.
    pub async fn metrics(&self) -> String {
        let response = self.get("/metrics").await;
        response.text().await.expect("text")
    }

    /// Status and body of its readiness.
    ///
    /// # Panics
    /// When the body is no JSON.
    pub async fn ready(&self) -> (u16, Value) {
        let response = self.get("/health/ready").await;
        let status = response.status().as_u16();
        (status, response.json().await.expect("JSON"))
    }

    /// Waits until its readiness is as wanted, and returns the body.
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

    /// Waits until the checkpoint is this slot.
    pub async fn until_checkpoint(&self, slot: u64) -> Value {
        self.until_ready(|_, body| body["checkpoint"] == slot).await
    }

    /// Waits until the checkpoint is this slot or a later one.
    pub async fn until_checkpoint_past(&self, slot: u64) {
        let past = |_, body: &Value| body["checkpoint"].as_u64().is_some_and(|at| at >= slot);
        self.until_ready(past).await;
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When it does not end, or failed.
    pub async fn end(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        timeout(PATIENCE, self.running).await??
    }

    /// Ends it in the middle of whatever it does.
    ///
    /// # Errors
    /// When it had ended before.
    pub async fn abort(self) -> anyhow::Result<()> {
        self.running.abort();
        let ended = timeout(PATIENCE, self.running).await?;
        ensure!(ended.is_err(), "it had ended before: {ended:?}");
        Ok(())
    }
}

/// The connection's next subscription.
///
/// # Panics
/// When the client is gone.
pub async fn request(connection: &mut Connection) -> Request {
    soon(connection.received())
        .await
        .expect("the client is there")
        .request
}

/// Sends these updates, one after the other.
///
/// # Panics
/// When the client is gone.
pub async fn send(connection: &Connection, updates: impl IntoIterator<Item = Update>) {
    for update in updates {
        soon(connection.send(update))
            .await
            .expect("the client is there");
    }
}
