//! Backups: made while others write, restored into either database, with nothing lost of a written history.

use std::{
    collections::BTreeSet,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sluice_store::{
    Access, Commit, Commitment, DeliveryOrder, DeliveryState, MessageId, NewMessage, Outcome,
    Store, StoreError, WebhookId,
};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::fixture::{
    Fixture, LEASE, NOW, accept, deliveries, lease, logs, message, owing, record, sequences,
    store_messages, with_key, with_order, with_webhook,
};

/// Slots that are written between the beginnings of two backups.
const SLOTS_BETWEEN: u64 = 10;
const BACKUPS: u64 = 3;

/// Most slots that are written: a page of a webhook's deliveries has no more.
const MOST_SLOTS: u64 = 900;

macro_rules! from_and_to {
    ($($name:ident: $from:ident -> $to:ident),+ $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let from = fresh(stringify!($from)).await;
            loses_nothing(&from, stringify!($to)).await;
        })+
    };
}

from_and_to! {
    a_backup_under_load_loses_nothing_from_sqlite_to_sqlite: sqlite -> sqlite,
    a_backup_under_load_loses_nothing_from_sqlite_to_postgres: sqlite -> postgres,
    a_backup_under_load_loses_nothing_from_postgres_to_sqlite: postgres -> sqlite,
    a_backup_under_load_loses_nothing_from_postgres_to_postgres: postgres -> postgres,
}

async fn fresh(kind: &str) -> Fixture {
    match kind {
        "sqlite" => Fixture::sqlite().await,
        _ => Fixture::postgres("backups").await,
    }
}

/// What was done to the store, written down after it was done.
#[derive(Default)]
struct History {
    /// The messages of each slot, the first slot being 1.
    slots: Mutex<Vec<Vec<NewMessage>>>,
    newest: AtomicU64,
    delivered: Mutex<BTreeSet<MessageId>>,
    over: AtomicBool,
}

impl History {
    fn ids(&self, webhook: &WebhookId, through: u64) -> Vec<MessageId> {
        let slots = self.slots.lock().expect("no panic");
        let messages = slots.iter().flatten();
        messages
            .filter(|message| message.webhook == *webhook && message.slot <= through)
            .map(|message| message.id.clone())
            .collect()
    }
}

fn of_slot(webhook: &WebhookId, slot: u64) -> NewMessage {
    let mut message = message(webhook, 0);
    let mut id = [0; 32];
    id[..8].copy_from_slice(&slot.to_be_bytes());
    id[8..24].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
    message.id = MessageId::from_bytes(id);
    message.slot = slot;
    message
}

async fn write_slots(store: &Store, webhooks: &[WebhookId], history: &History) {
    for slot in 1..=MOST_SLOTS {
        if history.over.load(Ordering::SeqCst) {
            break;
        }
        let messages: Vec<_> = webhooks.iter().map(|id| of_slot(id, slot)).collect();
        commit(store, slot, &messages).await;
        history.slots.lock().expect("no panic").push(messages);
        history.newest.store(slot, Ordering::SeqCst);
    }
}

async fn commit(store: &Store, slot: u64, messages: &[NewMessage]) {
    let commit = Commit::slot(Commitment::Confirmed, slot, messages, NOW);
    store.commit(&commit).await.expect("commits");
}

async fn deliver(store: &Store, history: &History) {
    while !history.over.load(Ordering::SeqCst) {
        for leased in lease(store, NOW).await {
            // Written down before it counts: a backup may have no more than this.
            let id = leased.lease.id.clone();
            history.delivered.lock().expect("no panic").insert(id);
            assert!(record(store, &leased, 200, Outcome::Delivered).await);
        }
        tokio::task::yield_now().await;
    }
}

async fn back_up_meanwhile(store: &Store, folder: &Path, history: &History) -> Vec<PathBuf> {
    let mut backups = Vec::new();
    for number in 1..=BACKUPS {
        while history.newest.load(Ordering::SeqCst) < number * SLOTS_BETWEEN {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let path = folder.join(format!("{number}.backup"));
        let backup = store.back_up(&path).await.expect("backs up");
        assert!(backup.confirmed.expect("a checkpoint") >= number * SLOTS_BETWEEN);
        backups.push(path);
    }
    history.over.store(true, Ordering::SeqCst);
    backups
}

async fn loses_nothing(from: &Fixture, to: &str) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let history = History::default();
    let webhooks = [
        with_webhook(&from.store, 1).await,
        with_order(&from.store, 2, DeliveryOrder::Strict).await,
    ];
    let (backups, (), ()) = tokio::join!(
        back_up_meanwhile(&from.store, folder.path(), &history),
        write_slots(&from.store, &webhooks, &history),
        deliver(&from.store, &history),
    );
    for backup in backups {
        let to = fresh(to).await;
        to.store.restore(&backup).await.expect("restores");
        judge(&to.store, &webhooks, &history).await;
    }
}

