//! Conflicts: what PostgreSQL undoes for the sake of another transaction is carried out again, and statements that write several
//! rows take them in one order, so that they do not conflict with each other. SQLite has one writer.

use std::time::Duration;

use sluice_store::{Access, Lease, Revision, Secret, Store, StoreError, WebhookId};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinHandle;

use crate::fixture::*;

/// Longer than any operation takes to come to the row that it must wait for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transaction that writes what an operation of the store writes.
struct Rival {
    session: PgConnection,
    /// Sees at any time what the others do, which a transaction does not.
    observer: PgConnection,
}

impl Rival {
    async fn begin(fixture: &Fixture) -> Self {
        let mut session = fixture.session().await;
        // Of two that wait for each other, who notices first is undone: never this one.
        for statement in ["SET deadlock_timeout = '1h'", "BEGIN"] {
            sqlx::query(statement)
                .execute(&mut session)
                .await
                .expect(statement);
        }
        Self {
            session,
            observer: fixture.session().await,
        }
    }

    async fn execute(&mut self, statement: &'static str) {
        let executed = sqlx::query(statement).execute(&mut self.session).await;
        executed.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Waits until an operation waits for a row that this one has written.
    async fn is_in_the_way(&mut self) {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waits = async {
            loop {
                let waiting = sqlx::query_scalar::<_, i64>(WAITING);
                if waiting.fetch_one(&mut self.observer).await.expect("looks") > 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waits).await;
        waited.expect("the operation comes to the row");
    }

    async fn commit(mut self) {
        self.execute("COMMIT").await;
        self.session.close().await.expect("ends");
        self.observer.close().await.expect("ends");
    }
}

/// A new secret of a webhook, by a task of its own.
fn rotating(store: &Store, id: &WebhookId) -> JoinHandle<Result<(), StoreError>> {
    let (store, id) = (store.clone(), id.clone());
    tokio::spawn(async move {
        let until = NOW.after(Duration::from_secs(60));
        let secret = Secret::from_random([2; 32]);
        let rotated = store.rotate_secret(&Access::All, &id, &secret, until, NOW);
        rotated.await.map(drop)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_is_undone_for_the_sake_of_another_is_carried_out_again() {
    let fixture = Fixture::postgres("conflicts::undone").await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let mut rival = Rival::begin(&fixture).await;
    rival.execute("UPDATE webhooks SET version = version").await;
    let rotating = rotating(store, &id);
    // It has the row of the sequence, and waits for that of the webhook.
    rival.is_in_the_way().await;
    rival.execute("UPDATE sequences SET next = next").await;
    rival.commit().await;
    rotating.await.expect("no panic").expect("rotates");
    let secrets = store.secrets(&Access::All, &id, NOW).await;
    let secrets = secrets.expect("reads").expect("exists");
    assert_eq!(secrets.current, Secret::from_random([2; 32]));
    assert_eq!(secrets.previous, [Secret::from_random([1; 32])], "once");
    store.close().await;
    assert_eq!(
        fixture.deadlocks().await,
        1,
        "the operation was undone for real"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_cannot_be_serialized_is_carried_out_again() {
    let fixture = Fixture::postgres("conflicts::serialization").await;
    let id = with_webhook(&fixture.store, 1).await;
    // As an administrator may set it: what a transaction reads is as of its beginning, and it may not write what changed since.
    let mut administrator = fixture.session().await;
    let name = sqlx::query_scalar::<_, String>("SELECT current_database()");
    let name = name.fetch_one(&mut administrator).await.expect("has one");
    let stricter =
        format!("ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'");
    let stricter = sqlx::query(sqlx::AssertSqlSafe(stricter)).execute(&mut administrator);
    stricter.await.expect("sets");
    let store = fixture.another().await;
    let mut rival = Rival::begin(&fixture).await;
    rival.execute("UPDATE webhooks SET version = version").await;
    let rotating = rotating(&store, &id);
    rival.is_in_the_way().await;
    rival.commit().await;
    rotating.await.expect("no panic").expect("rotates");
    let secrets = store.secrets(&Access::All, &id, NOW).await;
    let secrets = secrets.expect("reads").expect("exists");
    assert_eq!(secrets.previous, [Secret::from_random([1; 32])], "once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_released_in_the_order_of_their_messages() {
    let fixture = Fixture::postgres("conflicts::release").await;
    let store = fixture.store.clone();
    owing(&store, 2).await;
    let leased = lease(&store, NOW).await;
    let latest_first: Vec<Lease> = leased.into_iter().rev().map(|each| each.lease).collect();
    let mut rival = Rival::begin(&fixture).await;
    rival
        .execute("UPDATE deliveries SET attempts = attempts WHERE sequence = 1")
        .await;
    let releasing = tokio::spawn(async move { store.release(&latest_first, NOW).await });
    rival.is_in_the_way().await;
    rival
        .execute("SELECT sequence FROM deliveries WHERE sequence = 2 FOR UPDATE NOWAIT")
        .await;
    rival.commit().await;
    releasing.await.expect("no panic").expect("releases");
    assert_eq!(sequences(&lease(&fixture.store, NOW).await), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_cleared_in_the_order_in_which_webhooks_were_created() {
    let fixture = Fixture::postgres("conflicts::refusals").await;
    let store = fixture.store.clone();
    let ids = [with_webhook(&store, 1).await, with_webhook(&store, 2).await];
    // The table has the row that was written last behind the others.
    for id in ids.iter().rev() {
        let recorded = store.record_refusal(id, Revision(100), "no").await;
        assert!(recorded.expect("records"));
    }
    let mut rival = Rival::begin(&fixture).await;
    rival
        .execute(
            "UPDATE webhooks SET version = version
             WHERE ordinal = (SELECT min(ordinal) FROM webhooks)",
        )
        .await;
    let clearing = tokio::spawn(async move { store.clear_refusals_but(&[]).await });
    rival.is_in_the_way().await;
    rival
        .execute(
            "SELECT ordinal FROM webhooks
             WHERE ordinal = (SELECT max(ordinal) FROM webhooks) FOR UPDATE NOWAIT",
        )
        .await;
    rival.commit().await;
    clearing.await.expect("no panic").expect("clears");
    for id in &ids {
        let read = fixture.store.webhook(&Access::All, id).await;
        assert_eq!(read.expect("reads").expect("exists").refused, None);
    }
}
