//! PostgreSQL behind a network that swallows what it is given, and beside sessions that hold what a migration needs.

use std::{
    fs, mem,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use super::*;
use crate::backend::{
    private_cluster::{Disk, PrivateCluster},
    values,
};

/// How long a BEGIN may take here.
const LIMIT: Duration = Duration::from_secs(1);

/// No step takes longer unless something hangs, on a busy machine as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// The last schema without step 28, which changes `messages` and then `usage`.
const BEFORE_BODIES: i64 = 27;

/// A server with a database called `own`.
async fn server() -> (TempDir, PrivateCluster, SocketAddr) {
    let folder = tempfile::tempdir().expect("temporary folder");
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("is entered");
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("is bound");
    drop(listener);
    let place = folder.path().join("cluster");
    let cluster = PrivateCluster::start_on_port(&place, Disk::DoesNotWait, address.port());
    let cluster = cluster.expect("PostgreSQL starts");
    cluster.create_database("own").await.expect("creates");
    (folder, cluster, address)
}

/// What the network does with what clients send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Passes,
    /// Keeps the first BEGIN and everything behind it on that connection.
    KeepsBegin,
}

/// A network before a server; of the connections that it kept a BEGIN of, those are counted that their client has closed.
struct Proxy {
    network: watch::Sender<Network>,
    closed: Arc<watch::Sender<u32>>,
    address: SocketAddr,
}

impl Proxy {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("is bound");
        let (network, watched) = watch::channel(Network::Passes);
        let closed = Arc::new(watch::Sender::new(0));
        let counted = Arc::clone(&closed);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (watched, counted) = (watched.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await.expect("is there");
                    let (mut from_server, to_server) = server.into_split();
                    let (from_client, mut to_client) = client.into_split();
                    let answers = async move {
                        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
                    };
                    tokio::spawn(answers);
                    if carry(from_client, to_server, watched).await {
                        counted.send_modify(|count| *count += 1);
                    }
                });
            }
        });
        Self {
            network,
            closed,
            address,
        }
    }

    /// Waits until this many are closed.
    async fn closes(&self, count: u32) {
        let mut closed = self.closed.subscribe();
        let closed = closed.wait_for(|closed| *closed == count);
        let closed = tokio::time::timeout(PATIENCE, closed).await;
        closed.expect("in time").expect("is counted");
    }
}

/// Carries what a client sends, until it closes. Says whether a BEGIN was kept.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
) -> bool {
    let mut chunk = vec![0; 65_536];
    let mut waiting = Vec::new();
    let (mut keeps, mut has_kept) = (false, false);
    loop {
        tokio::select! {
            read = from.read(&mut chunk) => {
                let length = read.unwrap_or(0);
                if length == 0 {
                    return has_kept;
                }
                let begins = chunk[..length].windows(5).any(|word| word == b"BEGIN");
                if begins && *network.borrow_and_update() == Network::KeepsBegin {
                    (keeps, has_kept) = (true, true);
                }
                waiting.extend_from_slice(&chunk[..length]);
            }
            changed = network.changed(), if keeps => {
                changed.expect("the test runs");
                keeps = false;
            }
        }
        if !keeps && to.write_all(&mem::take(&mut waiting)).await.is_err() {
            return has_kept;
        }
    }
}

/// A database behind a proxy that keeps a BEGIN which was given up in time.
async fn given_up(server: SocketAddr) -> (Proxy, PostgresDatabase) {
    let proxy = Proxy::before(server).await;
    let url = PrivateCluster::url_at(proxy.address, "own");
    let database = PostgresDatabase::open_with(&url, LIMIT).await;
    let database = database.expect("opens");
    proxy.network.send_replace(Network::KeepsBegin);
    let begun = Instant::now();
    let written = tokio::time::timeout(PATIENCE, database.write(Durability::Durable)).await;
    let error = written.expect("in time").err().expect("is not answered");
    assert!(
        matches!(error, StoreError::NoAnswer { seconds: 1 }),
        "{error}"
    );
    assert!(begun.elapsed() >= LIMIT, "it was not waited for");
    (proxy, database)
}

async fn writes(database: &PostgresDatabase) {
    let mut write = database.write(Durability::Durable).await.expect("begins");
    write.row("SELECT 1 AS one", values![]).await.expect("runs");
    write.commit().await.expect("commits");
}

#[tokio::test]
async fn a_begin_that_is_not_answered_is_given_up_and_its_connection_closed() {
    let (_folder, _cluster, server) = server().await;
    let (proxy, database) = given_up(server).await;
    let read = database.snapshot().await.err().expect("is not answered");
    assert!(matches!(read, StoreError::NoAnswer { .. }), "{read}");
    // Although the network goes on to keep everything.
    proxy.closes(2).await;
    proxy.network.send_replace(Network::Passes);
    writes(&database).await;
}

#[tokio::test]
async fn a_begin_that_is_answered_after_it_was_given_up_leaves_no_transaction_to_whoever_comes_next()
 {
    let (_folder, _cluster, server) = server().await;
    let (proxy, database) = given_up(server).await;
    proxy.network.send_replace(Network::Passes);
    proxy.closes(1).await;
    writes(&database).await;
}

#[tokio::test]
async fn a_migration_that_others_stay_in_the_way_of_is_given_up() {
    let (_folder, _cluster, server) = server().await;
    let url = PrivateCluster::url_at(server, "own");
    let mut session = PgConnection::connect(&url).await.expect("connects");
    schema::postgres_migrations()
        .run_direct(Some(BEFORE_BODIES), &mut session, false)
        .await
        .expect("makes the schema");
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM usage")
        .execute(&mut session)
        .await
        .expect("reads");
    let (options, _) = options(&url).expect("is a URL");
    let pool = pool(&options);
    let tried = migrate::migrate(&pool, Duration::from_secs(4));
    let tried = tokio::time::timeout(PATIENCE, tried).await;
    let error = tried.expect("in time").expect_err("is in the way");
    assert!(error.to_string().contains("lock timeout"), "{error}");
    let mut connection = pool.acquire().await.expect("connects");
    let version = schema::of_server(&mut connection).await.expect("reads");
    assert_eq!(version.applied, BEFORE_BODIES);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut session)
        .await
        .expect("ends");
    let done = migrate::migrate(&pool, Duration::ZERO).await;
    done.expect("nobody is in the way any more");
}
