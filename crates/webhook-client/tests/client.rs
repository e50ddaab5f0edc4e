//! The client against receivers on loopback addresses, and names whose addresses change.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use sluice_store::{Attempt, DeliveryOptions, MAX_RESPONSE_BYTES, MessageId, Secret, Secrets};
use sluice_testkit::webhook_receiver::{Reply, RequestHead, WebhookReceiver};
use sluice_webhook_client::{
    Client, Reach, WebhookRequest,
    resolve::{Lookup, Resolver},
};

/// Deadline of an attempt where each is answered: longer than any answer takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Deadline of an attempt that outlives it.
const SHORT_DEADLINE: Duration = Duration::from_secs(3);

/// Answers the first lookup with the first list, the second with the second, and so on; the last one for
/// ever.
struct Rebinding {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Rebinding {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |text: &&str| text.parse().expect("an address");
        Arc::new(Self {
            answers: Mutex::new(
                answers
                    .iter()
                    .map(|list| list.iter().map(parse).collect())
                    .collect(),
            ),
            lookups: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Rebinding {
    fn lookup(&self, _: &str) -> Lookup {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().expect("not poisoned");
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no answer")) })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "any time will do, and is not worth a dependency"
)]
async fn post(client: &Client, url: &str) -> Attempt {
    let secrets = Secrets {
        current: Secret::from_random([1; 32]),
        previous: Vec::new(),
    };
    let request = WebhookRequest {
        id: &MessageId::from_bytes([1; 32]),
        url,
        secrets: &secrets,
        headers: &[],
        gzip: false,
        options: &DeliveryOptions::default(),
        body: "{}",
    };
    client.post(&request, SystemTime::now()).await
}

/// Listens on an address and accepts everything.
async fn listen(address: Ipv4Addr, port: u16) -> WebhookReceiver {
    let address = SocketAddr::from((address, port));
    let receiver = WebhookReceiver::listen(address, |_: &RequestHead, _| Reply::Accept).await;
    receiver.expect("binds")
}

/// Listens on two addresses, on the same port of each.
async fn listen_twice(first: Ipv4Addr, second: Ipv4Addr) -> [WebhookReceiver; 2] {
    loop {
        let one = listen(first, 0).await;
        let address = SocketAddr::from((second, one.address().port()));
        // Another process may have that port of the second one.
        let other = WebhookReceiver::listen(address, |_: &RequestHead, _| Reply::Accept).await;
        if let Ok(other) = other {
            return [one, other];
        }
    }
}

fn loopback(resolver: Arc<dyn Resolver>, deadline: Duration) -> Client {
    Client::with_resolver(deadline, Reach::PublicAndLoopback, resolver).expect("TLS")
}

#[tokio::test]
async fn a_name_that_turns_to_loopback_after_it_was_judged_is_not_followed_there() {
    let inside = listen(Ipv4Addr::LOCALHOST, 0).await;
    let resolver = Rebinding::new(&[&["93.184.215.14"], &["127.0.0.1"]]);
    // The first connection may find no network at all.
    let client = loopback(Arc::clone(&resolver) as _, SHORT_DEADLINE);
    let url = format!("https://rebind.example:{}/", inside.address().port());

    let first = post(&client, &url).await;
    assert!(!first.accepted());
    assert_eq!(
        resolver.lookups.load(Ordering::SeqCst),
        1,
        "resolved once: the connection went to what was judged"
    );
    let second = post(&client, &url).await;
    let error = second.error.expect("refused");
    assert!(error.contains("not public"), "{error}");
    assert!(!error.contains("127.0.0.1"), "{error}");
    assert_eq!(inside.connections(), 0, "no connection went inside");
}

#[tokio::test]
async fn the_connection_goes_to_the_address_that_was_judged() {
    let [judged, other] = listen_twice(Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::LOCALHOST).await;
    let port = judged.address().port();
    let resolver = Rebinding::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let client = loopback(Arc::clone(&resolver) as _, DEADLINE);
    let attempt = post(&client, &format!("http://name.example:{port}/")).await;
    assert!(attempt.accepted(), "{attempt:?}");
    assert_eq!(resolver.lookups.load(Ordering::SeqCst), 1);
    assert_eq!(judged.connections(), 1);
    assert_eq!(other.connections(), 0);
    let timings = attempt.timings;
    assert!(timings.resolved.is_some() && timings.connected.is_some());
    assert!(timings.first_byte >= timings.connected, "{timings:?}");
}

#[tokio::test]
async fn a_name_with_one_bad_address_is_refused_whole() {
    let inside = listen(Ipv4Addr::LOCALHOST, 0).await;
    let resolver = Rebinding::new(&[&["127.0.0.1", "10.0.0.1"]]);
    let url = format!("http://mixed.example:{}/", inside.address().port());
    let attempt = post(&loopback(resolver, DEADLINE), &url).await;
    assert!(!attempt.accepted());
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn the_systems_names_are_judged_too() {
    let client = Client::new(DEADLINE, Reach::Public).expect("TLS");
    let attempt = post(&client, "https://localhost/").await;
    let error = attempt.error.expect("refused");
    assert!(error.contains("not public"), "{error}");
}

async fn receiver(reply: Reply) -> WebhookReceiver {
    WebhookReceiver::always(reply).await.expect("binds")
}

fn system() -> Client {
    Client::new(DEADLINE, Reach::PublicAndLoopback).expect("TLS")
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = listen(Ipv4Addr::LOCALHOST, 0).await;
    let redirect = receiver(Reply::Redirect(target.url())).await;
    let attempt = post(&system(), &redirect.url()).await;
    assert_eq!(attempt.status, Some(307));
    assert!(!attempt.accepted());
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn a_refusal_is_read_to_its_cap_and_kept_and_an_acceptance_is_not() {
    let long = "x".repeat(10 * MAX_RESPONSE_BYTES);
    let accepting = receiver(Reply::Status(200, long.clone())).await;
    let attempt = post(&system(), &accepting.url()).await;
    assert!(attempt.accepted());
    assert_eq!((attempt.response, attempt.response_cut), (None, false));
    let refusing = receiver(Reply::Status(500, long)).await;
    let attempt = post(&system(), &refusing.url()).await;
    assert!(attempt.response_cut);
    assert_eq!(
        attempt.response.map(|text| text.len()),
        Some(MAX_RESPONSE_BYTES)
    );
    let short = receiver(Reply::Status(400, "no such order".to_owned())).await;
    let attempt = post(&system(), &short.url()).await;
    assert_eq!(attempt.status, Some(400));
    assert_eq!(attempt.response.as_deref(), Some("no such order"));
    assert!(!attempt.response_cut);
}

#[tokio::test]
async fn the_deadline_covers_an_answer_that_drips() {
    let dripping = receiver(Reply::Drip).await;
    let client = Client::new(SHORT_DEADLINE, Reach::PublicAndLoopback).expect("TLS");
    let attempt = post(&client, &dripping.url()).await;
    assert_eq!(
        attempt.error.as_deref(),
        Some("no complete answer within 3 s")
    );
    assert!(attempt.timings.first_byte.is_some());
}

#[tokio::test]
async fn an_answer_shorter_than_it_says_is_no_answer() {
    let short = receiver(Reply::TooShort).await;
    let attempt = post(&system(), &short.url()).await;
    assert!(!attempt.accepted(), "{attempt:?}");
}

#[tokio::test]
async fn proxies_of_the_environment_are_not_asked() {
    // Set for this test's process alone: the runner gives each test a process of its own, and the other
    // tests of this file do not depend on a proxy either.
    let proxy = listen(Ipv4Addr::LOCALHOST, 0).await;
    let address = proxy.address();
    let status = tokio::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_redirect_is_not_followed"])
        .env("HTTP_PROXY", format!("http://{address}"))
        .env("http_proxy", format!("http://{address}"))
        .env("ALL_PROXY", format!("http://{address}"))
        .status()
        .await
        .expect("runs");
    assert!(status.success());
    assert_eq!(proxy.connections(), 0);
}
