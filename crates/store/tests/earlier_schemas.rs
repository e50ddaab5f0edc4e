//! Migrations: databases of earlier schemas are brought up to date with everything in them.

use std::{path::Path, time::Duration};

use sluice_store::{
    Access, Breaker, Commitment, DeliveryQuery, DeliveryState, FilterState, LeaseLimits,
    LeaseRequest, LeaseToken, Revision, Store, TenantShares, Timestamp, UnconfirmedSlots,
    WebhookId, testing::PrivateCluster,
};
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, SqliteConnection, migrate::Migrator,
    sqlite::SqliteConnectOptions,
};

/// What a service of the first release left behind: two messages of a webhook, one of them delivered.
const CONTENT: &str = r#"
    INSERT INTO webhooks (ordinal, id, url, wants_account_change, wants_transaction, wants_program_event,
        accounts, programs, active, created_at, last_triggered_at, secret, next_sequence)
    VALUES (3, 'wh_old', 'https://example.com/hook', 0, 1, 0, zeroblob(64), zeroblob(32), 1, 1000, 2000,
        'whsec_old', 3);
    UPDATE webhook_revision SET revision = 5;
    INSERT INTO filter_state (one, revision, since_slot) VALUES (1, 5, 40);
    INSERT INTO checkpoint (one, slot) VALUES (1, 42);
    INSERT INTO deliveries (id, webhook_id, sequence, slot, body, state, attempts, next_attempt_at, created_at,
        finished_at)
    VALUES ('msg_1', 'wh_old', 1, 41, CAST('{"type":"transaction","sequence":1}' AS BLOB), 'delivered', 1, 1000,
            1000, 2000),
        ('msg_2', 'wh_old', 2, 42, CAST('{"type":"transaction","sequence":2}' AS BLOB), 'pending', 1, 3000,
            1000, NULL);
    INSERT INTO attempts (delivery_id, number, started_at, duration_ms, status, error)
    VALUES ('msg_1', 1, 1900, 12, 200, NULL), ('msg_2', 1, 1900, 12, 500, 'answered 500');
"#;

/// What a service of the second schema left behind: a webhook whose secret was rotated.
const ROTATED: &str = r#"
    INSERT INTO webhooks (ordinal, id, matched_revision, url, wants_account_change, wants_transaction,
        wants_program_event, commitment, delivery_order, headers, gzip, active, created_at, secret,
        previous_secret, previous_secret_until)
    VALUES (3, 'wh_old', 1, 'https://example.com/hook', 0, 1, 0, 'confirmed', 'none', '[]', 0, 1, 1000,
        'whsec_new', 'whsec_old', 5000);
    INSERT INTO filters (webhook, accounts, programs, digest) VALUES (3, zeroblob(64), zeroblob(32), '');
    INSERT INTO sequences (webhook) VALUES (3);
    INSERT INTO endpoints (webhook) VALUES (3);
"#;

/// What a service of the third schema left behind, for either database: everything whose name the fourth
/// changes. `{addresses}` is two addresses as bytes.
const BEFORE_RENAMES: &str = r#"
    INSERT INTO api_keys (ordinal, id, name, hash, created_at)
    VALUES (7, 'key_old', 'old', '{hash}', 900);
    INSERT INTO webhooks (ordinal, id, key, matched_revision, url, wants_account_change, wants_transaction,
        wants_program_event, commitment, delivery_order, headers, gzip, active, created_at, secret,
        previous_secret, previous_secret_until)
    VALUES (3, 'wh_old', 7, 1, 'https://example.com/hook', 0, 1, 0, 'confirmed', 'none', '[]', 0, 1, 1000,
        'whsec_new', '[["whsec_old",5000]]', 5000);
    INSERT INTO filters (webhook, accounts, programs, digest) VALUES (3, {addresses}, {addresses}, '');
    INSERT INTO sequences (webhook, next) VALUES (3, 3);
    INSERT INTO endpoints (webhook, breaker, failures, openings, paused_until, concurrency)
    VALUES (3, 'halfOpen', 4, 2, NULL, 8);
    INSERT INTO messages (webhook, sequence, id, kind, commitment, slot, body, created_at)
    VALUES (3, 1, 'msg_1', 'transaction', 'processed', 41, '{}', 1000),
        (3, 2, 'msg_2', 'transaction', 'confirmed', 42, '{}', 1000);
    INSERT INTO deliveries (webhook, sequence, attempts, tries, due_at, lease, created_at)
    VALUES (3, 1, 5, 2, 3000, NULL, 1000), (3, 2, 0, 0, 9000, 77, 1000);
    INSERT INTO filter_state (one, revision, since_slot) VALUES (1, 5, 40);
    INSERT INTO filter_changes (revision, requested_slot, since_slot) VALUES (5, 38, 40);
    INSERT INTO open_slots (slot, blockhash) VALUES (41, 'hash');
