//! The whole indexer: a scripted stream at one end, a real receiver at the other, a real database in
//! between.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap};
use serde_json::Value;
use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, Instruction, SlotStatus, SlotUpdate, TransactionUpdate, Update,
    scripted::{Code, Connection, ScriptedServer},
};
use sluice_store::{
    EventKind, Filters, NewWebhook, Secret, Store, Timestamp, WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("a step hangs")
}

fn key(byte: u8) -> Pubkey {
    Pubkey::new_from_array([byte; 32])
}

/// The program whose accounts, transactions and events the webhooks are about.
fn program() -> Pubkey {
    key(100)
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

struct Machine {
    server: ScriptedServer,
    store: Store,
    path: PathBuf,
    health: SocketAddr,
    receiver_url: String,
    received: Received,
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
    folder: TempDir,
}

async fn receiver() -> (String, Received) {
    let received = Received::default();
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let record = async |State(received): State<Received>, headers: HeaderMap, body: Bytes| {
        received.lock().expect("not poisoned").push((headers, body));
    };
    let router = Router::new()
        .fallback(record)
        .with_state(Arc::clone(&received));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    listener.local_addr().expect("bound")
}

impl Machine {
    async fn start() -> Self {
        let server = ScriptedServer::start().await.expect("listens");
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let store = Store::open(&path).await.expect("opens");
        let (receiver_url, received) = receiver().await;
        let health = free_address().await;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(sluice_indexer::run(
            config(server.endpoint().url.as_str(), &path, health),
            shutdown.clone(),
        ));
        Self {
            server,
            store,
            path,
            health,
            receiver_url,
            received,
            shutdown,
            running,
            folder,
        }
    }

    async fn webhook(&self, number: u8) -> WebhookId {
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            definition: WebhookDefinition {
                url: self.receiver_url.clone(),
                events: EventKind::ALL.into_iter().collect(),
                filters: Filters {
                    accounts: Vec::new(),
                    programs: vec![program()],
                },
                active: true,
            },
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from(SystemTime::now()),
        };
        self.store
            .create_webhook(&new, 10)
            .await
            .expect("created")
            .id
    }

    async fn ready(&self) -> (u16, Value) {
        let url = format!("http://{}/health/ready", self.health);
        let client = reqwest::Client::new();
        let wait = async {
            loop {
                if let Ok(response) = client.get(&url).send().await {
                    return (
                        response.status().as_u16(),
                        response.json().await.expect("JSON"),
                    );
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        soon(wait).await
    }

    async fn until_ready(&self, condition: impl Fn(u16, &Value) -> bool) -> Value {
        let wait = async {
            loop {
                let (status, body) = self.ready().await;
                if condition(status, &body) {
                    return body;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        soon(wait).await
    }

    async fn bodies(&self, count: usize) -> Vec<Value> {
        let wait = async {
            while self.received.lock().expect("not poisoned").len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        };
        soon(wait).await;
        let received = self.received.lock().expect("not poisoned");
        let mut bodies: Vec<Value> = received
            .iter()
            .map(|(_, body)| serde_json::from_slice(body).expect("JSON"))
            .collect();
        bodies.sort_by_key(|body| body["sequence"].as_u64());
        bodies
    }

    async fn stop(self) {
        self.shutdown.cancel();
        soon(self.running)
            .await
            .expect("no panic")
            .expect("stops cleanly");
        drop(self.folder);
    }
}

fn config(endpoint: &str, path: &std::path::Path, health: SocketAddr) -> Config {
    let text = format!(
        r#"
        [chain]
        rpc-url = "http://127.0.0.1:1"
        [geyser]
        endpoint = "{endpoint}"
        [store]
        path = "{}"
        [indexer]
        listen = "{health}"
        [webhooks]
        allow-http-loopback = true
        "#,
        path.display()
    );
    Config::parse(&text, std::path::Path::new("test")).expect("valid")
}

/// The connection's next subscription; pings do not count.
async fn request(connection: &mut Connection) -> sluice_geyser::Request {
    soon(connection.received())
        .await
        .expect("the client is there")
        .request
}

fn update(filter: &str, body: Body) -> Update {
    Update {
        filters: vec![filter.to_owned()],
        created_at: None,
        body,
    }
}

fn slot(filter: &str, slot: u64, status: SlotStatus) -> Update {
    update(
        filter,
        Body::Slot(SlotUpdate {
            slot,
            parent: None,
            status,
            dead_error: None,
        }),
    )
}

fn account(slot: u64) -> Update {
    let account = AccountUpdate {
        slot,
        pubkey: key(1),
        owner: program(),
        lamports: u64::MAX,
        executable: false,
        rent_epoch: 0,
        data: Bytes::from_static(b"abc"),
        write_version: 1,
        txn_signature: Some(Signature::from([7; 64])),
        is_startup: false,
    };
    update("owners", Body::Account(account))
}

fn transaction(slot: u64, number: u8) -> Update {
    let transaction = TransactionUpdate {
        slot,
        index: u64::from(number),
        signature: Signature::from([number; 64]),
        is_vote: false,
        error: None,
        account_keys: vec![key(9), program()],
        instructions: vec![Instruction {
            program_index: 1,
            accounts: vec![0],
            data: vec![1],
        }],
        inner_instructions: Vec::new(),
        log_messages: vec![
            format!("Program {} invoke [1]", program()),
            "Program data: AQIDBAUGBwgJ".to_owned(),
            format!("Program {} success", program()),
        ],
        logs_missing: false,
        fee: 5000,
        compute_units: Some(1234),
        pre_balances: vec![1, 1],
        post_balances: vec![1, 1],
    };
    update("transactions", Body::Transaction(Box::new(transaction)))
}

fn block(slot: u64) -> Update {
    let block = BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: "hash".to_owned(),
        parent_blockhash: "parent".to_owned(),
        block_time: Some(1_767_225_600),
        block_height: Some(slot),
        executed_transaction_count: 1,
    };
    update("blocks_meta", Body::BlockMeta(block))
}

async fn send(connection: &Connection, updates: impl IntoIterator<Item = Update>) {
    for update in updates {
        soon(connection.send(update))
            .await
            .expect("the client is there");
    }
}

/// Opens the first connection with a webhook in force, whose slots filter has the name returned.
async fn listening(machine: &mut Machine) -> (WebhookId, Connection, String) {
    let id = machine.webhook(1).await;
    let mut connection = soon(machine.server.accept()).await;
    let first = request(&mut connection).await;
    assert_eq!(
        first.from_slot, None,
        "a fresh indexer starts with what comes"
    );
    let mut name = first.slots.expect("slots are always asked for");
    send(&connection, [slot(&name, 10, SlotStatus::Confirmed)]).await;
    // The webhook may have been noticed before the stream was opened, or after.
    if name != "slots-r1" {
        name = request(&mut connection).await.slots.expect("asked for");
    }
    assert_eq!(name, "slots-r1");
    (id, connection, name)
}

fn content(slot: u64) -> [Update; 3] {
    [account(slot), transaction(slot, 4), block(slot)]
}

#[tokio::test]
async fn events_of_a_confirmed_slot_arrive_signed_and_in_order() {
    let mut machine = Machine::start().await;
    let (id, connection, name) = listening(&mut machine).await;
    send(&connection, content(11)).await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    sleep(Duration::from_millis(300)).await;
    let early = machine.received.lock().expect("not poisoned").len();
    assert_eq!(early, 0, "nothing before the confirmation");
    send(&connection, [slot(&name, 11, SlotStatus::Confirmed)]).await;

    let bodies = machine.bodies(3).await;
    let kinds: Vec<_> = bodies
        .iter()
        .map(|body| body["type"].as_str().expect("text"))
        .collect();
    assert_eq!(kinds, ["transaction", "programEvent", "accountChange"]);
    let sequences: Vec<_> = bodies
        .iter()
        .map(|body| body["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, [Some(1), Some(2), Some(3)]);
    for body in &bodies {
        assert_eq!(body["webhookId"], id.as_str());
        assert_eq!(
            (&body["slot"], &body["commitment"]),
            (&Value::from(11), &Value::from("confirmed"))
        );
        assert_eq!(body["timestamp"], "2026-01-01T00:00:00Z");
    }
    assert_eq!(bodies[0]["data"]["programs"][0], program().to_string());
    assert_eq!(bodies[1]["data"]["programId"], program().to_string());
    assert_eq!(bodies[2]["data"]["lamports"], u64::MAX);
    let verifier =
        standardwebhooks::Webhook::new(Secret::from_random([1; 32]).expose()).expect("valid");
    for (headers, body) in machine.received.lock().expect("not poisoned").iter() {
        verifier.verify(body, headers).expect("a good signature");
    }
    machine.stop().await;
}

#[tokio::test]
async fn a_broken_connection_resumes_after_the_checkpoint_and_a_replay_reaches_nobody_twice() {
    let mut machine = Machine::start().await;
    let (_, connection, name) = listening(&mut machine).await;
    send(&connection, content(11)).await;
    send(&connection, [slot(&name, 11, SlotStatus::Confirmed)]).await;
    let before = machine.bodies(3).await;

    connection
        .fail(Code::Unavailable, "restarting")
        .await
        .expect("the client is there");
    let mut connection = soon(machine.server.accept()).await;
    assert_eq!(request(&mut connection).await.from_slot, Some(12));
    send(&connection, content(11)).await;
    send(
        &connection,
        [
            slot(&name, 11, SlotStatus::Confirmed),
            transaction(12, 5),
            block(12),
        ],
    )
    .await;
    send(&connection, [slot(&name, 12, SlotStatus::Confirmed)]).await;
    let after = machine.bodies(5).await;
    assert_eq!(after[..3], before);
    let sequences: Vec<_> = after[3..]
        .iter()
        .map(|body| body["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, [Some(4), Some(5)]);
    assert_eq!(machine.store.checkpoint().await.expect("read"), Some(12));
    machine.stop().await;
}

#[tokio::test]
async fn a_new_webhook_is_asked_for_on_the_live_stream_and_the_proof_is_shown() {
    let mut machine = Machine::start().await;
    let mut connection = soon(machine.server.accept()).await;
    let first = request(&mut connection).await;
    assert!(first.transactions.is_empty());
    let old = first.slots.expect("always");
    send(&connection, [slot(&old, 20, SlotStatus::Confirmed)]).await;
    machine
        .until_ready(|status, body| status == 200 && body["filter"]["inForceRevision"] == 0)
        .await;

    machine.webhook(1).await;
    let replaced = request(&mut connection).await;
    assert_eq!(replaced.from_slot, None);
    assert_eq!(replaced.transactions.len(), 1);
    let new = replaced.slots.expect("always");
    assert_ne!(new, old);
    send(&connection, [slot(&old, 21, SlotStatus::Confirmed)]).await;
    let body = machine
        .until_ready(|_, body| body["checkpoint"] == 21)
        .await;
    assert_eq!(
        (
            &body["filter"]["wantedRevision"],
            &body["filter"]["inForceRevision"]
        ),
        (&1.into(), &0.into())
    );

    send(&connection, [slot(&new, 22, SlotStatus::Confirmed)]).await;
    let body = machine
        .until_ready(|_, body| body["filter"]["inForceRevision"] == 1)
        .await;
    assert_eq!(
        body["filter"]["inForceSinceSlot"], 23,
        "slot 22's content may have passed the old filter"
    );
    machine.stop().await;
}

#[tokio::test]
async fn a_lost_replay_window_is_survived() {
    let mut machine = Machine::start().await;
    let mut connection = soon(machine.server.accept()).await;
    let name = request(&mut connection).await.slots.expect("always");
    send(&connection, [slot(&name, 30, SlotStatus::Confirmed)]).await;
    machine
        .until_ready(|_, body| body["checkpoint"] == 30)
        .await;

    let too_old = "broadcast from 31 is not available, last available: 500";
    machine.server.refuse_next(Code::OutOfRange, too_old);
    drop(connection);
    let mut connection = soon(machine.server.accept()).await;
    assert_eq!(
        request(&mut connection).await.from_slot,
        Some(500),
        "what is left of the window"
    );

    machine.server.refuse_next(Code::Unavailable, "restarting");
    machine.server.refuse_next(Code::OutOfRange, too_old);
    machine.server.refuse_next(Code::OutOfRange, too_old);
    drop(connection);
    let mut connection = soon(machine.server.accept()).await;
    assert_eq!(
        request(&mut connection).await.from_slot,
        None,
        "the tip, in the end"
    );
    send(&connection, [slot(&name, 700, SlotStatus::Confirmed)]).await;
    machine
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 700)
        .await;
    machine.stop().await;
}

#[tokio::test]
async fn outages_of_stream_and_database_show_in_the_readiness_and_pass() {
    let mut machine = Machine::start().await;
    let (status, body) = machine.ready().await;
    assert_eq!(
        (status, &body["ready"]),
        (503, &Value::from(false)),
        "no slot seen yet"
    );

    let mut connection = soon(machine.server.accept()).await;
    let name = request(&mut connection).await.slots.expect("always");
    send(&connection, [slot(&name, 40, SlotStatus::Confirmed)]).await;
    let body = machine.until_ready(|status, _| status == 200).await;
    assert_eq!(
        (&body["ready"], &body["reason"], &body["slot"]),
        (&true.into(), &Value::Null, &40.into())
    );

    machine.server.refuse_next(Code::Unavailable, "down");
    connection
        .fail(Code::Unavailable, "down")
        .await
        .expect("the client is there");
    let body = machine.until_ready(|status, _| status == 503).await;
    assert!(
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("down")),
        "{body}"
    );
    let mut connection = soon(machine.server.accept()).await;
    request(&mut connection).await;
    send(&connection, [slot(&name, 41, SlotStatus::Confirmed)]).await;
    machine.until_ready(|status, _| status == 200).await;

    let away = machine.path.with_extension("away");
    std::fs::rename(&machine.path, &away).expect("moves the database away");
    let body = machine.until_ready(|status, _| status == 503).await;
    assert!(
        body["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("is gone")),
        "{body}"
    );
    // A slot that cannot be stored ends the session; it is asked for again once the file is back.
    // The session may have noticed by itself and be gone.
    let _ = soon(connection.send(slot(&name, 42, SlotStatus::Confirmed))).await;
    sleep(Duration::from_millis(300)).await;
    std::fs::rename(&away, &machine.path).expect("puts it back");
    let mut connection = soon(machine.server.accept()).await;
    assert_eq!(request(&mut connection).await.from_slot, Some(42));
    send(&connection, [slot(&name, 42, SlotStatus::Confirmed)]).await;
    machine
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 42)
        .await;
    machine.stop().await;
}

#[tokio::test]
async fn what_was_stored_before_a_crash_is_delivered_after_it() {
    let machine = Machine::start().await;
    let id = machine.webhook(1).await;
    machine.running.abort();
    // The receiver of the first life is used by the second.
    let message = sluice_store::NewDelivery {
        id: sluice_store::MessageId::from_digest([5; 32]),
        webhook: id,
        slot: 50,
        body: sluice_store::BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
    };
    let now = Timestamp::from(SystemTime::now());
    machine
        .store
        .commit_slot(50, &[message], now)
        .await
        .expect("commits");

    let shutdown = CancellationToken::new();
    let endpoint = machine.server.endpoint().url;
    let config = config(endpoint.as_str(), &machine.path, free_address().await);
    let second = tokio::spawn(sluice_indexer::run(config, shutdown.clone()));
    assert_eq!(machine.bodies(1).await[0]["sequence"], 1);
    shutdown.cancel();
    soon(second)
        .await
        .expect("no panic")
        .expect("stops cleanly");
}
