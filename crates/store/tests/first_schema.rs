//! A database of an earlier release is brought up to date with everything that is in it.

use std::{path::Path, time::Duration};

use sluice_store::{
    Access, Claim, ClaimLimits, Commitment, DeliveryQuery, DeliveryState, Lease, Store, Timestamp,
    WebhookId,
};
use sqlx::{Connection, SqliteConnection, migrate::Migrator, sqlite::SqliteConnectOptions};

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

/// Makes a database as it was at this version of the schema.
async fn of_schema(version: i64, content: &'static str, path: &Path) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("opens");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    Migrator::new(folder)
        .await
        .expect("reads the migrations")
        .run_direct(Some(version), &mut connection, false)
        .await
        .expect("makes the schema");
    sqlx::raw_sql(content)
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
    let live = store.live_webhooks().await.expect("reads");
    assert_eq!(live.webhooks.len(), 1);

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
    let claim = Claim {
        now,
        until: now.after(Duration::from_secs(25)),
        lease: Lease::from_random(1),
        limits: ClaimLimits {
            total: 9,
            per_webhook: 9,
        },
    };
    let claimed = store.claim_due(&claim).await.expect("claims");
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].ticket.sequence, 2);
    assert_eq!(claimed[0].attempts_before, 1);
    assert_eq!(claimed[0].body, r#"{"type":"transaction","sequence":2}"#);
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