"#;

/// Makes a database as it was at this version of the schema.
async fn of_schema(version: i64, content: &str, path: &Path) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("opens");
    // From the folder of this package, in which its tests run.
    let folder = Path::new("migrations/sqlite");
    Migrator::new(folder)
        .await
        .expect("reads the migrations")
        .run_direct(Some(version), &mut connection, false)
        .await
        .expect("makes the schema");
    sqlx::raw_sql(AssertSqlSafe(content.to_owned()))
        .execute(&mut connection)
        .await
        .expect("fills it");
    connection.close().await.expect("closes");
}

#[tokio::test]
async fn everything_of_the_first_release_is_kept() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    of_schema(1, CONTENT, &path).await;

    let store = Store::open(&path).await.expect("brings it up to date");
    let id = WebhookId::parse("wh_old").expect("an identifier");
    let webhook = store.webhook(&Access::All, &id).await;
    let webhook = webhook.expect("reads").expect("is there");
    assert_eq!(webhook.definition.filters.accounts.len(), 2);
    assert_eq!(webhook.definition.commitment, Commitment::Confirmed);
    assert_eq!(webhook.filter_digest, webhook.definition.filters.digest());
    assert_eq!(
        webhook.last_triggered,
        Some(Timestamp::from_unix_millis(2000))
    );
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("reads"), Some(42));
    assert_eq!(store.webhook_revision().await.expect("reads").0, 5);
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!(active.webhooks.len(), 1);

    let logs = store
        .deliveries(&Access::All, &id, DeliveryQuery::default(), 9)
        .await
        .expect("reads")
        .expect("is there");
    let states: Vec<_> = logs.iter().map(|log| log.delivery.state).collect();
    assert_eq!(states, [DeliveryState::Pending, DeliveryState::Delivered]);
    assert_eq!(logs[0].attempts[0].error.as_deref(), Some("answered 500"));
    assert_eq!(logs[0].attempts[0].duration, Duration::from_millis(12));

    let now = Timestamp::from_unix_millis(3000);
    let request = LeaseRequest {
        now,
        until: now.after(Duration::from_secs(25)),
        token: LeaseToken::from_random(1),
        limits: LeaseLimits::deliveries(9),
        shares: TenantShares::unlimited(),
    };
    let leased = store.lease_due(&request).await.expect("leases");
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].lease.sequence, 2);
    assert_eq!(leased[0].retry_index, 1);
    assert_eq!(leased[0].body, r#"{"type":"transaction","sequence":2}"#);
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!((stats.kept, stats.pending), (2, 1));
}

