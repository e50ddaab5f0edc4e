//! Dispatcher over a real database, and the receivers that it posts to.

use std::ops::Range;

use service_kit::Clock;
use sluice_store::{
    Access, ApiKeyId, ApiKeySecret, Attempt, BodyTemplate, Commit, Commitment, Committed, Delivery,
    DeliveryLog, DeliveryOptions, DeliveryOrder, DeliveryQuery, DeliveryState, EndpointState,
    EventKind, Filters, MessageId, MessageKind, NewApiKey, NewMessage, NewWebhook, Scopes, Secret,
    Timestamp, WebhookDefinition, WebhookId,
};
use sluice_testkit::webhook_receiver::{Reply, WebhookReceiver};
use sluice_webhook_client::Reach;
use solana_pubkey::Pubkey;
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::sleep};

use super::super::{super::capacity::Reservation, *};

/// Pauses short enough to be waited for.
pub(super) const SCHEDULE: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(50),
];

/// Patience of a test with what must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Deadline of an attempt where each is answered: longer than that takes, and so short that a test is still patient when
/// the lease of a delivery is over.
const DEADLINE: Duration = Duration::from_secs(20);

/// Deadline of an attempt where a receiver outlives it.
pub(super) const SHORT_DEADLINE: Duration = Duration::from_secs(2);

/// A receiver that gives these answers in turn, and accepts what comes after them.
pub(super) async fn answering(replies: impl IntoIterator<Item = Reply>) -> WebhookReceiver {
    let receiver = WebhookReceiver::in_turn(replies).await;
    receiver.expect("a free port")
}

/// A failure without words.
pub(super) fn failing() -> Reply {
    Reply::Status(500, String::new())
}

pub(super) struct Machine {
    pub(super) store: Store,
    pub(super) to_lease: Arc<ToLease>,
    pub(super) capacity: DispatchCapacity,
    pub(super) shutdown: CancellationToken,
    pub(super) running: JoinHandle<()>,
    pub(super) folder: TempDir,
    pub(super) clock: Clock,
}

fn dispatcher(
    store: &Store,
    deadline: Duration,
    to_lease: &Arc<ToLease>,
    clock: &Clock,
) -> Dispatcher {
    Dispatcher {
        store: store.clone(),
        client: Client::new(deadline, Reach::PublicAndLoopback).expect("TLS"),
        schedule: SCHEDULE.into(),
        // So that each that waits takes a transaction of its own.
        most_pulled: 1,
        to_lease: Arc::clone(to_lease),
        metrics: Metrics::default(),
        traces: MessageTraces::default(),
        clock: clock.clone(),
    }
}

impl Machine {
    pub(super) async fn start() -> Self {
        Self::with_deadline(DEADLINE).await
    }

    pub(super) async fn with_deadline(deadline: Duration) -> Self {
        Self::start_with(deadline, Submissions::new(deadline)).await
    }

    /// A dispatcher of this capacity, each of whose attempts ends after `deadline`.
    pub(super) async fn start_with(deadline: Duration, submissions: Submissions) -> Self {
        Self::on_clock(deadline, submissions, Clock::system()).await
    }

    /// On a stopped clock, so that no pause is over before the test says so.
    pub(super) async fn on_stopped_clock() -> Self {
        let clock = Clock::stopped_at(Clock::system().now());
        Self::on_clock(DEADLINE, Submissions::new(DEADLINE), clock).await
    }