/// Holds a restored store to the history: it is one moment of it, and goes on to the end of it.
async fn judge(store: &Store, webhooks: &[WebhookId], history: &History) {
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    let checkpoint = checkpoint.expect("reads").expect("a checkpoint");
    let mut delivered = BTreeSet::new();
    for webhook in webhooks {
        assert_eq!(ids(store, webhook).await, history.ids(webhook, checkpoint));
        let done = deliveries(store, webhook).await.into_iter();
        delivered.extend(
            done.filter(|delivery| delivery.state == DeliveryState::Delivered)
                .map(|delivery| delivery.id),
        );
    }
    assert!(delivered.is_subset(&history.delivered.lock().expect("no panic")));

    let newest = history.newest.load(Ordering::SeqCst);
    for slot in checkpoint..=newest {
        let messages: Vec<_> = webhooks.iter().map(|id| of_slot(id, slot)).collect();
        commit(store, slot, &messages).await;
    }
    // Leases of the backup are over by then.
    let later = NOW.after(LEASE + LEASE);
    loop {
        let leased = lease(store, later).await;
        if leased.is_empty() {
            break;
        }
        accept(store, &leased).await;
        delivered.extend(leased.into_iter().map(|each| each.lease.id));
    }
    for webhook in webhooks {
        let all = history.ids(webhook, newest);
        assert_eq!(ids(store, webhook).await, all);
        assert!(all.iter().all(|id| delivered.contains(id)), "one was lost");
    }
}

/// The ids of a webhook's messages, whose sequences are shown to be 1, 2, 3, …
async fn ids(store: &Store, webhook: &WebhookId) -> Vec<MessageId> {
    let deliveries = deliveries(store, webhook).await;
    for (delivery, expected) in deliveries.iter().zip(1..) {
        assert_eq!(delivery.sequence, expected);
    }
    deliveries.into_iter().map(|each| each.id).collect()
}

/// Every row of every table of a backup, but for the leadership.
async fn rows(backup: &Path) -> BTreeSet<String> {
    let options = SqliteConnectOptions::new().filename(backup).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("opens");
    let columns = "SELECT t.name AS of_table, group_concat('quote(\"' || c.name || '\")', ' || '','' || ') AS shown
        FROM sqlite_master t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
            AND t.name NOT IN ('_sqlx_migrations', 'leadership') GROUP BY t.name";
    let tables = sqlx::query(columns).fetch_all(&mut connection).await;
    let mut all = BTreeSet::new();
    for table in tables.expect("reads") {
        let (name, shown): (String, String) = (table.get("of_table"), table.get("shown"));
        let select = format!("SELECT '{name}: ' || {shown} AS shown FROM \"{name}\"");
        let rows = sqlx::query(AssertSqlSafe(select));
        let rows = rows.fetch_all(&mut connection).await.expect("reads");
        all.extend(rows.iter().map(|row| row.get::<String, _>("shown")));
    }
    connection.close().await.expect("closes");
    all
}

/// A store with something in many tables.
async fn filled(store: &Store) -> WebhookId {
    with_key(store, 7, "somebody").await;
    let webhook = owing(store, 3).await;
    let leased = lease(store, NOW).await;
    assert_eq!(sequences(&leased), [1, 2, 3]);
    assert!(record(store, &leased[0], 200, Outcome::Delivered).await);
    assert!(record(store, &leased[1], 500, Outcome::Failed).await);
    store.keep_learned_units("{}").await.expect("keeps");
    webhook
}

