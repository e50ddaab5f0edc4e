//! The dispatcher against a real receiver on the loopback interface, over a real database.

use std::{collections::VecDeque, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use sluice_store::{
    BodyTemplate, DeliveryState, EventKind, Filters, MessageId, NewDelivery, NewWebhook, Secret,
    WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use super::*;

/// Pauses short enough to be waited for.
const SCHEDULE: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(50),
];

/// Longer than anything but the hanging receiver takes.
const DEADLINE: Duration = Duration::from_secs(1);

/// Patience of a test with what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a receiver does with a request.
#[derive(Clone, Copy)]
enum Answering {
    With(u16),
    RetryAfter(u64),
    Redirect,
    Hang,
    DripForEver,
}

#[derive(Clone, Default)]
struct Receiver {
    /// Answers to come; 200 when there are none left.
    script: Arc<Mutex<VecDeque<Answering>>>,
    received: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
}

impl Receiver {
    async fn start(script: impl IntoIterator<Item = Answering>) -> (Self, String) {
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

    fn count(&self) -> usize {
        self.received.lock().len()
    }
}

async fn receive(
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

struct Machine {
    store: Store,
    stored: Arc<Notify>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
    folder: TempDir,
}

impl Machine {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db"))
            .await
            .expect("opens");
        let stored = Arc::new(Notify::new());
        let dispatcher = Dispatcher {
            store: store.clone(),
            sender: Sender::new(DEADLINE, true).expect("TLS"),
            deadline: DEADLINE,
            schedule: &SCHEDULE,
            stored: Arc::clone(&stored),
        };
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(dispatcher.run(shutdown.clone()));
        Self {
            store,
            stored,
            shutdown,
            running,
            folder,
        }
    }

    async fn webhook(&self, number: u8, url: &str) -> WebhookId {
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            definition: WebhookDefinition {
                url: url.to_owned(),
                events: [EventKind::Transaction].into_iter().collect(),
                filters: Filters {
                    accounts: vec![Pubkey::new_from_array([1; 32])],
                    programs: Vec::new(),
                },
                active: true,
            },
            secret: Secret::from_random([number; 32]),
            created: Timestamp::from(SystemTime::now()),
        };
        self.store
            .create_webhook(&new, 100)
            .await
            .expect("created")
            .id
    }

    async fn owe(&self, webhook: &WebhookId, numbers: std::ops::Range<u8>) {
        let messages: Vec<_> = numbers
            .map(|number| {
                let mut digest = [number; 32];
                digest[..16].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
                NewDelivery {
                    id: MessageId::from_digest(digest),
                    webhook: webhook.clone(),
                    slot: 7,
                    body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
                }
            })
            .collect();
        let now = Timestamp::from(SystemTime::now());
        self.store
            .commit_slot(7, &messages, now)
            .await
            .expect("commits");
        self.stored.notify_one();
    }

    /// Waits until the webhook's messages satisfy `condition`.
    async fn until(
        &self,
        webhook: &WebhookId,
        condition: impl Fn(&[sluice_store::Delivery]) -> bool,
    ) {
        let wait = async {
            loop {
                let deliveries = self
                    .store
                    .deliveries_of(webhook, 0, 100)
                    .await
                    .expect("read");
                if condition(&deliveries) {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, wait).await.expect("happens in time");
    }

    async fn attempts(&self, webhook: &WebhookId) -> Vec<Attempt> {
        let deliveries = self
            .store
            .deliveries_of(webhook, 0, 100)
            .await
            .expect("read");
        self.store
            .attempts_of(&deliveries[0].id)
            .await
            .expect("read")
    }

    /// Returns the folder, for those who look into the database afterwards.
    async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        self.running.await.expect("stops cleanly");
        self.folder
    }
}

fn all(state: DeliveryState) -> impl Fn(&[sluice_store::Delivery]) -> bool {
    move |deliveries| deliveries.iter().all(|delivery| delivery.state == state)
}

#[tokio::test]
async fn a_receiver_that_fails_once_gets_the_same_message_again_and_the_signatures_are_good() {
    let (receiver, url) = Receiver::start([Answering::With(500)]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;

    let received = receiver.received.lock().clone();
    assert_eq!(received.len(), 2);
    let verifier =
        standardwebhooks::Webhook::new(Secret::from_random([1; 32]).expose()).expect("valid");
    for (path, headers, body) in &received {
        assert_eq!(path, "/hook");
        verifier.verify(body, headers).expect("a good signature");
        assert_eq!(headers[header::CONTENT_TYPE], "application/json");
    }
    assert_eq!(received[0].1["webhook-id"], received[1].1["webhook-id"]);
    assert_eq!(received[0].2, received[1].2);
    let statuses: Vec<_> = machine
        .attempts(&id)
        .await
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(statuses, [Some(500), Some(200)]);
    let webhook = machine
        .store
        .webhook(&id)
        .await
        .expect("read")
        .expect("exists");
    assert!(webhook.last_triggered.is_some());
    machine.stop().await;
}

#[tokio::test]
async fn the_schedule_ends() {
    let (receiver, url) = Receiver::start([Answering::With(500); 9]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Failed)).await;
    assert_eq!(receiver.count(), SCHEDULE.len());
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_is_given_up_and_does_not_hold_up_another() {
    let (hanging, hanging_url) = Receiver::start([Answering::Hang; 60]).await;
    let (_well, well_url) = Receiver::start([]).await;
    let machine = Machine::start().await;
    let (stuck, well) = (
        machine.webhook(1, &hanging_url).await,
        machine.webhook(2, &well_url).await,
    );
    machine.owe(&stuck, 0..30).await;
    let begun = Instant::now();
    machine.owe(&well, 0..30).await;
    machine.until(&well, all(DeliveryState::Delivered)).await;
    assert!(begun.elapsed() < DEADLINE, "took {:?}", begun.elapsed());
    assert!(hanging.count() <= usize::try_from(MAX_PER_WEBHOOK).expect("small"));

    machine
        .until(&stuck, |deliveries| {
            deliveries.iter().any(|delivery| delivery.attempts > 0)
        })
        .await;
    let attempts = machine.attempts(&stuck).await;
    assert_eq!(attempts[0].status, None);
    assert_eq!(
        attempts[0].error.as_deref(),
        Some("no complete answer within 1 s")
    );
    machine.stop().await;
}

#[tokio::test]
async fn an_answer_that_never_ends_is_no_answer() {
    let (_receiver, url) = Receiver::start([Answering::DripForEver]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let attempts = machine.attempts(&id).await;
    assert_eq!(
        attempts[0].error.as_deref(),
        Some("no complete answer within 1 s")
    );
    assert_eq!(attempts[1].status, Some(200));
    machine.stop().await;
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (receiver, url) = Receiver::start([Answering::Redirect]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let paths: Vec<_> = receiver
        .received
        .lock()
        .iter()
        .map(|(path, ..)| path.clone())
        .collect();
    assert_eq!(paths, ["/hook", "/hook"]);
    let attempts = machine.attempts(&id).await;
    assert_eq!(
        attempts[0].error.as_deref(),
        Some("answered 307; redirects are not followed")
    );
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_its_webhook_off() {
    let (receiver, url) = Receiver::start([Answering::With(410)]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    let webhook = machine
        .store
        .webhook(&id)
        .await
        .expect("read")
        .expect("exists");
    assert!(!webhook.definition.active);
    assert_eq!(
        webhook.disabled_reason.as_deref(),
        Some("the receiver answered 410 Gone")
    );
    sleep(SCHEDULE[1] * 3 + POLL_INTERVAL).await;
    assert_eq!(receiver.count(), 1, "nothing more is sent");
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_may_ask_for_a_longer_pause() {
    let (receiver, url) = Receiver::start([Answering::RetryAfter(3600)]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    let delivery = machine
        .store
        .deliveries_of(&id, 0, 1)
        .await
        .expect("read")
        .remove(0);
    let in_half_an_hour = Timestamp::from(SystemTime::now()).after(Duration::from_secs(1800));
    assert!(delivery.next_attempt_at > in_half_an_hour);
    assert_eq!(receiver.count(), 1);
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_retried() {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Failed)).await;
    let attempts = machine.attempts(&id).await;
    assert_eq!(attempts.len(), SCHEDULE.len());
    assert!(
        attempts[0]
            .error
            .as_deref()
            .is_some_and(|error| error.contains("refused")),
        "{attempts:?}"
    );
    machine.stop().await;
}

#[tokio::test]
async fn a_shutdown_lets_attempts_under_way_finish() {
    let (receiver, url) = Receiver::start([Answering::Hang, Answering::Hang]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &url).await;
    machine.owe(&id, 0..2).await;
    machine.until(&id, |_| receiver.count() == 2).await;
    let store = machine.store.clone();
    let _folder = machine.stop().await;
    let left = store.deliveries_of(&id, 0, 9).await.expect("read");
    assert!(
        left.iter().all(|delivery| delivery.attempts == 1),
        "their deadline fell into the drain: {left:?}"
    );
}

#[test]
fn every_2xx_is_acceptance_and_nothing_else() {
    let judge = |status| {
        let answer = Ok(Answer {
            status,
            retry_after: None,
        });
        super::judge(&answer, 0, &SCHEDULE, Timestamp::from_unix_millis(0), 0)
    };
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(judge(status), Outcome::Accepted, "{status}");
    }
    for status in [199, 300, 301, 304, 400, 404, 429, 500, 503] {
        assert!(matches!(judge(status), Outcome::Retry { .. }), "{status}");
    }
    assert!(matches!(judge(410), Outcome::Gone { .. }));
}
