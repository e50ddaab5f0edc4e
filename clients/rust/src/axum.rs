//! Extractor of axum: a handler gets a delivery only when it was verified.

use std::{fmt, sync::Arc};

use axum::{
    body::{Body, to_bytes},
    extract::{FromRef, FromRequest, Request},
    http::StatusCode,
};

use crate::verify::{Delivery, VerificationError, verify};

/// The longest body that is read, as it is sent: an account of 10 MiB is 14 MiB in base64.
pub const MOST_BYTES_SENT: usize = 32 * 1024 * 1024;

/// The secrets of a webhook: the current one, and during a rotation the one before.
#[derive(Clone)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// These secrets, each of which may sign.
    pub fn new<S: Into<String>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self(secrets.into_iter().map(Into::into).collect())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

/// A delivery that was verified with the [`Secrets`] of the router's state.
///
/// What was not signed is answered with 400 before the handler is called, a body that is too long with 413.
#[derive(Clone, Debug)]
pub struct Verified(pub Delivery);

impl<S> FromRequest<S> for Verified
where
    S: Send + Sync,
    Secrets: FromRef<S>,
{
    type Rejection = (StatusCode, String);

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let Secrets(secrets) = Secrets::from_ref(state);
        let (parts, body) = request.into_parts();
        let body = read(body).await?;
        let delivery = verify(&body, &parts.headers, &secrets);
        delivery.map(Self).map_err(|error| match error {
            // A fault of the receiver's, which another attempt may find mended.
            VerificationError::Secret => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            _ => (StatusCode::BAD_REQUEST, error.to_string()),
        })
    }
}

async fn read(body: Body) -> Result<bytes::Bytes, (StatusCode, String)> {
    to_bytes(body, MOST_BYTES_SENT).await.map_err(|error| {
        let text = format!("the body is longer than {MOST_BYTES_SENT} bytes or was cut: {error}");
        (StatusCode::PAYLOAD_TOO_LARGE, text)
    })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use axum::{Router, routing::post};
    use standardwebhooks::Webhook;
    use tokio::net::TcpListener;

    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "the library that verifies reads the clock itself"
    )]
    fn now() -> SystemTime {
        SystemTime::now()
    }

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &str = r#"{"type":"heartbeat","timestamp":"2026-11-23T00:00:00Z","webhookId":"wh_1","sequence":1,"slot":2,"commitment":"confirmed","data":{"lastSlot":2,"lastSequence":1,"filter":{"digest":"d","accounts":1,"programs":0}}}"#;

    async fn handle(Verified(delivery): Verified) -> String {
        delivery.id
    }

    #[tokio::test]
    async fn a_handler_is_called_with_what_was_signed_and_with_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let state = Secrets::new([SECRET]);
        assert_eq!(format!("{state:?}"), "1 secrets");
        let router = Router::new().route("/", post(handle)).with_state(state);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let now = now().duration_since(SystemTime::UNIX_EPOCH);
        let now = i64::try_from(now.expect("after 1970").as_secs()).expect("small");
        let webhook = Webhook::new(SECRET).expect("a secret");
        let signature = webhook.sign("msg_1", now, BODY.as_bytes()).expect("text");
        let send = async |signature: &str, body: &'static str| {
            let request = reqwest::Client::new().post(&url).body(body);
            let request = request.header("webhook-id", "msg_1");
            let request = request.header("webhook-timestamp", now.to_string());
            let answer = request.header("webhook-signature", signature).send().await;
            let answer = answer.expect("an answer");
            (answer.status().as_u16(), answer.text().await.expect("text"))
        };
        assert_eq!(send(&signature, BODY).await, (200, "msg_1".to_owned()));
        assert_eq!(send(&signature, "{}").await.0, 400);
        assert_eq!(send("v1,AAAA", BODY).await.0, 400);
    }
}
