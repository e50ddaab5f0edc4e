//! Client of one service: sends requests, repeats them where that is safe, and reads the answers.

use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use crate::{
    error::{Error, Refusal},
    items::{Framing, Items},
    request::Request,
    retry, wire,
};

/// How long a call may take, its repetitions included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often a call that may be repeated is sent at most.
const ATTEMPTS: u32 = 4;

/// The header by which the service's log names a request.
const REQUEST_ID: &str = "x-request-id";

/// A client of one service. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    attempts: u32,
}

impl Client {
    /// A client of the service at a URL, such as `https://sluice.example`.
    ///
    /// # Errors
    /// When it is no URL of HTTP, or the platform has no root certificates.
    pub fn new(url: &str) -> Result<Self, Error> {
        let refused = |reason| Error::Argument {
            name: "url".to_owned(),
            reason,
        };
        let base = Url::parse(url).map_err(|_| refused("it is no URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(refused("it does not begin with http:// or https://"));
        }
        let http = reqwest::Client::builder()
            .build()
            .map_err(Error::Connection)?;
        Ok(Self {
            http,
            base,
            authorization: None,
            timeout: TIMEOUT,
            attempts: ATTEMPTS,
        })
    }

    /// With an API key, for webhooks.
    ///
    /// # Errors
    /// When it has letters that no key has.
    pub fn with_api_key(mut self, key: &str) -> Result<Self, Error> {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| Error::Argument {
                name: "key".to_owned(),
                reason: "it has letters that no API key has",
            })?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// With another HTTP client than its own, for settings of TLS or a proxy.
    #[must_use]
    pub fn with_http(mut self, http: reqwest::Client) -> Self {
        self.http = http;
        self
    }

    /// With another limit than ten seconds for a call, its repetitions included.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With another limit than four for how often a call that may be repeated is sent.
    #[must_use]
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Carries out an operation, whose answer is one of these statuses and is read as JSON.
    async fn call<T: DeserializeOwned>(
        &self,
        request: Request,
        accepted: &[u16],
    ) -> Result<T, Error> {
        let body = self.bytes(&request, accepted).await?;
        serde_json::from_slice(&body).map_err(Error::Unreadable)
    }

    /// Carries out an operation whose answer has no body.
    async fn carry_out(&self, request: Request) -> Result<(), Error> {
        self.bytes(&request, &[]).await.map(drop)
    }

    /// Begins an operation whose answer goes on. One attempt; the limit of time is for its beginning alone.
    async fn open<T: DeserializeOwned>(
        &self,
        request: Request,
        framing: Framing,
    ) -> Result<Items<T>, Error> {
        let deadline = Instant::now() + self.timeout;
        let sent = timeout_at(deadline, self.send(&request, framing.media()));
        let response = sent.await.map_err(|_| Error::TimedOut(self.timeout))??;
        if response.status().is_success() {
            return Ok(Items::new(response, framing));
        }
        let refused = timeout_at(deadline, refusal(response, 1));
        Err(refused.await.map_err(|_| Error::TimedOut(self.timeout))?)
    }

    async fn bytes(&self, request: &Request, accepted: &[u16]) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + self.timeout;
        let most = if request.is_repeatable() {
            self.attempts
        } else {
            1
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let attempt = timeout_at(deadline, self.attempt(request, accepted, attempts));
            let failed = match attempt.await {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failed)) => failed,
                Err(_) => return Err(Error::TimedOut(self.timeout)),
            };
            let pause = retry::pause_after(attempts, failed.asked, rand::random());
            // A pause that outlasts the call would only hide what failed.
            if !failed.may_pass || attempts >= most || Instant::now() + pause >= deadline {
                return Err(failed.error);
            }
            sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        request: &Request,
        accepted: &[u16],
        attempts: u32,
    ) -> Result<Vec<u8>, Failed> {
        let response = self.send(request, "application/json").await?;
        let status = response.status();
        if status.is_success() || accepted.contains(&status.as_u16()) {
            let body = response.bytes().await.map_err(Error::Connection)?;
            return Ok(body.into());
        }
        let header = response.headers().get(RETRY_AFTER);
        let asked = retry::retry_after(header.and_then(|value| value.to_str().ok()), time_of_day());
        Err(Failed {
            may_pass: retry::is_passing(status.as_u16()),
            asked,
            error: refusal(response, attempts).await,
        })
    }

    async fn send(&self, request: &Request, accept: &'static str) -> Result<Response, Error> {
        let mut builder = self
            .http
            .request(request.method.clone(), request.url(&self.base))
            .headers(request.headers.clone())
            .header(ACCEPT, accept);
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(body) = &request.body {
            builder = builder
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        builder.send().await.map_err(Error::Connection)
    }
}

/// An attempt that failed.
struct Failed {
    error: Error,
    may_pass: bool,
    /// How long the service asks to wait.
    asked: Duration,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self {
            may_pass: error.is_passing(),
            asked: Duration::ZERO,
            error,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a date in Retry-After means nothing without the caller's own clock"
)]
fn time_of_day() -> SystemTime {
    SystemTime::now()
}

/// What an answer that is no success means.
async fn refusal(response: Response, attempts: u32) -> Error {
    let status: StatusCode = response.status();
    let request_id = response.headers().get(REQUEST_ID);
    let request_id = request_id.and_then(|id| Some(id.to_str().ok()?.to_owned()));
    let body = match response.bytes().await {
        Ok(body) => body,
        Err(error) => return Error::Connection(error),
    };
    match serde_json::from_slice::<wire::Problem>(&body) {
        Ok(problem) => Error::Refused(Box::new(Refusal {
            problem,
            request_id,
            attempts,
        })),
        Err(_) => Error::NotTheService {
            status: status.as_u16(),
        },
    }
}

include!(concat!(env!("OUT_DIR"), "/operations.rs"));
