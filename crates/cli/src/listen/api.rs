//! Client of the API for `sluice listen`: temporary webhook, relay stream, reports.

use std::{collections::VecDeque, net::IpAddr, time::Duration};

use anyhow::ensure;
use reqwest::{Method, RequestBuilder, Response, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;
use url::{Host, Url};

/// How long a connection or a short answer may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a stream may be silent; the API shows that it lives four times as often.
const SILENCE: Duration = Duration::from_secs(60);

/// Why the API did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// It did not answer.
    #[error("the API does not answer: {0}")]
    Unreachable(String),
    /// It refused.
    #[error("the API answered {status}: {detail}")]
    Refused {
        /// Status.
        status: u16,
        /// What it says.
        detail: String,
    },
    /// It sent something that this version does not understand.
    #[error("the API sent {0}; is it of this version?")]
    Malformed(&'static str),
}

impl ApiError {
    /// Whether the same request may succeed later.
    pub fn passes(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::Unreachable(_) => true,
            Self::Malformed(_) => false,
        }
    }
}

impl From<reqwest::Error> for ApiError {
    fn from(error: reqwest::Error) -> Self {
        // The outermost text repeats the URL; the innermost says what happened.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        Self::Unreachable(cause.to_string())
    }
}

/// A client of the API. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Api {
    client: reqwest::Client,
    webhooks: String,
    key: Option<SecretString>,
}

/// A webhook just made.
#[derive(Debug)]
pub struct Created {
    /// Its identifier.
    pub id: String,
    /// Its signing secret.
    pub secret: String,
}

/// One message.
#[derive(Debug, Deserialize)]
pub struct RelayLine {
    /// Sent as `webhook-id`.
    pub id: String,
    /// Its number among the webhook's messages.
    pub sequence: u64,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// From 1.
    pub attempt: u32,
    /// The bytes to sign and to post.
    pub body: String,
}

/// What became of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its identifier.
    pub id: String,
    /// Whether the receiver has it.
    pub accepted: bool,
    /// Status of the answer, if one came.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: u32,
}

impl Api {
    /// A client for the API at `base`.
    ///
    /// # Errors
    /// When the key would cross the network in the clear, or TLS cannot be set up.
    pub fn new(base: &Url, key: Option<SecretString>) -> anyhow::Result<Self> {
        ensure!(
            key.is_none() || base.scheme() == "https" || is_loopback(base),
            "--api {base}: use https, or everybody on the way can read the API key"
        );
        let client = reqwest::Client::builder()
            .connect_timeout(DEADLINE)
            // A redirect would carry the key to who knows where.
            .redirect(Policy::none())
            .build()?;
        let base = base.as_str().trim_end_matches('/');
        Ok(Self {
            client,
            webhooks: format!("{base}/api/webhooks"),
            key,
        })
    }

    /// `POST /api/webhooks`.
    pub async fn create(&self, definition: &Value) -> Result<Created, ApiError> {
        let request = self.request(Method::POST, "").json(definition);
        let answer: Value = self.send(request).await?.json().await?;
        let field = |pointer| {
            let text = answer.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
                .ok_or(ApiError::Malformed("a webhook without id or secret"))
        };
        Ok(Created {
            id: field("/webhook/id")?,
            secret: field("/secret")?,
        })
    }

    /// `DELETE /api/webhooks/{id}`.
    pub async fn delete(&self, id: &str) -> Result<(), ApiError> {
        let request = self.request(Method::DELETE, &format!("/{id}"));
        self.send(request).await.map(drop)
    }

    /// `POST /api/webhooks/{id}/stream`.
    pub async fn report(&self, id: &str, report: &Report) -> Result<(), ApiError> {
        let request = self
            .request(Method::POST, &format!("/{id}/stream"))
            .json(report);
        self.send(request).await.map(drop)
    }

    /// `GET /api/webhooks/{id}/stream`.
    pub async fn stream(&self, id: &str) -> Result<Lines, ApiError> {
        let response = self
            .request(Method::GET, &format!("/{id}/stream"))
            .send()
            .await?;
        Ok(Lines {
            response: checked(response).await?,
            text: Vec::new(),
            lines: VecDeque::new(),
        })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .client
            .request(method, format!("{}{path}", self.webhooks));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        checked(request.timeout(DEADLINE).send().await?).await
    }
}

/// A successful answer, or what the API says instead.
async fn checked(response: Response) -> Result<Response, ApiError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = timeout(DEADLINE, response.text()).await;
    let text = text.ok().and_then(Result::ok).unwrap_or_default();
    let detail = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|problem| problem["detail"].as_str().map(str::to_owned));
    Err(ApiError::Refused {
        status: status.as_u16(),
        detail: detail.unwrap_or_else(|| "it does not look like Sluice".to_owned()),
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

/// An open stream.
#[derive(Debug)]
pub struct Lines {
    response: Response,
    /// The beginning of a line.
    text: Vec<u8>,
    /// Whole lines.
    lines: VecDeque<Vec<u8>>,
}

impl Lines {
    /// The next message; `None` when the API has ended the stream.
    pub async fn next(&mut self) -> Result<Option<RelayLine>, ApiError> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|_| ApiError::Malformed("a malformed message"));
            }
            let silent = |_| ApiError::Unreachable("the stream is silent".to_owned());
            let chunk = timeout(SILENCE, self.response.chunk()).await;
            let Some(chunk) = chunk.map_err(silent)?? else {
                return Ok(None);
            };
            self.lines.extend(split(&mut self.text, &chunk));
        }
    }
}

/// The lines that `chunk` ends, empty ones left out; the rest stays in `text`.
fn split(text: &mut Vec<u8>, chunk: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for part in chunk.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(part);
        if text.last() == Some(&b'\n') {
            text.pop();
            let line = std::mem::take(text);
            if !line.is_empty() {
                lines.push(line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_whatever_the_chunks() {
        let whole = b"{\"a\":1}\n\n{\"b\":2}\n{\"c\"";
        for size in 1..=whole.len() {
            let mut text = Vec::new();
            let lines: Vec<_> = whole
                .chunks(size)
                .flat_map(|chunk| split(&mut text, chunk))
                .collect();
            assert_eq!(
                lines,
                [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec()],
                "{size}"
            );
            assert_eq!(text, b"{\"c\"");
        }
    }

    #[test]
    fn a_key_does_not_cross_the_network_in_the_clear() {
        let with = |base: &str, key: Option<&str>| {
            let base = Url::parse(base).expect("a URL");
            Api::new(&base, key.map(SecretString::from)).is_ok()
        };
        assert!(with("http://127.0.0.1:8787", Some("k")));
        assert!(with("http://localhost:8787/", Some("k")));
        assert!(with("https://sluice.example.com", Some("k")));
        assert!(!with("http://sluice.example.com", Some("k")));
        assert!(with("http://sluice.example.com", None));
    }
}
