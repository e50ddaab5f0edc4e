//! A fresh store for every test, and the webhooks, messages and leases to fill it.

use std::{path::Path, sync::Arc, time::Duration};

use sluice_store::{
    Access, ApiKeyId, ApiKeySecret, Attempt, AttemptResult, BodyTemplate, Commit, Commitment,
    Delivery, DeliveryLog, DeliveryOrder, DeliveryQuery, EndpointState, EventKind, Filters,
    LeaseLimits, LeaseRequest, LeaseToken, LeasedDelivery, MessageId, MessageKind, NewApiKey,
    NewMessage, NewWebhook, Outcome, Scopes, Secret, Store, TenantShares, Timestamp, Timings,
    WebhookDefinition, WebhookId, testing::PrivateCluster,
};
use solana_pubkey::Pubkey;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

pub const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);
pub const LEASE: Duration = Duration::from_secs(25);
pub const PLENTY: LeaseLimits = LeaseLimits::deliveries(100);

/// Where a store is, so that it can be opened again.
enum Place {
    File(TempDir),
    Server {
        url: String,
        _cluster: PrivateCluster,
    },
}

pub struct Fixture {
    place: Place,
    pub store: Store,
}

impl Fixture {
    pub const fn is_sqlite(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db"))
            .await
            .expect("opens");
        Self {
            place: Place::File(folder),
            store,
        }
    }

    pub async fn postgres(test: &str) -> Self {
        let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")))
            .expect("PostgreSQL starts");
        let process = std::process::id();
        // Names are cut to 63 bytes, so what distinguishes them comes first.
        let url = cluster
            .create_database(&format!("{process}_{:x}_{test}", rand_number()))
            .await
            .expect("creates");
        let store = Store::connect(&url).await.expect("connects");
        Self {
            place: Place::Server {
                url,
                _cluster: cluster,
            },
            store,
        }
    }

    /// Where the SQLite file is.
    pub fn folder(&self) -> &Path {
        match &self.place {
            Place::File(folder) => folder.path(),
            Place::Server { .. } => panic!("this database is no file"),
        }
    }

    /// Another process's view of the same database.
    pub async fn another(&self) -> Store {
        match &self.place {
            Place::File(folder) => Store::open(&folder.path().join("sluice.db")).await,
            Place::Server { url, .. } => Store::connect(url).await,
        }
        .expect("opens again")
    }

    /// A session of the test's own with the server.
    pub async fn session(&self) -> PgConnection {
        match &self.place {
            Place::File(_) => panic!("this database has no server"),
            Place::Server { url, .. } => PgConnection::connect(url).await.expect("connects"),
        }
    }

