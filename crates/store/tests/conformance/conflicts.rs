//! Conflicts: what PostgreSQL undoes for the sake of another transaction is carried out again, and statements that write several
//! rows take them in one order, so that they do not conflict with each other. SQLite has one writer.

use std::{pin::Pin, time::Duration};

use sluice_store::{
    Access, ApiKeyId, FilterEdit, FilterLimits, FilterState, Filters, Lease, LeasedDelivery,
    NewWebhook, OperationKind, Outcome, Revision, Secret, Store, StoreError, WebhookId,
};
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
        self.is_in_the_way_of(1, || false).await;
    }

    /// Waits until so many operations wait for locks, or the last one is over already.
    async fn is_in_the_way_of(&mut self, operations: i64, is_over: impl Fn() -> bool) {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waits = async {
            loop {
                let waiting = sqlx::query_scalar::<_, i64>(WAITING);
                let waiting = waiting.fetch_one(&mut self.observer).await.expect("looks");
                if waiting >= operations || is_over() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waits).await;
        waited.expect("the operation comes to the row");
    }

    async fn commit(self) {
        self.end("COMMIT").await;
    }

    /// Gets out of the way without having written anything.
    async fn undo(self) {
        self.end("ROLLBACK").await;
    }

    async fn end(mut self, how: &'static str) {
        self.execute(how).await;
        self.session.close().await.expect("ends");
        self.observer.close().await.expect("ends");
    }
}

type Operation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where everything waits that changes what is matched.
const REVISION: &str = "UPDATE webhook_revision SET revision = revision";

/// Carries out two operations of which the first waits for what a rival writes. The second begins when it does.
async fn meet(fixture: &Fixture, held: &'static str, operations: [Operation; 2]) {
    let mut rival = Rival::begin(fixture).await;
    rival.execute(held).await;
    let mut begun = Vec::new();
    for (operation, count) in operations.into_iter().zip(1..) {
        let operation = tokio::spawn(operation);
        rival
            .is_in_the_way_of(count, || operation.is_finished())
            .await;
        begun.push(operation);
    }
    rival.undo().await;
    for operation in begun {
        operation.await.expect("no panic");
    }
}

/// An API key with the identifier of its webhook.
async fn owned(store: &Store, number: u8, active: bool) -> (ApiKeyId, WebhookId) {
    let (key, _) = with_key(store, number, &format!("key {number}")).await;
    let mut new = webhook_of(number, &key);
    new.definition.active = active;
    let id = store.create_webhook(&new, 1).await.expect("created").id;
    (key, id)
}

fn webhook_of(number: u8, key: &ApiKeyId) -> NewWebhook {
    let mut new = webhook(number);
    new.owner = Access::Key(key.clone());
    new
}

fn revoking(store: &Store, key: &ApiKeyId) -> Operation {
    let (store, key) = (store.clone(), key.clone());
    Box::pin(async move {
        let revoked = store.revoke_api_key(key.as_str(), NOW).await;
        assert!(revoked.expect("revokes").is_some());
    })
}

/// Has a webhook watch one more address.
fn editing(store: &Store, id: &WebhookId) -> Operation {
    let (store, id) = (store.clone(), id.clone());
    Box::pin(async move {
        let accounts = vec![address(100)];
        let add = Filters {
            accounts,
            ..Filters::default()
        };
        let edit = FilterEdit {
            add,
            remove: Filters::default(),
        };
        let limits = FilterLimits {
            accounts: 100,
            programs: 100,
            token_owners: 100,
        };
        let edited = store.edit_filters(&Access::All, &id, &edit, limits, None);
        assert!(edited.await.expect("edits").is_some());
    })
}

