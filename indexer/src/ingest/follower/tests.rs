//! The follower between a scripted server and an SQLite file, after another process led.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use service_kit::Clock;
use sluice_geyser::{
    SlotStatus, Update,
    scripted::{Connection, ScriptedServer},
};
use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, DeliveryQuery, EventKind, FilterState, Filters,
    MessageId, MessageKind, NewMessage, NewWebhook, Revision, Secret, Store, Timestamp,
    WebhookDefinition, WebhookId,
};
use sluice_testkit::updates::{freeze_and_confirm, key, program, slot, whole};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};

use super::*;
use crate::{
    delivery::capacity::Submissions,
    events::idl::Idls,
    ingest::{
        outbox::{Outbox, OutboxBatch},
        settling::Settling,
    },
    metrics::Metrics,
    status::Status,
    traces::MessageTraces,
};

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Slots that are there at once: reading them takes several times as long as an edit takes to be noticed, tried and asked for.
const BACKLOG: u64 = 500;

/// How long the watch is held back: a follower that does not wait for it opens a stream within milliseconds.
const HELD_BACK: Duration = Duration::from_millis(500);

struct Setup {
    store: Store,
    server: ScriptedServer,
    _folder: TempDir,
}

impl Setup {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db")).await;
        Self {
            store: store.expect("opens"),
            server: ScriptedServer::start().await.expect("listens"),
            _folder: folder,
        }
    }

    /// Writes a webhook on what happens to an address.
    async fn webhook(&self, number: u8, program: solana_pubkey::Pubkey) -> WebhookId {
        self.webhook_at(number, program, Commitment::Confirmed)
            .await
    }

    /// Writes a webhook on what happens to an address at a commitment.
    async fn webhook_at(
        &self,
        number: u8,
        program: solana_pubkey::Pubkey,
        commitment: Commitment,
    ) -> WebhookId {
        let filters = Filters {
            accounts: Vec::new(),
            programs: vec![program],
            ..Filters::default()
        };
        let (url, events) = ("http://127.0.0.1:1/", EventKind::ALL.into_iter().collect());
        let definition = WebhookDefinition {
            commitment,
            ..WebhookDefinition::new(url.to_owned(), events, filters)
        };
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Access::All,
            relay_until: None,
            definition,
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from_unix_millis(0),
        };
        let created = self.store.create_webhook(&new, 10).await;
        created.expect("is written").id
    }

    async fn subscriptions(&self) -> Arc<Subscriptions> {
        let active = self.store.active_webhooks().await.expect("reads");
        Arc::new(Subscriptions::new(&active))
    }

    /// Does what a leader did whose filter of `revision` was in force, and that had stored everything through `slot`.
    async fn led(&self, revision: u64, slot: u64) {
        let state = FilterState {
            revision: Revision(revision),
            in_force_slot: slot,
        };
        for commitment in [Commitment::Confirmed, Commitment::Finalized] {
            let read = Commit::slot(commitment, slot, &[], Timestamp::from_unix_millis(0));
            self.store.commit(&read).await.expect("is stored");
        }
        let recorded = self.store.record_filter_state(state).await;
        recorded.expect("is recorded");
    }

    fn follower(&self, subscriptions: watch::Receiver<Arc<Subscriptions>>) -> Follower {
        Follower {
            servers: Servers::new([self.server.endpoint()]),
            probes_limits: false,
            watches_closed: true,
            subscriptions,
            backfill: None,
            context: SessionContext {
                outbox: Outbox {
                    store: self.store.clone(),
                    stored: Arc::default(),
                    settling: Settling::default(),
                    capacity: Submissions::new(PATIENCE).capacity(),
                    metrics: Metrics::default(),
                    traces: MessageTraces::default(),
                    clock: Clock::system(),
                },
                idls: watch::channel(Arc::new(Idls::default())).1,
                status: Status::new(PATIENCE),
                node: None,
            },
        }
    }

    /// The next stream that is opened, and the name of its slots filter.
    async fn accept(&mut self) -> (Connection, String) {
        let accepted = async {
            let mut connection = self.server.accept().await;
            let request = connection.received().await.expect("the client is there");
            (connection, request.request.slots.expect("always"))
        };
        timeout(PATIENCE, accepted).await.expect("opens a stream")
    }

    /// Waits until the checkpoint of a commitment is this slot.
    async fn until_checkpoint(&self, commitment: Commitment, slot: u64) {
        let reached = async {
            while self.store.checkpoint(commitment).await.ok() != Some(Some(slot)) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, reached).await.expect("is stored");
    }
}