#[tokio::test]
async fn a_secret_that_was_replaced_before_still_signs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    of_schema(2, ROTATED, &path).await;

    let store = Store::open(&path).await.expect("brings it up to date");
    let id = WebhookId::parse("wh_old").expect("an identifier");
    let signing = async |millis| {
        let now = Timestamp::from_unix_millis(millis);
        let secrets = store.secrets(&Access::All, &id, now).await;
        let secrets = secrets.expect("reads").expect("is there");
        let texts = secrets.iter().map(|secret| secret.expose().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(signing(4999).await, ["whsec_new", "whsec_old"]);
    assert_eq!(signing(5000).await, ["whsec_new"]);
}

/// [`BEFORE_RENAMES`], with addresses as this database writes bytes.
fn before_renames(addresses: &str) -> String {
    BEFORE_RENAMES
        .replace("{addresses}", addresses)
        .replace("{hash}", &"a".repeat(64))
}

/// Everything of [`BEFORE_RENAMES`] is there under its new name.
async fn expect_everything(store: &Store) {
    let id = WebhookId::parse("wh_old").expect("an identifier");
    let webhook = store.webhook(&Access::All, &id).await;
    let webhook = webhook.expect("reads").expect("is there");
    let owner = webhook.api_key.as_ref().map(|owner| owner.as_str());
    assert_eq!(owner, Some("key_old"));
    let until = Timestamp::from_unix_millis(5000);
    assert_eq!(webhook.previous_secrets_until, Some(until));
    let secrets = store.secrets(&Access::All, &id, until.before(Duration::from_millis(1)));
    let secrets = secrets.await.expect("reads").expect("is there");
    let texts: Vec<_> = secrets.iter().map(|secret| secret.expose()).collect();
    assert_eq!(texts, ["whsec_new", "whsec_old"]);

    let endpoint = store.endpoint(&id).await.expect("reads").expect("is there");
    assert_eq!(
        (endpoint.breaker, endpoint.trips, endpoint.concurrency_limit),
        (Breaker::HalfOpen, 2, Some(8))
    );
    let filter = FilterState {
        revision: Revision(5),
        in_force_slot: 40,
    };
    assert_eq!(store.filter_state().await.expect("reads"), Some(filter));
    let change = store.filter_change(Revision(5)).await.expect("reads");
    let change = change.expect("is there");
    assert_eq!(
        (change.requested_slot, change.in_force_slot),
        (Some(38), Some(40))
    );
    let slots = UnconfirmedSlots::from([(41, Some("hash".to_owned()))]);
    assert_eq!(store.unconfirmed_slots().await.expect("reads"), slots);

    let request = |millis| LeaseRequest {
        now: Timestamp::from_unix_millis(millis),
        until: Timestamp::from_unix_millis(millis + 25_000),
        token: LeaseToken::from_random(1),
        limits: LeaseLimits::deliveries(9),
        shares: TenantShares::unlimited(),
    };
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!((stats.pending, stats.leased), (2, 1));
    let leased = store.lease_due(&request(3000)).await.expect("leases");
    assert!(leased.is_empty(), "the probe is still under its lease");
    let leased = store.lease_due(&request(9000)).await.expect("leases");
    assert_eq!(leased.len(), 1);
    assert_eq!((leased[0].lease.sequence, leased[0].retry_index), (1, 2));
}

#[tokio::test]
async fn the_fourth_schema_keeps_what_it_renames_in_sqlite() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    of_schema(3, &before_renames("zeroblob(64)"), &path).await;
    let store = Store::open(&path).await.expect("brings it up to date");
    expect_everything(&store).await;
}

#[tokio::test]
async fn a_backup_of_an_earlier_schema_is_restored_and_left_as_it_was() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let backup = folder.path().join("backup");
    of_schema(3, &before_renames("zeroblob(64)"), &backup).await;
    let before = std::fs::read(&backup).expect("reads");
    let cluster =
        PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("PostgreSQL starts");
    let name = format!("earlier_backup_{}", std::process::id());
    let url = cluster.create_database(&name).await.expect("creates");
    let store = Store::connect(&url).await.expect("connects");
    store.restore(&backup).await.expect("restores");
    expect_everything(&store).await;
    let store = Store::open(&folder.path().join("sluice.db")).await;
    let store = store.expect("opens");
    store.restore(&backup).await.expect("restores");
    expect_everything(&store).await;
    assert!(before == std::fs::read(&backup).expect("reads"));
    assert!(!folder.path().join("backup.migrated").exists());
}

#[tokio::test]
async fn the_fourth_schema_keeps_what_it_renames_in_postgres() {
    let cluster =
        PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("PostgreSQL starts");
    let name = format!("earlier_schema_{}", std::process::id());
    let url = cluster.create_database(&name).await.expect("creates");
    let mut connection = PgConnection::connect(&url).await.expect("connects");
    let folder = Path::new("migrations/postgres");
    Migrator::new(folder)
        .await
        .expect("reads the migrations")
        .run_direct(Some(3), &mut connection, false)
        .await
        .expect("makes the schema");
    let content = before_renames("decode(repeat('ab', 64), 'hex')");
    sqlx::raw_sql(AssertSqlSafe(content))
        .execute(&mut connection)
        .await
        .expect("fills it");
    connection.close().await.expect("closes");
    let store = Store::connect(&url).await.expect("brings it up to date");
    expect_everything(&store).await;
}