/// Has the owner switch a webhook on, unless the key was revoked.
fn switching_on(store: &Store, key: &ApiKeyId, id: &WebhookId) -> Operation {
    let (store, access, id) = (store.clone(), Access::Key(key.clone()), id.clone());
    Box::pin(async move {
        let updated = store
            .update_webhook(&access, &id, &definition(), None)
            .await;
        match updated {
            Ok(updated) => assert!(updated.is_some()),
            Err(error) => assert!(matches!(error, StoreError::NoSuchApiKey { .. }), "{error}"),
        }
    })
}

/// Its receiver answers that a webhook is gone.
fn ending(store: &Store, leased: &LeasedDelivery) -> Operation {
    let reason = "answered 410".to_owned();
    let gone = Outcome::Gone {
        reason,
        retry_at: NOW,
    };
    let (store, result) = (store.clone(), result(leased, 410, gone));
    Box::pin(async move {
        let recorded = store.record(&[result], &unchanged).await.expect("records");
        assert_eq!(recorded.counted, [true]);
    })
}

/// Whatever a session does from now on reads as of the beginning of its transaction, and may not write what changed since: as an
/// administrator may set it.
async fn stricter(fixture: &Fixture) -> Store {
    let mut administrator = fixture.session().await;
    let name = sqlx::query_scalar::<_, String>("SELECT current_database()");
    let name = name.fetch_one(&mut administrator).await.expect("has one");
    let stricter =
        format!("ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'");
    let stricter = sqlx::query(sqlx::AssertSqlSafe(stricter)).execute(&mut administrator);
    stricter.await.expect("sets");
    fixture.another().await
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
    let store = stricter(&fixture).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_indexer_and_retention_write_is_carried_out_again_as_well() {
    let fixture = Fixture::postgres("conflicts::alone").await;
    with_webhook(&fixture.store, 1).await;
    let first = FilterState {
        revision: Revision(1),
        in_force_slot: 1,
    };
    let recorded = fixture.store.record_filter_state(first).await;
    recorded.expect("records");
    let mut new = webhook(2);
    new.relay_until = Some(NOW);
    let ended = fixture.store.create_webhook(&new, 2).await;
    let ended = ended.expect("created").id;
    let store = stricter(&fixture).await;
    let mut rival = Rival::begin(&fixture).await;
    for written in [
        "UPDATE filter_state SET revision = revision",
        "UPDATE webhook_revision SET revision = revision",
    ] {
        rival.execute(written).await;
    }
    let second = FilterState {
        revision: Revision(2),
        in_force_slot: 2,
    };
    let (recording, expiring) = (store.clone(), store.clone());
    let recording = tokio::spawn(async move { recording.record_filter_state(second).await });
    let expiring = tokio::spawn(async move { expiring.expire_relays(NOW).await });
    rival.is_in_the_way_of(2, || false).await;
    rival.commit().await;
    recording.await.expect("no panic").expect("records");
    assert_eq!(expiring.await.expect("no panic").expect("expires"), 1);
    let state = store.filter_state().await.expect("reads");
    assert_eq!(state, Some(second));
    let ended = store.webhook(&Access::All, &ended).await;
    assert_eq!(ended.expect("reads"), None);
}

/// The numbers of webhooks from which on the stricter isolation is meant.
const STRICTER: u8 = 100;

async fn isolated(fixture: &Fixture, base: u8) -> Store {
    if base == STRICTER {
        stricter(fixture).await
    } else {
        fixture.another().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_of_a_revoked_key_is_off_whoever_writes_it_meanwhile() {
    let fixture = Fixture::postgres("conflicts::revoked").await;
    for base in [0, STRICTER] {
        let store = isolated(&fixture, base).await;
        for case in 0..4 {
            let (is_on, edited_first) = (case & 1 == 0, case & 2 == 0);
            let (key, id) = owned(&store, base + case, is_on).await;
            let before = store.webhook_revision().await.expect("reads");
            let editing = if is_on {
                editing(&store, &id)
            } else {
                switching_on(&store, &key, &id)
            };
            let mut operations = [revoking(&store, &key), editing];
            if edited_first {
                operations.reverse();
            }
            meet(&fixture, REVISION, operations).await;
            let after = store.webhook(&Access::All, &id).await;
            let after = after.expect("reads").expect("exists");
            let case = format!("on: {is_on}, edited first: {edited_first}, {base}");
            assert!(!after.definition.active, "{case}");
            let was_switched_off = is_on || edited_first;
            assert_eq!(after.disabled_reason.is_some(), was_switched_off, "{case}");
            let revision = store.webhook_revision().await.expect("reads");
            let changes = if was_switched_off { 2 } else { 1 };
            assert_eq!(revision.0 - before.0, changes, "{case}");
        }
        store.close().await;
    }
    fixture.store.close().await;
    assert_eq!(fixture.deadlocks().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_has_no_webhook_that_is_created_meanwhile_and_on() {
    let fixture = Fixture::postgres("conflicts::created").await;
    for base in [0, STRICTER] {
        let store = isolated(&fixture, base).await;
        for case in 0..2 {
            let number = base + case;
            let (key, _) = with_key(&store, number, &format!("key {number}")).await;
            let creating: Operation = {
                let (store, new) = (store.clone(), webhook_of(number, &key));
                Box::pin(async move {
                    match store.create_webhook(&new, 1).await {
                        Ok(created) => assert!(created.definition.active),
                        Err(error) => {
                            assert!(matches!(error, StoreError::NoSuchApiKey { .. }), "{error}");
                        }
                    }
                })
            };
            let mut operations = [creating, revoking(&store, &key)];
            if case == 1 {
                operations.reverse();
            }
            meet(&fixture, REVISION, operations).await;
            let active = store.active_webhooks().await.expect("reads").webhooks;
            assert!(active.is_empty(), "{number}");
        }
        store.close().await;
    }
    fixture.store.close().await;
    assert_eq!(fixture.deadlocks().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_is_gone_is_off_whoever_edits_it_meanwhile() {
    let fixture = Fixture::postgres("conflicts::gone").await;
    for base in [0, STRICTER] {
        let store = isolated(&fixture, base).await;
        for case in 0..2 {
            let id = with_webhook(&store, base + case).await;
            store_messages(&store, &[message(&id, 1)]).await;
            let leased = lease(&store, NOW).await;
            let mut operations = [ending(&store, &leased[0]), editing(&store, &id)];
            if case == 1 {
                operations.reverse();
            }
            meet(&fixture, REVISION, operations).await;
            let after = store.webhook(&Access::All, &id).await;
            let after = after.expect("reads").expect("exists");
            assert_eq!(after.disabled_reason.as_deref(), Some("answered 410"));
            assert!(after.definition.filters.accounts.contains(&address(100)));
        }
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexers_learn_that_a_webhook_was_adopted_whoever_edits_it_meanwhile() {
    let fixture = Fixture::postgres("conflicts::adopted").await;
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "new").await;
    let mut new = webhook(1);
    new.definition.operations = [OperationKind::Quota].into();
    let id = store.create_webhook(&new, 1).await.expect("created").id;
    // Nothing that is matched, so that the revision is not written.
    let editing: Operation = {
        let (store, id, edited) = (store.clone(), id.clone(), definition());
        Box::pin(async move {
            let written = store.update_webhook(&Access::All, &id, &edited, None);
            assert!(written.await.expect("writes").is_some());
        })
    };
    let adopting: Operation = {
        let (store, to) = (store.clone(), key.clone());
        Box::pin(async move {
            let adopted = store.adopt_webhooks(&Access::All, &to).await;
            assert_eq!(adopted.expect("moves"), 1);
        })
    };
    let held = "UPDATE operational_webhooks SET kinds = kinds";
    meet(&fixture, held, [editing, adopting]).await;
    let after = store.webhook(&Access::All, &id).await;
    let after = after.expect("reads").expect("exists");
    assert_eq!(after.api_key, Some(key));
    let revision = store.webhook_revision().await.expect("reads");
    assert_eq!(after.matched_revision, revision);
}