    async fn on_clock(deadline: Duration, submissions: Submissions, clock: Clock) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db"))
            .await
            .expect("opens");
        let to_lease = Arc::<ToLease>::default();
        let dispatcher = dispatcher(&store, deadline, &to_lease, &clock);
        let shutdown = CancellationToken::new();
        let capacity = submissions.capacity();
        let running = tokio::spawn(dispatcher.run(submissions, shutdown.clone()));
        Self {
            store,
            to_lease,
            capacity,
            shutdown,
            running,
            folder,
            clock,
        }
    }

    /// Another process that delivers from the same database, until the shutdown of both.
    pub(super) fn another(&self) -> JoinHandle<()> {
        let dispatcher = dispatcher(&self.store, DEADLINE, &Arc::default(), &self.clock);
        tokio::spawn(dispatcher.run(Submissions::new(DEADLINE), self.shutdown.clone()))
    }

    /// A webhook of this receiver, which from now on takes what is signed with its secret.
    pub(super) async fn webhook(&self, number: u8, receiver: &WebhookReceiver) -> WebhookId {
        self.webhook_in_order(number, receiver, DeliveryOrder::None)
            .await
    }

    pub(super) async fn webhook_in_order(
        &self,
        number: u8,
        receiver: &WebhookReceiver,
        order: DeliveryOrder,
    ) -> WebhookId {
        receiver.trust(Secret::from_random([number; 32]).expose());
        self.webhook_at(number, &receiver.url(), order).await
    }

    pub(super) async fn webhook_at(
        &self,
        number: u8,
        url: &str,
        order: DeliveryOrder,
    ) -> WebhookId {
        self.create(number, url, order, Access::All).await
    }

    /// A webhook of this receiver that belongs to an API key of its own.
    pub(super) async fn webhook_of_key(&self, number: u8, receiver: &WebhookReceiver) -> WebhookId {
        receiver.trust(Secret::from_random([number; 32]).expose());
        let key = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: number.to_string(),
            hash: ApiKeySecret::from_random([number; 32]).hash(),
            created: Timestamp::from(Clock::system().now()),
            expires: None,
            scopes: Scopes::ALL,
        };
        self.store.create_api_key(&key).await.expect("created");
        let (url, order) = (receiver.url(), DeliveryOrder::None);
        self.create(number, &url, order, Access::Key(key.id)).await
    }

    async fn create(
        &self,
        number: u8,
        url: &str,
        order: DeliveryOrder,
        owner: Access,
    ) -> WebhookId {
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner,
            relay_until: None,
            definition: WebhookDefinition {
                order,
                ..WebhookDefinition::new(
                    url.to_owned(),
                    [EventKind::Transaction].into_iter().collect(),
                    Filters {
                        accounts: vec![Pubkey::new_from_array([1; 32])],
                        programs: Vec::new(),
                        ..Filters::default()
                    },
                )
            },
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from(self.clock.now()),
        };
        self.store
            .create_webhook(&new, 100)
            .await
            .expect("created")
            .id
    }

    /// From now on the webhook is sent one message at a time.
    pub(super) async fn deliver_one_at_once(&self, webhook: &WebhookId) {
        let options = DeliveryOptions {
            concurrency: Some(1),
            ..DeliveryOptions::default()
        };
        self.deliver_with(webhook, options).await;
    }

    /// From now on the webhook is delivered to like this.
    pub(super) async fn deliver_with(&self, webhook: &WebhookId, options: DeliveryOptions) {
        let read = self.store.webhook(&Access::All, webhook).await;
        let mut definition = read.expect("read").expect("exists").definition;
        definition.delivery = options;
        let updated = self
            .store
            .update_webhook(&Access::All, webhook, &definition, None)
            .await;
        assert!(updated.expect("written").is_some());
    }

    pub(super) async fn owe(&self, webhook: &WebhookId, numbers: Range<u8>) {
        let messages = messages(webhook, numbers);
        let now = Timestamp::from(self.clock.now());
        self.store_unleased(&Commit::slot(Commitment::Confirmed, 7, &messages, now))
            .await;
    }

    /// As [`Machine::owe`], with bodies of so many bytes and a few.
    pub(super) async fn owe_long(&self, webhook: &WebhookId, numbers: Range<u8>, bytes: usize) {
        let bytes = vec![bytes; numbers.len()];
        self.owe_with(messages(webhook, numbers), &bytes).await;
    }

    /// As [`Machine::owe_long`], each with a number of bytes of its own, all of them stored together.
    pub(super) async fn owe_each(&self, webhook: &WebhookId, bytes: &[usize]) {
        let count = u8::try_from(bytes.len()).expect("few");
        self.owe_with(messages(webhook, 0..count), bytes).await;
    }

    async fn owe_with(&self, mut messages: Vec<NewMessage>, bytes: &[usize]) {
        for (message, bytes) in messages.iter_mut().zip(bytes) {
            let suffix = format!(",\"data\":\"{}\"}}", "x".repeat(*bytes));
            message.body = BodyTemplate::new("{\"sequence\":".to_owned(), suffix.into());
        }
        let now = Timestamp::from(self.clock.now());
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, now);
        self.store_unleased(&commit).await;
    }

    /// Leaves what is stored to be found by the dispatcher, which is told of it.
    async fn store_unleased(&self, commit: &Commit<'_>) {
        let committed = self.store.commit(commit).await.expect("commits");
        self.to_lease.tell(&committed.unleased);
    }

    /// Stores messages that are leased as the outbox does, and submits them.
    pub(super) async fn submit(&self, webhook: &WebhookId, numbers: Range<u8>) {
        let (reservation, leased) = self.store_leased(webhook, numbers).await;
        reservation.submit(leased);
    }

    /// Stores messages as the outbox does, all of them leased.
    pub(super) async fn store_leased(
        &self,
        webhook: &WebhookId,
        numbers: Range<u8>,
    ) -> (Reservation, Vec<LeasedDelivery>) {
        let count = numbers.len();
        let (_, leased, reservation) = self.store(webhook, numbers).await;
        assert_eq!(leased.len(), count, "nothing stands in their way");
        (reservation, leased)
    }

    /// Stores messages as the outbox does.
    pub(super) async fn store(
        &self,
        webhook: &WebhookId,
        numbers: Range<u8>,
    ) -> (Committed, Vec<LeasedDelivery>, Reservation) {
        let messages = messages(webhook, numbers);
        let now = Timestamp::from(self.clock.now());
        let bytes = messages.iter().map(|message| message.body.len_at_most());
        let reservation = self.capacity.reserve(messages.len(), bytes.sum(), now);
        let reservation = reservation.expect("there is capacity");
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, now);
        let pending = self
            .store
            .commit_pending(&commit, Some(reservation.lease_request()))
            .await;
        let (committed, leased) = pending.expect("stores").durable().await.expect("syncs");
        (committed, leased, reservation)
    }

    /// Stores messages that are due after a while.
    pub(super) async fn owe_after(&self, pause: Duration, webhook: &WebhookId, numbers: Range<u8>) {
        let messages = messages(webhook, numbers);
        let due = Timestamp::from(self.clock.now()).after(pause);
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, due);
        self.store.commit(&commit).await.expect("commits");
    }

    /// Waits until the webhook's messages satisfy `condition`.
    pub(super) async fn until(&self, webhook: &WebhookId, condition: impl Fn(&[Delivery]) -> bool) {
        let mut seen = Vec::new();
        let wait = async {
            loop {
                seen = deliveries(&self.store, webhook).await;
                if condition(&seen) {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(
            in_time,
            "at {}: {seen:#?}",
            Timestamp::from(self.clock.now())
        );
    }

    /// Waits until the receiver has got so many requests.
    pub(super) async fn until_received(&self, receiver: &WebhookReceiver, count: usize) {
        let wait = async {
            while receiver.received().len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("comes in time");
    }

    pub(super) async fn attempts(&self, webhook: &WebhookId) -> Vec<Attempt> {
        logs(&self.store, webhook).await.remove(0).attempts
    }

    /// Returns the folder, for those who look into the database afterwards.
    pub(super) async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        self.running.await.expect("stops cleanly");
        self.folder
    }
}

fn messages(webhook: &WebhookId, numbers: Range<u8>) -> Vec<NewMessage> {
    numbers
        .map(|number| {
            let mut digest = [number; 32];
            digest[..16].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
            NewMessage {
                id: MessageId::from_bytes(digest),
                webhook: webhook.clone(),
                kind: MessageKind::Event(EventKind::Transaction),
                commitment: Commitment::Confirmed,
                slot: 7,
                order_key: Some(format!("key{}", number % 2)),
                body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
            }
        })
        .collect()
}

/// A webhook's messages with their attempts, in order.
pub(super) async fn logs(store: &Store, webhook: &WebhookId) -> Vec<DeliveryLog> {
    let query = DeliveryQuery::default();
    let page = store.deliveries(&Access::All, webhook, query, 100).await;
    let mut logs = page.expect("read").expect("exists");
    logs.reverse();
    logs
}

pub(super) async fn deliveries(store: &Store, webhook: &WebhookId) -> Vec<Delivery> {
    let logs = logs(store, webhook).await;
    logs.into_iter().map(|log| log.delivery).collect()
}

pub(super) fn all(state: DeliveryState) -> impl Fn(&[Delivery]) -> bool {
    move |deliveries| deliveries.iter().all(|delivery| delivery.state == state)
}

impl Machine {
    pub(super) async fn endpoint(&self, webhook: &WebhookId) -> EndpointState {
        let state = self.store.endpoint(webhook).await.expect("read");
        state.expect("exists")
    }
}

pub(super) fn sequences(receiver: &WebhookReceiver) -> Vec<u64> {
    receiver
        .received()
        .iter()
        .map(|request| {
            let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
            body["sequence"].as_u64().expect("a number")
        })
        .collect()
}
