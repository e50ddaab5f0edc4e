//! `sluice listen` over loopback, and what the API refuses it.
//!
//! An indexer's part is played by the test, which stores messages as one would.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use service_kit::Clock;
use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, EventKind, MessageId, MessageKind, NewMessage, Store,
    Timestamp, WebhookId,
};
use sluice_testkit::webhook_receiver::{Reply, WebhookReceiver};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::ChildStdout,
    time::timeout,
};

use super::{Installation, PATIENCE, PROGRAM, text};

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
