//! A database that the release before has used: messages keep whole bodies, in the tables that it reads, until it is said that no
//! process of it runs.

use std::{path::Path, sync::Arc, time::Duration};

use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, EventKind, Filters, LeaseLimits, LeaseRequest,
    LeaseToken, MessageId, MessageKind, NewMessage, NewWebhook, Secret, Store, TenantShares,
    Timestamp, WebhookDefinition, WebhookId, testing::PrivateCluster,
};
use solana_pubkey::Pubkey;
use sqlx::{
    Connection, PgConnection, SqliteConnection, migrate::Migrator, sqlite::SqliteConnectOptions,
};

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

/// The last schema without shared bodies.
const SCHEMA: i64 = 27;

/// What the release before reads of a message.
const ITS_BODIES: &str = "SELECT body FROM messages ORDER BY sequence, webhook";

async fn with_webhook(store: &Store, number: u8) -> WebhookId {
    let filters = Filters {
        programs: vec![Pubkey::new_from_array([3; 32])],
        ..Filters::default()
    };
    let new = NewWebhook {
        id: WebhookId::from_random([number; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new(
            "https://example.com/hook".to_owned(),
            [EventKind::Transaction].into_iter().collect(),
            filters,
        ),
        secret: Secret::from_random([number; 32]),
        created: NOW,
        relay_until: None,
    };
    store.create_webhook(&new, 9).await.expect("created").id
}

/// Stores an event for both webhooks as message number `number` of each, leased as the indexer does; returns its bodies.
async fn store_event(store: &Store, webhooks: &[WebhookId; 2], number: u8) -> [String; 2] {
    let end: Arc<str> = format!(",\"data\":\"{}\"}}", "x".repeat(2000)).into();
    let message = |at: u8, webhook: &WebhookId| NewMessage {
        id: MessageId::from_bytes([10 * number + at; 32]),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: u64::from(number),
        order_key: None,
        body: BodyTemplate::new(format!("{{\"of\":{at},\"sequence\":"), Arc::clone(&end)),
    };
    let messages = [message(1, &webhooks[0]), message(2, &webhooks[1])];
    let commit = Commit::messages(&messages, NOW);
    let request = LeaseRequest {
        now: NOW,
        until: NOW.after(Duration::from_secs(60)),
        token: LeaseToken::from_random(number.into()),
        limits: LeaseLimits::deliveries(9),
        shares: TenantShares::unlimited(),
    };
    let pending = store.commit_pending(&commit, Some(&request)).await;
    let (committed, leased) = pending.expect("commits").durable().await.expect("is kept");
    assert_eq!((committed.inserted(), leased.len()), (2, 2));
    messages.map(|message| message.body.with_sequence(number.into()))
}

/// All bodies as this release reads them.
async fn bodies(store: &Store, webhooks: &[WebhookId; 2]) -> [Vec<String>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for (bodies, webhook) in all.iter_mut().zip(webhooks) {
        let page = store.messages_after(&Access::All, webhook, 0, 9).await;
        let messages = page.expect("reads").expect("exists").messages;
        bodies.extend(messages.into_iter().map(|message| message.body));
    }
    all
}

/// `its_bodies` are all bodies as the release before reads them.
async fn keeps_whole_bodies_until_it_is_told(
    store: &Store,
    its_bodies: impl AsyncFn() -> Vec<String>,
) {
    let webhooks = [with_webhook(store, 1).await, with_webhook(store, 2).await];
    let first = store_event(store, &webhooks, 1).await;
    assert_eq!(its_bodies().await, first, "it delivers them");

    assert!(store.share_bodies().await.expect("writes"));
    assert!(!store.share_bodies().await.expect("writes"), "it did");
    let second = store_event(store, &webhooks, 2).await;
    store.settle().await.expect("writes");
    let of_both = its_bodies().await;
    assert_eq!(of_both[..2], first, "nothing of before is rewritten");
    assert!(
        of_both[2..].iter().all(|body| body.len() < 100),
        "{of_both:?}"
    );
    let [of_first, of_second] = bodies(store, &webhooks).await;
    assert_eq!(of_first, [first[0].as_str(), &second[0]]);
    assert_eq!(of_second, [first[1].as_str(), &second[1]]);
}

#[tokio::test]
async fn messages_keep_whole_bodies_beside_the_release_before_in_sqlite() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let connection = SqliteConnection::connect_with(&options).await;
    let mut connection = connection.expect("opens");
    let migrations = Migrator::new(Path::new("migrations/sqlite")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut connection, false);
    migrated.await.expect("makes the schema");
    connection.close().await.expect("closes");

    let store = Store::open(&path).await.expect("brings it up to date");
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let its_bodies = async || {
        let connection = SqliteConnection::connect_with(&options).await;
        let mut connection = connection.expect("opens");
        let read = sqlx::query_scalar(ITS_BODIES).fetch_all(&mut connection);
        let bodies: Vec<String> = read.await.expect("reads");
        bodies
    };
    keeps_whole_bodies_until_it_is_told(&store, its_bodies).await;
    store.close().await;
}

#[tokio::test]
async fn messages_keep_whole_bodies_beside_the_release_before_in_postgres() {
    let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let cluster = cluster.expect("PostgreSQL starts");
    let name = format!("upgraded_bodies_{}", std::process::id());
    let url = cluster.create_database(&name).await.expect("creates");
    let mut connection = PgConnection::connect(&url).await.expect("connects");
    let migrations = Migrator::new(Path::new("migrations/postgres")).await;
    let migrations = migrations.expect("reads the migrations");
    let migrated = migrations.run_direct(Some(SCHEMA), &mut connection, false);
    migrated.await.expect("makes the schema");
    connection.close().await.expect("closes");

    let store = Store::connect(&url).await.expect("brings it up to date");
    let its_bodies = async || {
        let connection = PgConnection::connect(&url).await;
        let mut connection = connection.expect("connects");
        let read = sqlx::query_scalar(ITS_BODIES).fetch_all(&mut connection);
        let bodies: Vec<String> = read.await.expect("reads");
        bodies
    };
    keeps_whole_bodies_until_it_is_told(&store, its_bodies).await;
    store.close().await;
}