    /// How often a transaction was undone for the sake of another one. All stores must be closed: a session has counted once it
    /// is over. A file has one writer.
    pub async fn deadlocks(&self) -> i64 {
        const OTHERS: &str =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
            AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        const DEADLOCKS: &str =
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        if matches!(self.place, Place::File(_)) {
            return 0;
        }
        let mut session = self.session().await;
        let over = async {
            while sqlx::query_scalar::<_, i64>(OTHERS)
                .fetch_one(&mut session)
                .await
                .expect("looks")
                > 0
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let over = tokio::time::timeout(Duration::from_secs(30), over).await;
        over.expect("every session ends");
        let deadlocks = sqlx::query_scalar(DEADLOCKS).fetch_one(&mut session).await;
        deadlocks.expect("is counted")
    }
}

/// A number that no other test of this process has had.
fn rand_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A token that no other request has had.
pub fn token() -> LeaseToken {
    LeaseToken::from_random(rand_number())
}

pub fn address(number: u8) -> Pubkey {
    Pubkey::new_from_array([number; 32])
}

pub fn definition() -> WebhookDefinition {
    WebhookDefinition::new(
        "https://example.com/hook".to_owned(),
        EventKind::ALL.into_iter().collect(),
        Filters {
            accounts: vec![address(2), address(1)],
            programs: vec![address(3)],
            ..Filters::default()
        },
    )
}

pub fn webhook(number: u8) -> NewWebhook {
    NewWebhook {
        id: WebhookId::from_random([number; 16]),
        owner: Access::All,
        definition: definition(),
        secret: Secret::from_random([number; 32]),
        created: NOW,
        relay_until: None,
    }
}

pub async fn with_webhook(store: &Store, number: u8) -> WebhookId {
    with_order(store, number, DeliveryOrder::None).await
}

pub async fn with_order(store: &Store, number: u8, order: DeliveryOrder) -> WebhookId {
    let mut new = webhook(number);
    new.definition.order = order;
    store.create_webhook(&new, 100).await.expect("created").id
}

pub fn message(webhook: &WebhookId, number: u8) -> NewMessage {
    keyed(webhook, number, None)
}

pub fn keyed(webhook: &WebhookId, number: u8, order_key: Option<&str>) -> NewMessage {
    let mut digest = [number; 32];
    digest[..16].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
    NewMessage {
        id: MessageId::from_bytes(digest),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: 7,
        order_key: order_key.map(str::to_owned),
        body: BodyTemplate::new(
            "{\"sequence\":".to_owned(),
            Arc::from(",\"data\":\"\\u0000é\\\"\"}"),
        ),
    }
}

/// An API key, with its secret.
pub async fn with_key(store: &Store, number: u8, name: &str) -> (ApiKeyId, ApiKeySecret) {
    let secret = ApiKeySecret::from_random([number; 32]);
    let id = ApiKeyId::from_random([number; 8]);
    let new = NewApiKey {
        id: id.clone(),
        name: name.to_owned(),
        hash: secret.hash(),
        created: NOW,
        expires: None,
        scopes: Scopes::ALL,
    };
    store.create_api_key(&new).await.expect("created");
    (id, secret)
}

/// Stores messages as slot 7, due at once; returns how many were new.
pub async fn store_messages(store: &Store, messages: &[NewMessage]) -> u64 {
    store
        .commit(&Commit::slot(Commitment::Confirmed, 7, messages, NOW))
        .await
        .expect("commits")
        .inserted()
}

/// Stores `count` messages for webhook 1.
pub async fn owing(store: &Store, count: u8) -> WebhookId {
    let id = with_webhook(store, 1).await;
    let messages: Vec<_> = (1..=count).map(|number| message(&id, number)).collect();
    store_messages(store, &messages).await;
    id
}

pub async fn lease(store: &Store, now: Timestamp) -> Vec<LeasedDelivery> {
    lease_some(store, now, PLENTY).await
}

pub async fn lease_some(store: &Store, now: Timestamp, limits: LeaseLimits) -> Vec<LeasedDelivery> {
    let request = LeaseRequest {
        now,
        until: now.after(LEASE),
        token: token(),
        limits,
        shares: TenantShares::unlimited(),
    };
    store.lease_due(&request).await.expect("leases")
}

pub fn sequences(leased: &[LeasedDelivery]) -> Vec<u64> {
    leased.iter().map(|each| each.lease.sequence).collect()
}

pub fn attempt(status: u16) -> Attempt {
    Attempt {
        number: 0,
        url: "https://example.com/hook".to_owned(),
        started: NOW,
        duration: Duration::from_millis(12),
        timings: Timings {
            resolved: Some(Duration::from_micros(150)),
            first_byte: Some(Duration::from_millis(11)),
            ..Timings::default()
        },
        status: Some(status),
        error: None,
        retry_after: None,
        request_headers: vec![("webhook-id".to_owned(), "msg_1".to_owned())],
        response: Some("ok\0".to_owned()),
        response_cut: false,
    }
}

pub fn result(leased: &LeasedDelivery, status: u16, outcome: Outcome) -> AttemptResult {
    AttemptResult::new(leased.lease.clone(), attempt(status), outcome, 0)
}

pub fn unchanged(state: EndpointState, _: &AttemptResult) -> EndpointState {
    state
}

/// Records one result; returns whether it counted.
pub async fn record(store: &Store, leased: &LeasedDelivery, status: u16, outcome: Outcome) -> bool {
    let results = [result(leased, status, outcome)];
    let recorded = store.record(&results, &unchanged).await.expect("records");
    recorded.counted[0]
}

/// The endpoint accepts everything in `leased`.
pub async fn accept(store: &Store, leased: &[LeasedDelivery]) {
    let results: Vec<_> = leased
        .iter()
        .map(|each| result(each, 200, Outcome::Delivered))
        .collect();
    let recorded = store.record(&results, &unchanged).await.expect("records");
    assert!(recorded.counted.iter().all(|counted| *counted));
}

/// How many messages wait for delivery, as the readiness counts them.
pub async fn pending(store: &Store) -> u64 {
    let readiness = store.readiness().await.expect("counts");
    readiness.pending_deliveries
}

/// A webhook's messages with their attempts, in order.
pub async fn logs(store: &Store, webhook: &WebhookId) -> Vec<DeliveryLog> {
    let query = DeliveryQuery::default();
    let page = store.deliveries(&Access::All, webhook, query, 1000).await;
    let mut logs = page.expect("reads").expect("exists");
    logs.reverse();
    logs
}

pub async fn deliveries(store: &Store, webhook: &WebhookId) -> Vec<Delivery> {
    let logs = logs(store, webhook).await;
    logs.into_iter().map(|log| log.delivery).collect()
}