async fn every_row_survives(from: &Fixture, to: &Fixture) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let webhook = filled(&from.store).await;
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let backup = from.store.back_up(&first).await.expect("backs up");
    assert_eq!(
        (backup.webhooks, backup.messages, backup.pending),
        (1, 3, 1)
    );
    assert_eq!(to.store.restore(&first).await.expect("restores"), backup);
    to.store.back_up(&second).await.expect("backs up");
    assert_eq!(rows(&first).await, rows(&second).await);
    assert_eq!(
        logs(&from.store, &webhook).await,
        logs(&to.store, &webhook).await
    );

    with_webhook(&to.store, 9).await;
    with_key(&to.store, 8, "another").await;
    let page = to.store.list_webhooks(&Access::All, None, 10).await;
    assert_eq!(page.expect("lists").webhooks.len(), 2, "numbers go on");
}

#[tokio::test]
async fn every_row_survives_the_way_to_postgresql_and_back() {
    let (sqlite, postgres) = (fresh("sqlite").await, fresh("postgres").await);
    every_row_survives(&sqlite, &postgres).await;
    let (sqlite, postgres) = (fresh("sqlite").await, fresh("postgres").await);
    every_row_survives(&postgres, &sqlite).await;
}

/// A backup of a store with one webhook.
async fn backup() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("backup");
    let from = fresh("sqlite").await;
    filled(&from.store).await;
    from.store.back_up(&path).await.expect("backs up");
    (folder, path)
}

pub async fn a_store_that_is_not_empty_or_has_a_leader_is_left_as_it_is(fixture: &Fixture) {
    let (_folder, path) = backup().await;
    let store = &fixture.store;
    let leadership = store.try_acquire_leadership().await.expect("asks");
    let leadership = leadership.expect("nobody else leads");
    let refused = store.restore(&path).await;
    assert!(matches!(refused, Err(StoreError::Led)), "{refused:?}");
    leadership.release().await.expect("releases");

    let own = with_webhook(store, 5).await;
    store_messages(store, &[message(&own, 1)]).await;
    let refused = store.restore(&path).await.expect_err("refused");
    assert!(matches!(refused, StoreError::NotEmpty { .. }), "{refused}");
    let page = store.list_webhooks(&Access::All, None, 10).await;
    assert_eq!(page.expect("lists").webhooks[0].id, own);
    assert_eq!(deliveries(store, &own).await.len(), 1);
}

pub async fn what_is_no_whole_backup_of_a_known_schema_is_refused(fixture: &Fixture) {
    let (folder, path) = backup().await;
    let store = &fixture.store;
    let again = store.back_up(&path).await.expect_err("never overwritten");
    assert!(again.to_string().contains("there is a file already"));
    for (name, content) in [
        ("missing", None),
        ("text", Some("no database")),
        ("empty", Some("")),
    ] {
        let path = folder.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).expect("writes");
        }
        let refused = store.restore(&path).await.expect_err(name);
        assert!(matches!(refused, StoreError::Backup { .. }), "{refused}");
    }
    damage(&path);
    let refused = store.restore(&path).await.expect_err("damaged");
    assert!(matches!(refused, StoreError::Backup { .. }), "{refused}");
    let page = store.list_webhooks(&Access::All, None, 10).await;
    assert!(page.expect("lists").webhooks.is_empty());
    let left = std::fs::read_dir(folder.path()).expect("reads").count();
    assert_eq!(left, 3, "nothing is left behind");
}

/// Overwrites all pages but the first, in which SQLite describes the file.
fn damage(path: &Path) {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opens");
    let length = file.metadata().expect("reads").len();
    file.seek(SeekFrom::Start(4096)).expect("seeks");
    let noise = vec![0xa5; usize::try_from(length - 4096).expect("small")];
    file.write_all(&noise).expect("writes");
}

#[tokio::test]
async fn a_restore_moves_the_epoch_beyond_that_of_every_leader_of_before() {
    let (folder, path) = backup().await;
    let to = fresh("sqlite").await;
    to.store.restore(&path).await.expect("restores");
    let after = folder.path().join("after");
    to.store.back_up(&after).await.expect("backs up");
    let options = SqliteConnectOptions::new().filename(&after).read_only(true);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("opens");
    let epoch: i64 = sqlx::query_scalar("SELECT epoch FROM leadership")
        .fetch_one(&mut connection)
        .await
        .expect("reads");
    assert!(epoch >= 1 << 32, "{epoch}");
    let leadership = to.store.try_acquire_leadership().await.expect("asks");
    leadership
        .expect("nobody leads")
        .release()
        .await
        .expect("releases");
}

crate::on_both!(
    a_store_that_is_not_empty_or_has_a_leader_is_left_as_it_is,
    what_is_no_whole_backup_of_a_known_schema_is_refused,
);
