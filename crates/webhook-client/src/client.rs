//! [`Client`]: makes one attempt under one deadline, to judged addresses only.
//!
//! - Every resolved address is judged, and the connection goes to judged addresses only
//!   ([`crate::resolve`]); literal addresses are judged before ([`crate::target`]).
//! - No redirects, no proxy from the environment.
//! - One deadline from resolution to the last byte of the answer, of which a bounded part is read.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use reqwest::{Response, header::RETRY_AFTER, redirect::Policy};
use sluice_store::{Attempt, MAX_RESPONSE_BYTES, Timestamp};
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    address::Own,
    request::{self, RequestError, SignedRequest, WebhookRequest},
    resolve::{CachedResolver, Judging, Resolver, SystemResolver},
    retry_after,
    target::{self, Reach, TargetFault, Zone},
    timeline::{TimedConnector, Timeline},
};

/// Shortest deadline of an attempt: an endpoint on another continent needs most of a second for TLS alone.
pub const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

/// Longest deadline of an attempt, which a lease outlives.
pub const LONGEST_DEADLINE: Duration = Duration::from_secs(30);

/// Connections kept open to one endpoint between attempts, no fewer than are made to it at once.
const IDLE_CONNECTIONS: usize = 16;

/// How long they are kept: less than the minute after which many servers close theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an attempt brought no complete answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// The URL may not be called, or its address not be connected to.
    #[error("the URL may not be called: {0}")]
    Target(#[from] TargetFault),
    /// The message cannot be written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The deadline passed.
    #[error("no complete answer within {} s", deadline.as_secs_f64())]
    TimedOut {
        /// The deadline.
        deadline: Duration,
    },
    /// Name resolution, connection, TLS or the protocol failed.
    #[error("{0}")]
    Failed(String),
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The TLS library cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] reqwest::Error),
    /// The addresses to which nothing may be delivered, because they are this machine's, are not known.
    #[error("cannot read the addresses of this machine: {0}")]
    Addresses(#[from] io::Error),
}

/// Posts messages to endpoints. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    reach: Reach,
    public: reqwest::Client,
    loopback: reqwest::Client,
    own: Own,
    deadline: Duration,
}

/// A complete answer.
struct Answer {
    status: u16,
    /// The header, as it came.
    retry_after: Option<String>,
    body: String,
    cut: bool,
}

impl Client {
    /// A client with this deadline per attempt, held between [`SHORTEST_DEADLINE`] and
    /// [`LONGEST_DEADLINE`]. It connects to none of the addresses that this machine has now.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(deadline: Duration, reach: Reach) -> Result<Self, SetupError> {
        let resolver = CachedResolver::new(Arc::new(SystemResolver));
        Self::with_resolver(deadline, reach, Arc::new(resolver))
    }

    /// Like [`Client::new`], with names resolved by `resolver`. What it answers is judged all the same.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn with_resolver(
        deadline: Duration,
        reach: Reach,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, SetupError> {
        let own = Own::read()?;
        let of_zone = |zone| {
            builder(Judging {
                resolver: Arc::clone(&resolver),
                zone,
                own: own.clone(),
            })
        };
        Ok(Self {
            reach,
            public: of_zone(Zone::Public).https_only(true).build()?,
            loopback: of_zone(Zone::Loopback).build()?,
            own,
            deadline: deadline.clamp(SHORTEST_DEADLINE, LONGEST_DEADLINE),
        })
    }

    /// The deadline of an attempt.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Makes one attempt, which begins at `now`. Every failure is in the attempt that it returns.
    pub async fn post(&self, request: &WebhookRequest<'_>, now: SystemTime) -> Attempt {
        let (started, began) = (Timestamp::from(now), Instant::now());
        let mut attempt = Attempt {
            number: 0,
            url: request.url.to_owned(),
            started,
            duration: Duration::ZERO,
            timings: sluice_store::Timings::default(),
            status: None,
            error: None,
            retry_after: None,
            request_headers: Vec::new(),
            response: None,
            response_cut: false,
        };
        let result = self.send(request, &mut attempt).await;
        attempt.duration = began.elapsed();
        match result {
            Ok(answer) => {
                attempt.status = Some(answer.status);
                attempt.error = fault(answer.status);
                attempt.retry_after = answer
                    .retry_after
                    .and_then(|asked| retry_after::parse(&asked, now + attempt.duration));
                // What an endpoint says beside accepting is of no use to anybody, and there is one for each message.
                if attempt.error.is_some() {
                    attempt.response = Some(answer.body);
                    attempt.response_cut = answer.cut;
                }
            }
            Err(error) => attempt.error = Some(error.to_string()),
        }
        attempt
    }

    async fn send(
        &self,
        request: &WebhookRequest<'_>,
        attempt: &mut Attempt,
    ) -> Result<Answer, SendError> {
        let deadline = request.options.deadline(self.deadline);
        let (url, zone) = target::check(request.url, self.reach)?;
        if zone == Zone::Public
            && let Some(literal) = target::literal(&url)
        {
            self.own.judge(&[literal])?;
        }
        let SignedRequest {
            headers,
            shown,
            body,
        } = request::sign(request, attempt.started)?;
        attempt.request_headers = shown;
        let client = match zone {
            Zone::Public => &self.public,
            Zone::Loopback => &self.loopback,
        };
        let timeline = Timeline::start(&url);
        let request = client.post(url).headers(headers).body(body);
        let exchange = timeline.during(exchange(request, &timeline));
        let result = timeout(deadline, exchange).await;
        attempt.timings = timeline.timings();
        result.unwrap_or(Err(SendError::TimedOut { deadline }))
    }
}

fn builder(judging: Judging) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .dns_resolver(Arc::new(judging))
        .connector_layer(TimedConnector)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE_TIMEOUT)
}

async fn exchange(
    request: reqwest::RequestBuilder,
    timeline: &Timeline,
) -> Result<Answer, SendError> {
    let response = request.send().await.map_err(|error| failure(&error))?;
    timeline.answered();
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| Some(value.to_str().ok()?.to_owned()));
    let (body, cut) = read(response).await?;
    Ok(Answer {
        status,
        retry_after,
        body,
        cut,
    })
}

/// Reads the answer to its end, so that the connection can be used again, or to the most that is kept of
/// it; dropping it beyond closes the connection.
async fn read(mut response: Response) -> Result<(String, bool), SendError> {
    let mut body = Vec::new();
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
        let room = MAX_RESPONSE_BYTES.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok((String::from_utf8_lossy(&body).into_owned(), cut))
}

/// What is wrong with a status, in words.
fn fault(status: u16) -> Option<String> {
    match status {
        200..300 => None,
        300..400 => Some(format!("answered {status}; redirects are not followed")),
        status => Some(format!("answered {status}")),
    }
}

/// A refused address is found among the causes; otherwise their texts are joined, since the outermost
/// one says little. The URL is left out: it may hold a token.
fn failure(error: &reqwest::Error) -> SendError {
    let mut texts = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<TargetFault>() {
            return (*fault).into();
        }
        texts.push(error.to_string());
        cause = error.source();
    }
    if texts.is_empty() {
        return SendError::Failed("the request failed".to_owned());
    }
    SendError::Failed(texts.join(": "))
}
