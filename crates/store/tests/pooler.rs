//! Poolers: pgbouncer is refused where it would let two processes lead or keep a session's settings back, and taken where not.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use sluice_store::{
    Store, StoreError,
    testing::{BroughtSettings, Disk, PoolMode, Pooler, PrivateCluster},
};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;

/// What docs/operations.md tells to set for the user of a pooled database.
const SETTINGS: [(&str, &str); 5] = [
    ("idle_in_transaction_session_timeout", "8s"),
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "1"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "8s"),
];

/// Other clients of the same user and database, and how often a store is opened beside them.
const BUSY_CLIENTS: u32 = 8;
const OPENS: u32 = 200;
const OPENS_OF_TAKEN: u32 = 10;

/// A port that nobody listens on.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("is bound").port()
}

/// A server with a database called `own`.
async fn server(folder: &Path) -> (PrivateCluster, SocketAddr) {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("is entered");
    let port = port();
    let place = folder.join("cluster");
    let cluster = PrivateCluster::start_on_port(&place, Disk::DoesNotWait, port);
    let cluster = cluster.expect("PostgreSQL starts");
    cluster.create_database("own").await.expect("creates");
    (cluster, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Opens the database through a pooler.
async fn open(pooler: &Pooler) -> Result<Store, StoreError> {
    Store::connect(&PrivateCluster::url_at(pooler.address(), "own")).await
}

#[tokio::test]
async fn a_pooler_that_would_undo_leadership_is_refused_with_the_reason() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let (cluster, server) = server(folder.path()).await;
    let pooler = |kind| {
        let started = Pooler::start(&folder.path().join("pooler"), port(), server, kind);
        started.expect("pgbouncer starts")
    };
    let dropped = "idle_in_transaction_session_timeout";
    for (kind, reason) in [
        (
            (PoolMode::Transaction, BroughtSettings::LeftOut),
            "shares its connections",
        ),
        ((PoolMode::Session, BroughtSettings::LeftOut), dropped),
        ((PoolMode::Session, BroughtSettings::Refused), dropped),
    ] {
        let opened = open(&pooler(kind)).await;
        let error = opened.expect_err("is refused").to_string();
        assert!(
            error.contains(reason) && error.contains("store.url"),
            "{kind:?}: {error}"
        );
    }
    let direct = Store::connect(&PrivateCluster::url_at(server, "own")).await;
    direct.expect("the server itself is taken");

    // One setting that is missing is as good as none.
    cluster.set_for_user(&SETTINGS[..4]).await.expect("sets");
    let kind = (PoolMode::Session, BroughtSettings::LeftOut);
    let opened = open(&pooler(kind)).await;
    let error = opened.expect_err("is refused").to_string();
    assert!(error.contains("tcp_user_timeout"), "{error}");
}

/// A pooler of this mode before a server whose user has all settings, so that these are no reason to refuse it.
async fn pooler_of(folder: &Path, mode: PoolMode) -> (PrivateCluster, SocketAddr, Pooler) {
    let (cluster, server) = server(folder).await;
    cluster.set_for_user(&SETTINGS).await.expect("sets");
    let kind = (mode, BroughtSettings::LeftOut);
    let pooler = Pooler::start(&folder.join("pooler"), port(), server, kind);
    (cluster, server, pooler.expect("pgbouncer starts"))
}

/// Clients that keep a pooler busy, with short transactions and some that take longer, until they are dropped.
fn busy(pooler: &Pooler) -> JoinSet<()> {
    let url = PrivateCluster::url_at(pooler.address(), "own");
    let mut busy = JoinSet::new();
    for client in 0..BUSY_CLIENTS {
        let url = url.clone();
        busy.spawn(async move {
            let mut session = PgConnection::connect(&url).await.expect("connects");
            let statement = if client % 4 == 0 {
                "SELECT pg_sleep(0.002)"
            } else {
                "SELECT 1"
            };
            loop {
                let run = sqlx::raw_sql(statement).execute(&mut session).await;
                run.expect("runs");
            }
        });
    }
    busy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_shares_its_connections_is_refused_however_busy_it_is() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let (_cluster, _, pooler) = pooler_of(folder.path(), PoolMode::Transaction).await;
    let mut busy = busy(&pooler);
    for nth in 0..OPENS {
        let error = open(&pooler).await.expect_err("is refused").to_string();
        assert!(error.contains("shares its connections"), "{nth}: {error}");
    }
    busy.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_in_session_mode_and_the_server_are_taken_however_busy_they_are() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let (_cluster, server, pooler) = pooler_of(folder.path(), PoolMode::Session).await;
    let mut busy = busy(&pooler);
    for _ in 0..OPENS_OF_TAKEN {
        open(&pooler).await.expect("is taken").close().await;
        let direct = Store::connect(&PrivateCluster::url_at(server, "own")).await;
        direct.expect("is taken").close().await;
    }
    busy.shutdown().await;
}

#[tokio::test]
async fn a_pooler_in_session_mode_is_taken_and_one_process_leads_through_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let (_cluster, _, pooler) = pooler_of(folder.path(), PoolMode::Session).await;
    let (one, other) = (open(&pooler).await, open(&pooler).await);
    let (one, other) = (one.expect("is taken"), other.expect("is taken"));
    let lead = one.try_acquire_leadership().await.expect("answers");
    assert!(lead.is_some());
    let second = other.try_acquire_leadership().await.expect("answers");
    assert!(second.is_none(), "two lead through a pooler");
    drop(lead);
    one.close().await;
    other.close().await;
}
