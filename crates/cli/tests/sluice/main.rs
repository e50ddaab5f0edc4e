//! Tests of the binary `sluice` as its users run it: API keys, the API, and `sluice listen` over loopback.
//!
//! An indexer's part is played by the test, which stores messages as one would.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use service_kit::Clock;
use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, EventKind, Filters, MessageId, MessageKind,
    NewMessage, NewWebhook, Secret, Store, Timestamp, WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    free_port::free_port,
    rpc_node::RpcNode,
    webhook_receiver::{Reply, WebhookReceiver},
};
use solana_hash::Hash;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::{sleep, timeout},
};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program listened to: any address will do.
const PROGRAM: &str = "11111111111111111111111111111112";

struct Installation {
    folder: TempDir,
    api: String,
}

impl Installation {
    /// A configuration whose validator does not exist: webhooks are managed without one.
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let port = free_port().expect("a free port");
        let text = format!(
            "[chain]\nrpc-url = \"http://127.0.0.1:1\"\n\
             [[geyser.endpoints]]\nurl = \"http://127.0.0.1:1\"\n\
             [store]\npath = {:?}\n\
             [api]\nlisten = \"127.0.0.1:{port}\"\nkeyless = true\n",
            database(folder.path()),
        );
        std::fs::write(folder.path().join("sluice.toml"), text).expect("writes");
        Self {
            folder,
            api: format!("http://127.0.0.1:{port}"),
        }
    }

    fn sluice(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("SLUICE_API_KEY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let output = self.sluice(arguments).output();
        let output = timeout(PATIENCE, output).await.expect("in time");
        output.expect("runs")
    }

    async fn key(&self, name: &str) -> String {
        let added = self.run(&["keys", "add", name]).await;
        assert!(added.status.success(), "{added:?}");
        text(&added.stdout).trim().to_owned()
    }

    /// The API, once it answers.
    async fn serve(&self) -> Child {
        let child = self
            .sluice(&["api"])
            .stderr(Stdio::null())
            .spawn()
            .expect("runs");
        let address = self.api.trim_start_matches("http://").to_owned();
        let up = async {
            while tokio::net::TcpStream::connect(&address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, up).await.expect("starts");
        child
    }

    async fn store(&self) -> Store {
        let opened = Store::open(&database(self.folder.path())).await;
        opened.expect("opens")
    }
}

fn database(folder: &Path) -> PathBuf {
    folder.join("sluice.db")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Stores a message as an indexer would, and returns its body.
async fn store_message(store: &Store, webhook: &WebhookId, number: u8) -> String {
    let prefix = format!(r#"{{"type":"transaction","webhookId":"{webhook}","sequence":"#);
    let body = BodyTemplate::new(prefix, r#","slot":7,"data":{}}"#.into());
    let message = NewMessage {
        id: MessageId::from_bytes([number; 32]),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: 7,
        order_key: None,
        body: body.clone(),
    };
    let now = Timestamp::from(Clock::system().now());
    let messages = [message];
    let commit = Commit::slot(Commitment::Confirmed, 7, &messages, now);
    store.commit(&commit).await.expect("stores");
    body.with_sequence(number.into())
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = timeout(PATIENCE, lines.next_line()).await.expect("in time");
    line.expect("reads").expect("another line")
}

#[tokio::test]
async fn listen_posts_what_a_temporary_webhook_would_deliver() {
    let installation = Installation::new().await;
    let key = installation.key("developer").await;
    let _api = installation.serve().await;
    // It fails once and works from then on.
    let server = WebhookReceiver::in_turn([Reply::Status(500, String::new())]).await;
    let server = server.expect("a free port");
    let url = format!("http://localhost:{}/hook", server.address().port());
    let mut listener = installation
        .sluice(&["listen", "--forward", &url, "--programs", PROGRAM])
        .args(["--api", &installation.api, "--key", &key])
        .spawn()
        .expect("runs");
    let stdout = listener.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines();
    assert!(line(&mut lines).await.contains("listens"));
    let secret = line(&mut lines).await;
    server.trust(&secret);

    let store = installation.store().await;
    let page = store.list_webhooks(&Access::All, None, 2).await;
    let page = page.expect("lists");
    assert_eq!(page.webhooks.len(), 1);
    let webhook = &page.webhooks[0];
    assert!(webhook.api_key.is_some(), "it belongs to the key");
    let first = store_message(&store, &webhook.id, 1).await;

    let refused = line(&mut lines).await;
    assert!(
        refused.contains("#1 transaction slot 7") && refused.contains("answered 500"),
        "{refused}"
    );
    let accepted = line(&mut lines).await;
    assert!(
        accepted.contains("(attempt 2) -> 200"),
        "what was refused comes again: {accepted}"
    );
    let second = store_message(&store, &webhook.id, 2).await;
    assert!(line(&mut lines).await.contains("#2 "));

    let verifier = standardwebhooks::Webhook::new(&secret).expect("a secret");
    let received = server.received();
    let bodies: Vec<_> = received
        .iter()
        .map(|request| {
            let verified = verifier.verify(&request.body, &request.headers);
            verified.expect("signed");
            text(&request.body)
        })
        .collect();
    assert_eq!(bodies, [first.clone(), first, second]);
    assert_eq!(
        received[0].headers["webhook-id"],
        received[1].headers["webhook-id"]
    );

    let pid = i32::try_from(listener.id().expect("runs")).expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("signals");
    assert!(line(&mut lines).await.contains("deleted"));
    let status = timeout(PATIENCE, listener.wait()).await.expect("ends");
    assert!(status.expect("waits").success());
    let page = store.list_webhooks(&Access::All, None, 1).await;
    assert!(page.expect("lists").webhooks.is_empty());
}

#[tokio::test]
async fn listen_says_what_the_api_refuses() {
    let installation = Installation::new().await;
    installation.key("somebody").await;
    let _api = installation.serve().await;
    for (arguments, expected) in [
        (vec!["--programs", PROGRAM], "401"),
        (vec!["--programs", PROGRAM, "--key", "sluice_00"], "401"),
    ] {
        let common = [
            "listen",
            "--forward",
            "http://localhost:1/",
            "--api",
            &installation.api,
        ];
        let output = installation.run(&[&common[..], &arguments].concat()).await;
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
    }
    let output = installation
        .run(&[
            "listen",
            "--forward",
            "http://192.0.2.1/",
            "--programs",
            PROGRAM,
        ])
        .await;
    let said = text(&output.stderr);
    assert!(said.contains("--forward"), "{said}");
}

#[tokio::test]
async fn keys_are_shown_once_listed_without_their_secret_and_revoked() {
    let installation = Installation::new().await;
    let key = installation.key("ci").await;
    assert!(key.starts_with("sluice_"), "{key}");
    let again = installation.run(&["keys", "add", "ci"]).await;
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("named ci"), "{again:?}");

    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(
        listed.contains("ci") && listed.contains("in use"),
        "{listed}"
    );
    assert!(!listed.contains(&key));
    let file = std::fs::read(database(installation.folder.path())).expect("reads");
    assert!(!text(&file).contains(&key), "hashed at rest");

    let passing = ["keys", "add", "passing", "--expires-in-days", "30"];
    let added = installation.run(&passing).await;
    assert!(added.status.success(), "{added:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("in use until"), "{listed}");
    let endless = ["keys", "add", "endless", "--expires-in-days", "0"];
    assert!(!installation.run(&endless).await.status.success());

    let reading = ["keys", "add", "reading", "--scope", "webhooks:read"];
    let added = installation.run(&reading).await;
    assert!(added.status.success(), "{added:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("only webhooks:read\n"), "{listed}");
    let unknown = ["keys", "add", "swapping", "--scope", "swap"];
    let refused = installation.run(&unknown).await;
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("webhooks:write"),
        "{refused:?}"
    );

    let limit = ["keys", "limit", "ci", "--addresses", "500"];
    let limited = installation.run(&limit).await;
    assert!(limited.status.success(), "{limited:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("addresses: 500"), "{listed}");
    let unknown = installation.run(&["keys", "limit", "missing"]).await;
    assert!(!unknown.status.success());
    let revoked = installation.run(&["keys", "revoke", "ci"]).await;
    assert!(revoked.status.success(), "{revoked:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("revoked"), "{listed}");
    let again = installation.run(&["keys", "revoke", "ci"]).await;
    assert!(!again.status.success());
}

#[tokio::test]
async fn a_new_key_takes_over_the_webhooks_of_another() {
    let installation = Installation::new().await;
    installation.key("old").await;
    let added = installation
        .run(&[
            "keys",
            "add",
            "new",
            "--adopt-from",
            "old",
            "--adopt-keyless",
        ])
        .await;
    assert!(added.status.success(), "{added:?}");
    let said = text(&added.stderr);
    assert!(said.contains("0 webhooks of no key"), "{said}");
    let unknown = installation
        .run(&["keys", "add", "third", "--adopt-from", "missing"])
        .await;
    assert!(!unknown.status.success());
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(!listed.contains("third"), "nothing was made: {listed}");
}

#[tokio::test]
async fn init_writes_a_configuration_that_the_doctor_reads_and_replaces_none() {
    let installation = Installation::new().await;
    let file = "made/by/init.toml";
    let made = installation.folder.path().join(file);
    std::fs::create_dir_all(made.parent().expect("a folder")).expect("made");
    for cluster in ["localnet", "mainnet"] {
        let init = ["init", "--cluster", cluster, "--config", file];
        let output = installation.run(&init).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mode = std::fs::metadata(&made).expect("written").permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600
        );
        let written = std::fs::read_to_string(&made).expect("a text");
        let again = installation.run(&init).await;
        assert!(!again.status.success());
        assert!(
            text(&again.stderr).contains("is there already"),
            "{}",
            text(&again.stderr)
        );
        assert_eq!(std::fs::read_to_string(&made).expect("a text"), written);
        // Nothing answers at these addresses, which the doctor finds out only from a file that it has read.
        let doctor = installation.run(&["doctor", "--config", file]).await;
        assert!(
            text(&doctor.stdout).contains("RPC node"),
            "{}",
            text(&doctor.stderr)
        );
        std::fs::remove_file(&made).expect("removed");
    }
}

#[tokio::test]
async fn the_doctor_says_what_to_do_of_each_failure_and_makes_nothing() {
    let installation = Installation::new().await;
    let checked = installation.run(&["doctor"]).await;
    assert!(!checked.status.success(), "{checked:?}");
    let said = text(&checked.stdout);
    for line in [
        "FAILED   RPC node: the node at chain.rpc-url does not answer",
        "to do: start the node, or correct chain.rpc-url",
        "FAILED   stream 127.0.0.1:1: cannot connect to the stream",
        "ok       database: ",
        "sluice.db will be created",
    ] {
        assert!(said.contains(line), "no {line:?} in: {said}");
    }
    let failed = text(&checked.stderr);
    assert!(failed.contains("2 of 4 checks failed"), "{failed}");
    assert!(!database(installation.folder.path()).exists());

    installation.store().await.close().await;
    let said = text(&installation.run(&["doctor"]).await.stdout);
    assert!(said.contains("ok       database: schema "), "{said}");
}

#[tokio::test]
async fn the_doctor_names_each_node_that_transactions_are_sent_to_and_what_is_wrong_with_it() {
    let node = async |cluster: &[u8]| {
        let node = RpcNode::holding([]).await.expect("a free port");
        if let Ok(cluster) = <[u8; 32]>::try_from(cluster) {
            let genesis = Hash::new_from_array(cluster).to_string();
            node.script("getGenesisHash", genesis.into());
        }
        node.reach(7);
        node
    };
    let (main, same, foreign) = (
        node(&[1; 32]).await,
        node(&[1; 32]).await,
        node(&[2; 32]).await,
    );
    // It takes transactions, and nothing else.
    let silent = node(&[]).await;
    main.script(
        "getVersion",
        json!({"solana-core": "3.0.0", "feature-set": 1}),
    );
    main.script("getHealth", "ok".into());
    let away = "http://user:p4ssw0rd@127.0.0.1:1/?api-key=k3y".to_owned();
    let urls = [same.url(), foreign.url(), silent.url(), away];
    let installation = Installation::new().await;
    let file = installation.folder.path().join("sluice.toml");
    let text_of_file = std::fs::read_to_string(&file).expect("a text");
    let chain = format!("rpc-url = {:?}\nsend-urls = {urls:?}\n", main.url());
    let changed = text_of_file.replacen("rpc-url = \"http://127.0.0.1:1\"\n", &chain, 1);
    std::fs::write(&file, changed).expect("writes");
    let checked = installation.run(&["doctor"]).await;
    let said = text(&checked.stdout);
    for line in [
        format!("ok       send node {}: slot 7", same.url()),
        format!(
            "FAILED   send node {}: it is of another cluster",
            foreign.url()
        ),
        format!("warning  send node {}: it does not say", silent.url()),
        "FAILED   send node http://127.0.0.1:1: it does not answer".to_owned(),
    ] {
        assert!(said.contains(&line), "no {line:?} in: {said}");
    }
    let all = format!("{said}{}", text(&checked.stderr));
    assert!(!all.contains("k3y") && !all.contains("p4ssw0rd"), "{all}");
}

/// The lines of a log up to the first that the reader wants.
async fn logged(child: &mut Child, mut is_wanted: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut read = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.expect("reads") {
            let is_last = is_wanted(&line);
            read.push(line);
            if is_last {
                break;
            }
        }
    };
    timeout(PATIENCE, reading).await.expect("in time");
    read
}

#[tokio::test]
async fn a_service_raises_its_limit_of_open_files_and_logs_objects_where_that_is_asked() {
    let installation = Installation::new().await;
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""])
        .args([env!("CARGO_BIN_EXE_sluice"), "api"])
        .current_dir(installation.folder.path())
        .env("SLUICE_LOG_FORMAT", "json")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut api = command.spawn().expect("runs");
    let lines = logged(&mut api, |line| line.contains("API listening")).await;
    for line in &lines {
        let object: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        assert!(object["level"].is_string(), "{line}");
        assert!(object["fields"]["message"].is_string(), "{line}");
    }
    let process = api.id().expect("it runs");
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).expect("limits");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let numbers: Vec<_> = files.expect("a limit").split_whitespace().collect();
    assert_ne!(numbers[3], "300", "{numbers:?}");
    assert_eq!(numbers[3], numbers[4], "the hard limit is reached");
}

#[tokio::test]
async fn keys_reencrypt_changes_the_encryption_key_and_a_wrong_one_is_refused() {
    const OLD: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    const NEW: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
    const CURRENT: &str = "SLUICE_STORE__ENCRYPTION_KEY";
    const PREVIOUS: &str = "SLUICE_STORE__PREVIOUS_ENCRYPTION_KEY";
    let installation = Installation::new().await;
    let run = async |arguments: &[&str], keys: &[(&str, &str)]| {
        let mut command = installation.sluice(arguments);
        let output = command.envs(keys.iter().copied()).output();
        timeout(PATIENCE, output)
            .await
            .expect("in time")
            .expect("runs")
    };
    let plain = run(&["keys", "reencrypt"], &[]).await;
    assert!(
        text(&plain.stderr).contains("set store.encryption-key"),
        "{plain:?}"
    );
    let new = NewWebhook {
        id: WebhookId::from_random([1; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new(
            "https://example.com/".to_owned(),
            [EventKind::Transaction].into_iter().collect(),
            Filters {
                accounts: vec![PROGRAM.parse().expect("an address")],
                programs: Vec::new(),
                ..Filters::default()
            },
        ),
        secret: Secret::from_random([1; 32]),
        created: Timestamp::from_unix_millis(0),
        relay_until: None,
    };
    let store = installation.store().await;
    store.create_webhook(&new, 1).await.expect("created");
    store.close().await;

    let first = run(&["keys", "list"], &[(CURRENT, OLD)]).await;
    assert!(
        first.status.success(),
        "it is sealed at the start: {first:?}"
    );
    for wrong in [&[][..], &[(CURRENT, NEW)]] {
        let refused = run(&["keys", "list"], wrong).await;
        assert!(!refused.status.success(), "{refused:?}");
        assert!(text(&refused.stderr).contains(CURRENT), "{refused:?}");
    }
    let both = [(CURRENT, NEW), (PREVIOUS, OLD)];
    let changed = run(&["keys", "reencrypt"], &both).await;
    assert!(
        text(&changed.stdout).contains("of 1 webhooks"),
        "{changed:?}"
    );
    let done = run(&["keys", "reencrypt"], &[(CURRENT, NEW)]).await;
    assert!(text(&done.stdout).contains("of 0 webhooks"), "{done:?}");
    let malformed = run(&["keys", "list"], &[(CURRENT, "s3cret")]).await;
    let fault = text(&malformed.stderr);
    assert!(
        fault.contains("store.encryption-key must be") && !fault.contains("s3cret"),
        "{fault}"
    );
}

#[tokio::test]
async fn a_backup_of_a_running_api_is_restored_into_a_new_installation() {
    let installation = Installation::new().await;
    let missing = installation.run(&["backup", "first"]).await;
    assert!(
        text(&missing.stderr).contains("there is no database"),
        "{missing:?}"
    );
    assert!(!database(installation.folder.path()).exists());
    installation.key("somebody").await;
    let _api = installation.serve().await;
    let backup = installation.folder.path().join("first");
    let made = installation.run(&["backup", "first"]).await;
    assert!(made.status.success(), "{made:?}");
    assert!(
        text(&made.stdout).contains("holds 0 webhooks and 0 messages"),
        "{made:?}"
    );
    let mode = std::fs::metadata(&backup).expect("is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let again = installation.run(&["backup", "first"]).await;
    assert!(
        text(&again.stderr).contains("there is a file already"),
        "{again:?}"
    );

    let other = Installation::new().await;
    let backup = backup.to_str().expect("a path");
    let restored = other.run(&["restore", backup]).await;
    assert!(restored.status.success(), "{restored:?}");
    let listed = text(&other.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("somebody"), "{listed}");
    let refused = other.run(&["restore", backup]).await;
    assert!(
        text(&refused.stderr).contains("the store has API keys already"),
        "{refused:?}"
    );
}
