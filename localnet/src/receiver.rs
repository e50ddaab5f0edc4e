//! Webhook receiver: checks the signature of every delivery, as each receiver should, and keeps it.
//!
//! It is apart from the receiver of tests, because the localnet is built without them, and because it plays no fault: it is
//! an integrator's endpoint as it should be, stricter than most in that it answers 401 to what its secret did not sign.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use serde_json::Value;
use standardwebhooks::{HEADER_WEBHOOK_ID, Webhook};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// How long a delivery waits for the secret, which the creator of the webhook learns a moment after
/// the service starts to deliver.
const SECRET_DEADLINE: Duration = Duration::from_secs(5);

/// A delivery whose signature was good.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its `webhook-id`.
    pub id: String,
    /// The body.
    pub body: Value,
    /// When it arrived.
    pub arrived: Instant,
}

impl Message {
    /// The kind of event, `type` of the body.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.body.get("type").and_then(Value::as_str).unwrap_or("")
    }
}

/// What has arrived so far.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Deliveries with a good signature, in order of arrival.
    pub messages: Vec<Message>,
    /// Why other deliveries were refused.
    pub refused: Vec<String>,
}

/// A receiver on loopback. Its port is closed when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    secret: watch::Sender<Option<String>>,
    received: watch::Receiver<Received>,
    server: JoinHandle<()>,
}

struct Inbox {
    secret: watch::Receiver<Option<String>>,
    received: watch::Sender<Received>,
}

impl Receiver {
    /// Starts a receiver on a port of this machine; 0 takes any free one.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub async fn start(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (secret, secret_of_inbox) = watch::channel(None);
        let (sender, received) = watch::channel(Received::default());
        let inbox = Arc::new(Inbox {
            secret: secret_of_inbox,
            received: sender,
        });
        let router = Router::new().route("/hook", post(take)).with_state(inbox);
        let server = tokio::spawn(async move {
            // Ends only with the task: accepting on a bound listener does not fail for good.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            secret,
            received,
            server,
        })
    }

    /// The callback URL to subscribe.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Sets the secret that deliveries are checked with.
    pub fn set_secret(&self, secret: &str) {
        self.secret.send_replace(Some(secret.to_owned()));
    }

    /// What has arrived so far.
    #[must_use]
    pub fn received(&self) -> Received {
        self.received.borrow().clone()
    }

    /// Closes the port, and returns which it was.
    pub async fn stop(mut self) -> u16 {
        self.server.abort();
        // The listener is closed once the aborted task is gone.
        let _ = (&mut self.server).await;
        self.address.port()
    }

    /// Waits until `wanted` finds what it looks for among the messages.
    ///
    /// # Errors
    /// When it does not within `patience`, or a delivery with a bad signature arrives.
    pub async fn wait_for<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut wanted: impl FnMut(&[Message]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let received = self.received.borrow_and_update().clone();
            if let Some(reason) = received.refused.first() {
                bail!("a delivery was not acceptable: {reason}");
            }
            if let Some(found) = wanted(&received.messages) {
                return Ok(found);
            }
            let arrived: Vec<&str> = received.messages.iter().map(Message::kind).collect();
            tokio::time::timeout_at(deadline, self.received.changed())
                .await
                .with_context(|| {
                    format!(
                        "no {what} within {} s; arrived so far: {arrived:?}",
                        patience.as_secs()
                    )
                })??;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    match accept(&inbox, &headers, &body).await {
        Ok(message) => {
            inbox
                .received
                .send_modify(|received| received.messages.push(message));
            StatusCode::NO_CONTENT
        }
        Err(error) => {
            let reason = format!("{error:#}");
            inbox
                .received
                .send_modify(|received| received.refused.push(reason));
            StatusCode::UNAUTHORIZED
        }
    }
}

async fn accept(inbox: &Inbox, headers: &HeaderMap, body: &[u8]) -> anyhow::Result<Message> {
    let arrived = Instant::now();
    let mut secret = inbox.secret.clone();
    let known = tokio::time::timeout(SECRET_DEADLINE, secret.wait_for(Option::is_some))
        .await
        .context("no secret to check it with")??
        .clone()
        .unwrap_or_default();
    Webhook::new(&known)?.verify(body, headers)?;
    let id = headers
        .get(HEADER_WEBHOOK_ID)
        .context("no webhook-id")?
        .to_str()?
        .to_owned();
    Ok(Message {
        id,
        body: serde_json::from_slice(body).context("the body is no JSON")?,
        arrived,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[expect(
        clippy::disallowed_methods,
        reason = "the verifier compares with the system's clock"
    )]
    async fn deliver(receiver: &Receiver, secret: &str, body: &str) -> StatusCode {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the clock is past 1970")
            .as_secs();
        let now = i64::try_from(now).expect("this century");
        let signature = Webhook::new(secret)
            .and_then(|webhook| webhook.sign("msg_1", now, body.as_bytes()))
            .expect("the secret is valid");
        reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .no_proxy()
            .build()
            .expect("the client can be built")
            .post(receiver.url())
            .header("webhook-id", "msg_1")
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", signature)
            .body(body.to_owned())
            .send()
            .await
            .expect("the receiver listens")
            .status()
    }

    #[tokio::test]
    async fn keeps_what_is_signed_well() {
        let mut receiver = Receiver::start(0).await.expect("a port is free");
        receiver.set_secret(SECRET);
        let status = deliver(&receiver, SECRET, r#"{"type":"transaction"}"#).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let id = receiver
            .wait_for("message", Duration::from_secs(60), |messages| {
                messages.first().map(|message| message.id.clone())
            })
            .await
            .expect("it was kept");
        assert_eq!(id, "msg_1");
    }

    #[tokio::test]
    async fn refuses_what_another_secret_signed() {
        let mut receiver = Receiver::start(0).await.expect("a port is free");
        receiver.set_secret(SECRET);
        let status = deliver(&receiver, "whsec_c29tZXRoaW5nIGVsc2U=", "{}").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let waited = receiver
            .wait_for("message", Duration::from_secs(5), |messages| {
                messages.first().map(|_| ())
            })
            .await;
        assert!(waited.is_err());
    }
}