/// Waits until the metrics have this line: a commit is counted after it can be read.
async fn until_told(metrics: &Metrics, line: &str) {
    let told = async {
        while !metrics.text().lines().any(|told| told == line) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let told = timeout(PATIENCE, told).await;
    assert!(told.is_ok(), "{line}\n{}", metrics.text());
}

async fn send(connection: &Connection, updates: impl IntoIterator<Item = Update>) {
    for update in updates {
        let sent = connection.send(update).await;
        sent.expect("the client is there");
    }
}

/// Ends a follower.
async fn stop(shutdown: &CancellationToken, running: JoinHandle<()>) {
    shutdown.cancel();
    let ended = timeout(PATIENCE, running).await.expect("ends");
    ended.expect("does not panic");
}

#[tokio::test]
async fn a_new_leader_serves_every_webhook_that_the_one_before_served() {
    let mut setup = Setup::start().await;
    setup.webhook(1, key(50)).await;
    let (watched, subscriptions) = watch::channel(setup.subscriptions().await);
    let newest = setup.webhook(2, program()).await;
    setup.led(2, 10).await;

    let shutdown = CancellationToken::new();
    let follower = setup.follower(subscriptions);
    let running = tokio::spawn(follower.run(shutdown.clone()));
    let early = timeout(HELD_BACK, setup.server.accept()).await;
    watched.send_replace(setup.subscriptions().await);
    let mut connection = match early {
        Ok(connection) => connection,
        Err(_) => timeout(PATIENCE, setup.server.accept())
            .await
            .expect("opens a stream"),
    };
    let request = connection.received().await.expect("the client is there");
    let request = request.request;
    assert_eq!(request.from_slot, Some(11));
    let name = request.slots.expect("always");
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    setup.until_checkpoint(Commitment::Confirmed, 11).await;

    let owed = setup
        .store
        .deliveries(&Access::All, &newest, DeliveryQuery::default(), 100);
    let owed = owed.await.expect("reads").expect("exists");
    assert_eq!(owed.len(), 3, "everything that slot 11 had for it");
    let state = setup.store.filter_state().await.expect("reads");
    assert_eq!(state.expect("is in force").revision, Revision(2));
    stop(&shutdown, running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_asked_for_while_slots_still_wait_to_be_read() {
    let mut setup = Setup::start().await;
    setup.webhook(1, program()).await;
    setup.led(1, 10).await;
    let (watched, subscriptions) = watch::channel(setup.subscriptions().await);
    let shutdown = CancellationToken::new();
    let follower = setup.follower(subscriptions);
    let running = tokio::spawn(follower.run(shutdown.clone()));
    let (mut live, name) = setup.accept().await;
    let last = 10 + BACKLOG;
    for number in 11..=last {
        send(&live, whole(&name, number)).await;
        send(&live, freeze_and_confirm(&name, number)).await;
    }

    setup.webhook(2, key(50)).await;
    watched.send_replace(setup.subscriptions().await);
    let (probe, tried) = setup.accept().await;
    send(&probe, [slot(&tried, last, SlotStatus::Completed)]).await;
    let asked = timeout(PATIENCE, live.received()).await;
    let read = setup.store.checkpoint(Commitment::Confirmed).await;
    assert!(asked.expect("is asked").is_some());
    let read = read.expect("reads").expect("was read before");
    assert!(read < last, "all {BACKLOG} slots were read before");
    stop(&shutdown, running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_wait_to_be_read_are_stored_together() {
    let mut setup = Setup::start().await;
    let mut webhooks = Vec::new();
    for (number, commitment) in (1..).zip(Commitment::ALL) {
        webhooks.push(setup.webhook_at(number, program(), commitment).await);
    }
    setup.led(3, 10).await;
    let (_watched, subscriptions) = watch::channel(setup.subscriptions().await);
    let shutdown = CancellationToken::new();
    let follower = setup.follower(subscriptions);
    let metrics = follower.context.outbox.metrics.clone();
    let running = tokio::spawn(follower.run(shutdown.clone()));
    let (connection, name) = setup.accept().await;
    let last = 10 + BACKLOG;
    for number in 11..=last {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
        let finalized = slot(&name, number, SlotStatus::Finalized);
        send(&connection, [finalized]).await;
    }
    for commitment in [Commitment::Confirmed, Commitment::Finalized] {
        setup.until_checkpoint(commitment, last).await;
    }

    for (webhook, commitment) in webhooks.iter().zip(Commitment::ALL) {
        let query = DeliveryQuery::default();
        let owed = setup.store.deliveries(&Access::All, webhook, query, 10_000);
        let owed = owed.await.expect("reads").expect("exists");
        let slots: BTreeSet<u64> = owed.iter().map(|each| each.delivery.slot).collect();
        assert!(slots.into_iter().eq(11..=last), "{commitment}: every slot");
        let told = format!(
            "sluice_indexer_messages_stored_total{{name=\"{commitment}\"}} {}",
            owed.len()
        );
        until_told(&metrics, &told).await;
    }
    let unconfirmed = setup.store.unconfirmed_slots().await.expect("reads");
    assert!(unconfirmed.is_empty());
    let text = metrics.text();
    let count = "sluice_indexer_stage_latency_seconds_count{name=\"stored\"} ";
    let commits = text.lines().find_map(|line| line.strip_prefix(count));
    let commits: u64 = commits.expect("is exported").parse().expect("a number");
    // Each of them alone would be a commit at every commitment.
    assert!(commits < BACKLOG, "{commits} commits of {BACKLOG} slots");
    stop(&shutdown, running).await;
}

#[tokio::test]
async fn a_message_is_as_old_as_the_update_that_let_it_be_emitted() {
    const BEHIND: Duration = Duration::from_secs(5);
    let setup = Setup::start().await;
    let webhook = setup.webhook(1, program()).await;
    let (_watched, subscriptions) = watch::channel(setup.subscriptions().await);
    let outbox = setup.follower(subscriptions).context.outbox;
    let mut batch = OutboxBatch::default();
    batch.messages.push(NewMessage {
        id: MessageId::from_bytes([1; 32]),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: 7,
        order_key: None,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
    });
    let received = Instant::now().checked_sub(BEHIND);
    let received = received.expect("the machine runs for longer");
    let flushed = batch.flush(&outbox, received).await;
    flushed.expect("is stored");

    let page = setup.store.messages_after(&Access::All, &webhook, 0, 9);
    let stored = page.await.expect("reads").expect("exists").messages;
    let now = Timestamp::from(outbox.clock.now());
    let age = now.unix_millis() - stored[0].created.unix_millis();
    assert!(age >= 5_000, "{age} ms");
}
