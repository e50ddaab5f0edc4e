//! Transport: a PostgreSQL server of its own certificate is reached encrypted and verified, or not at all, and a peer that
//! dies without a word is noticed.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use sluice_store::{
    Store,
    testing::{Certificate, PrivateCluster},
};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// By which this test names the URL to itself, when it runs under other root certificates.
const URL_OF_CHILD: &str = "SLUICE_TEST_TRANSPORT_URL";

/// Who of the sessions of this database is encrypted.
const ENCRYPTED: &str = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// The kernel's tables of TCP sockets.
const SOCKETS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Columns of such a table after the number of the line: this end, the other end, the state, the queues, and the timer.
const LOCAL: usize = 1;
const STATE: usize = 3;
const TIMER: usize = 5;

/// The state of a connection that both ends hold, and the timer that waits to ask for a sign of life.
const ESTABLISHED: &str = "01";
const KEEPALIVE: &str = "02";

/// Within seconds: the kernel counts a timer in hundredths of one.
const SOON: u64 = 300;

/// How long the sockets may take to come to rest, and the pause between two looks at them.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A server, and the root certificates of its authority and of another one.
struct Stage {
    cluster: PrivateCluster,
    port: u16,
    trusted: PathBuf,
    other: PathBuf,
    _folder: TempDir,
}

impl Stage {
    fn set() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
        // The server may run as another account.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("is entered");
        let (root, certificate) = authority("one authority");
        let (other_root, _) = authority("another authority");
        let (trusted, other) = (
            folder.path().join("root.pem"),
            folder.path().join("other.pem"),
        );
        fs::write(&trusted, root).expect("is written");
        fs::write(&other, other_root).expect("is written");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("is bound").port();
        drop(listener);
        let place = folder.path().join("cluster");
        let cluster = PrivateCluster::start_encrypted(&place, port, certificate);
        Self {
            cluster: cluster.expect("PostgreSQL starts"),
            port,
            trusted,
            other,
            _folder: folder,
        }
    }

    fn url(&self, host: &str, query: &str) -> String {
        format!("postgres://sluice@{host}:{}/own?{query}", self.port)
    }

    async fn opens(&self, host: &str, query: &str) -> Result<Store, String> {
        let opened = Store::connect(&self.url(host, query)).await;
        opened.map_err(|error| error.to_string())
    }
}

/// The root certificate of a new authority, and a server's certificate of it for localhost.
fn authority(name: &str) -> (String, Certificate) {
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, name);
    let root_key = KeyPair::generate().expect("a key");
    let root_pem = root.self_signed(&root_key).expect("is signed").pem();
    let issuer = Issuer::new(root, root_key);
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let server = server.signed_by(&key, &issuer).expect("is signed");
    let certificate = Certificate {
        chain: server.pem(),
        key: key.serialize_pem(),
    };
    (root_pem, certificate)
}

#[tokio::test]
async fn a_server_is_reached_encrypted_and_verified_or_not_at_all() {
    if let Ok(url) = env::var(URL_OF_CHILD) {
        Store::connect(&url).await.expect("the system trusts it");
        return;
    }
    let stage = Stage::set();
    let by_socket = stage.cluster.create_database("own").await.expect("creates");
    let verified = |roots: &PathBuf| format!("sslmode=verify-full&sslrootcert={}", roots.display());

    let store = stage.opens("localhost", &verified(&stage.trusted)).await;
    let store = store.expect("its authority is trusted");
    let leads = store.try_acquire_leadership().await.expect("is answered");
    assert!(leads.is_some());
    let mut watch = PgConnection::connect(&by_socket).await.expect("connects");
    let encrypted: Option<bool> = sqlx::query_scalar(ENCRYPTED)
        .fetch_one(&mut watch)
        .await
        .expect("reads");
    assert_eq!(encrypted, Some(true), "every session, the leader's as well");
    drop((store, leads));

    let stranger = stage.opens("localhost", &verified(&stage.other)).await;
    let error = stranger.expect_err("its authority is not trusted");
    assert!(error.contains("UnknownIssuer"), "{error}");
    let renamed = stage.opens("127.0.0.1", &verified(&stage.trusted)).await;
    let error = renamed.expect_err("the certificate is for localhost");
    assert!(error.contains("not valid for name"), "{error}");
    let unknown = stage.opens("localhost", "sslmode=verify-full").await;
    let error = unknown.expect_err("the system does not know its authority");
    assert!(error.contains("UnknownIssuer"), "{error}");
    stage
        .opens("127.0.0.1", "sslmode=require")
        .await
        .expect("is encrypted, whoever it is");
    let plain = stage.opens("localhost", "sslmode=disable").await;
    let error = plain.expect_err("the server takes encrypted connections alone");
    assert!(error.contains("no encryption"), "{error}");
    let nothing = stage
        .opens(
            "localhost",
            "sslmode=verify-full&sslrootcert=/nowhere/root.pem",
        )
        .await;
    let error = nothing.expect_err("there is no such file");
    assert!(error.contains("sslrootcert=/nowhere/root.pem"), "{error}");

    let child = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "a_server_is_reached_encrypted_and_verified_or_not_at_all",
        ])
        .env(URL_OF_CHILD, stage.url("localhost", "sslmode=verify-full"))
        .env("SSL_CERT_FILE", &stage.trusted)
        .output()
        .expect("runs");
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
}

/// By the kernel's own tables, since what a session asks for is not what its socket does where the two differ.
#[tokio::test]
async fn the_server_asks_a_silent_session_for_a_sign_of_life_within_seconds() {
    let stage = Stage::set();
    stage.cluster.create_database("own").await.expect("creates");
    let store = stage.opens("localhost", "sslmode=require").await;
    let store = store.expect("is reached");
    let leads = store.try_acquire_leadership().await.expect("is answered");
    assert!(leads.is_some());

    // A socket whose last bytes are not acknowledged yet waits for that first.
    let begun = Instant::now();
    let mut asked_in = keepalives_of(stage.port);
    while begun.elapsed() < PATIENCE && asked_in.iter().any(|ticks| *ticks > SOON) {
        tokio::time::sleep(PAUSE).await;
        asked_in = keepalives_of(stage.port);
    }

    assert!(
        asked_in.len() >= 2,
        "the leader's and the pool's: {asked_in:?}"
    );
    assert!(
        asked_in.iter().all(|ticks| *ticks <= SOON),
        "{asked_in:?} hundredths of a second"
    );
}

/// When each connection that a server holds on this port asks for a sign of life, hundredths of a second from now: never, where that is
/// not what it waits for.
fn keepalives_of(port: u16) -> Vec<u64> {
    let port = format!(":{port:04X}");
    let tables = SOCKETS.map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    lines
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|columns| columns[LOCAL].ends_with(&port) && columns[STATE] == ESTABLISHED)
        .map(|columns| match columns[TIMER].split_once(':') {
            Some((KEEPALIVE, ticks)) => u64::from_str_radix(ticks, 16).expect("a number"),
            _ => u64::MAX,
        })
        .collect()
}
