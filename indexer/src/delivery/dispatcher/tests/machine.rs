//! A receiver with scripted answers, and a dispatcher over a real database.

use std::{collections::VecDeque, ops::Range};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use service_kit::Clock;
use sluice_store::{
    Access, Attempt, BodyTemplate, Commit, Commitment, Delivery, DeliveryLog, DeliveryOrder,
    DeliveryQuery, DeliveryState, EndpointState, EventKind, Filters, MessageId, MessageKind,
    NewMessage, NewWebhook, Secret, Timestamp, WebhookDefinition, WebhookId,
};
use sluice_webhook_client::Reach;
use solana_pubkey::Pubkey;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

use super::super::*;

/// Pauses short enough to be waited for.
pub(super) const SCHEDULE: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(50),
];

/// Longer than anything but the hanging receiver takes.
pub(super) const DEADLINE: Duration = Duration::from_secs(1);

/// Patience of a test with what must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What a receiver does with a request.
#[derive(Clone, Copy)]
pub(super) enum Answering {
    With(u16),
    RetryAfter(u64),
    Redirect,
    Hang,
    DripForEver,
}

#[derive(Clone, Default)]
pub(super) struct Receiver {
    /// Answers to come; 200 when there are none left.
    pub(super) script: Arc<Mutex<VecDeque<Answering>>>,
    pub(super) received: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
}

impl Receiver {
    pub(super) async fn start(script: impl IntoIterator<Item = Answering>) -> (Self, String) {
        let receiver = Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            ..Self::default()
        };
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let router = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (receiver, url)
    }

    pub(super) fn count(&self) -> usize {
        self.received.lock().len()
    }
}

pub(super) async fn receive(
    State(receiver): State<Receiver>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    receiver
        .received
        .lock()
        .push((uri.path().to_owned(), headers, body));
    let answering = receiver
        .script
        .lock()
        .pop_front()
        .unwrap_or(Answering::With(200));
    match answering {
        Answering::With(status) => StatusCode::from_u16(status)
            .expect("a status")
            .into_response(),
        Answering::RetryAfter(seconds) => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, seconds.to_string())],
        )
            .into_response(),
        Answering::Redirect => (
            StatusCode::TEMPORARY_REDIRECT,
            [(header::LOCATION, "/elsewhere")],
        )
            .into_response(),
        Answering::Hang => std::future::pending().await,
        Answering::DripForEver => {
            let drip = futures::stream::unfold((), async |()| {
                sleep(Duration::from_millis(20)).await;
                Some((
                    Ok::<_, std::convert::Infallible>(Bytes::from_static(b".")),
                    (),
                ))
            });
            axum::body::Body::from_stream(drip).into_response()
        }
    }
}

pub(super) struct Machine {
    pub(super) store: Store,
    pub(super) inserted: Arc<Notify>,
    pub(super) capacity: DispatchCapacity,
    pub(super) shutdown: CancellationToken,
    pub(super) running: JoinHandle<()>,
    pub(super) folder: TempDir,
}

impl Machine {
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db"))
            .await
            .expect("opens");
        let inserted = Arc::new(Notify::new());
        let dispatcher = Dispatcher {
            store: store.clone(),
            client: Client::new(DEADLINE, Reach::PublicAndLoopback).expect("TLS"),
            schedule: SCHEDULE.into(),
            inserted: Arc::clone(&inserted),
            metrics: Metrics::default(),
            clock: Clock::system(),
        };
        let shutdown = CancellationToken::new();
        let submissions = Submissions::new(DEADLINE);
        let capacity = submissions.capacity();
        let running = tokio::spawn(dispatcher.run(submissions, shutdown.clone()));
        Self {
            store,
            inserted,
            capacity,
            shutdown,
            running,
            folder,
        }
    }

    pub(super) async fn webhook(&self, number: u8, url: &str) -> WebhookId {
        self.webhook_in_order(number, url, DeliveryOrder::None)
            .await
    }

    pub(super) async fn webhook_in_order(
        &self,
        number: u8,
        url: &str,
        order: DeliveryOrder,
    ) -> WebhookId {
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Access::All,
            relay_until: None,
            definition: WebhookDefinition {
                order,
                ..WebhookDefinition::new(
                    url.to_owned(),
                    [EventKind::Transaction].into_iter().collect(),
                    Filters {
                        accounts: vec![Pubkey::new_from_array([1; 32])],
                        programs: Vec::new(),
                    },
                )
            },
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from(Clock::system().now()),
        };
        self.store
            .create_webhook(&new, 100)
            .await
            .expect("created")
            .id
    }

    pub(super) async fn owe(&self, webhook: &WebhookId, numbers: Range<u8>) {
        let messages = messages(webhook, numbers);
        let now = Timestamp::from(Clock::system().now());
        self.store
            .commit(&Commit::slot(Commitment::Confirmed, 7, &messages, now))
            .await
            .expect("commits");
        self.inserted.notify_one();
    }

    /// Stores messages as the outbox does, and submits them.
    pub(super) async fn submit(&self, webhook: &WebhookId, numbers: Range<u8>) {
        let messages = messages(webhook, numbers);
        let now = Timestamp::from(Clock::system().now());
        let reservation = self.capacity.reserve(messages.len(), now);
        let reservation = reservation.expect("there is capacity");
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, now);
        let pending = self
            .store
            .commit_pending(&commit, Some(reservation.lease_request()))
            .await;
        let (_, leased) = pending.expect("stores").durable().await.expect("syncs");
        assert_eq!(leased.len(), messages.len(), "nothing stands in their way");
        reservation.submit(leased);
    }

    /// Waits until the webhook's messages satisfy `condition`.
    pub(super) async fn until(&self, webhook: &WebhookId, condition: impl Fn(&[Delivery]) -> bool) {
        let wait = async {
            loop {
                let deliveries = deliveries(&self.store, webhook).await;
                if condition(&deliveries) {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("happens in time");
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

pub(super) fn sequences(receiver: &Receiver) -> Vec<u64> {
    let received = receiver.received.lock();
    received
        .iter()
        .map(|(_, _, body)| {
            let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
            body["sequence"].as_u64().expect("a number")
        })
        .collect()
}
