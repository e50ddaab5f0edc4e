//! [`Client`]: makes one attempt under one deadline, to judged addresses only.
//!
//! - Every resolved address is judged, and the connection goes to judged addresses only
//!   ([`crate::resolve`]); literal addresses are judged before ([`crate::target`]).
//! - No redirects, no proxy: this is HTTP/1.1 on a connection, without a client around it that would know of either.
//! - One deadline from resolution to the last byte of the answer, of which a bounded part is read.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response,
    header::{ACCEPT, HOST, RETRY_AFTER},
};
use http_body_util::Full;
use hyper::body::Incoming;
use sluice_store::{Attempt, MAX_RESPONSE_BYTES, Timestamp};
use tokio::time::timeout;
use url::{Position, Url};

use crate::{
    address::Own,
    connection::{Connection, Outgoing},
    connector::Connector,
    error::{SendError, SetupError},
    own_addresses::OwnAddresses,
    pool::{MOST_IDLE_BY_DEFAULT, Pool},
    request::{self, SignedRequest, WebhookRequest},
    resolve::{CachedResolver, Resolver, SystemResolver},
    retry_after,
    target::{self, Reach, Zone},
    timeline::Timeline,
};

/// Shortest deadline of an attempt: an endpoint on another continent needs most of a second for TLS alone.
pub const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

/// Longest deadline of an attempt, which a lease outlives.
pub const LONGEST_DEADLINE: Duration = Duration::from_secs(30);

/// Posts messages to endpoints. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    reach: Reach,
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    own: Arc<OwnAddresses>,
    deadline: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("reach", &self.reach)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
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
    /// [`LONGEST_DEADLINE`]. It connects to none of the addresses of this machine.
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
        let own = Arc::new(OwnAddresses::read_by(Own::read, Instant::now())?);
        Ok(Self {
            reach,
            connector: Arc::new(Connector::new(resolver, Arc::clone(&own))?),
            pool: Arc::new(Pool::of(MOST_IDLE_BY_DEFAULT)),
            own,
            deadline: deadline.clamp(SHORTEST_DEADLINE, LONGEST_DEADLINE),
        })
    }

    /// The client with no more than so many connections kept open between attempts, to all endpoints together.
    #[must_use]
    pub fn keeping_open(self, most: usize) -> Self {
        Self {
            pool: Arc::new(Pool::of(most)),
            ..self
        }
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
            self.own.at(Instant::now()).judge(&[literal])?;
        }
        let SignedRequest {
            headers,
            shown,
            body,
        } = request::sign(request, attempt.started)?;
        attempt.request_headers = shown;
        let mut timeline = Timeline::start();
        let request = outgoing(&url, headers, body)?;
        let exchange = self.exchange(&url, zone, request, &mut timeline);
        let result = timeout(deadline, exchange).await;
        attempt.timings = timeline.timings();
        result.unwrap_or(Err(SendError::TimedOut { deadline }))
    }

    async fn exchange(
        &self,
        url: &Url,
        zone: Zone,
        request: Outgoing,
        timeline: &mut Timeline,
    ) -> Result<Answer, SendError> {
        let endpoint = &url[..Position::BeforePath];
        let (mut connection, response) = self.answer(url, zone, request, timeline).await?;
        timeline.answered();
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        let (body, cut) = read(&mut connection, response).await?;
        if !cut && connection.is_open() {
            self.pool.keep(endpoint, connection);
        }
        Ok(Answer {
            status,
            retry_after,
            body,
            cut,
        })
    }

    /// The head of the answer, and the connection it came by: one that was kept, if there is one.
    async fn answer(
        &self,
        url: &Url,
        zone: Zone,
        mut request: Outgoing,
        timeline: &mut Timeline,
    ) -> Result<(Connection, Response<Incoming>), SendError> {
        let endpoint = &url[..Position::BeforePath];
        while let Some(mut kept) = self.pool.take(endpoint) {
            match kept.send(request).await {
                Ok(response) => return Ok((kept, response)),
                // The endpoint has closed it, and nothing of the request was sent.
                Err(mut unsent) => match unsent.take_message() {
                    Some(message) => request = message,
                    None => return Err(SendError::broken(unsent.into_error())),
                },
            }
        }
        let mut connection = self.connector.connect(url, zone, timeline).await?;
        let response = connection.send(request).await;
        let response = response.map_err(|error| SendError::broken(error.into_error()))?;
        Ok((connection, response))
    }
}

/// The request as it is sent over a connection to where `url` leads.
fn outgoing(url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<Outgoing, SendError> {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let host = HeaderValue::from_str(host).map_err(SendError::broken)?;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().map_err(SendError::broken)?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    let any = HeaderValue::from_static("*/*");
    request.headers_mut().entry(ACCEPT).or_insert(any);
    Ok(request)
}

/// Reads the answer to its end, so that the connection can be used again, or to the most that is kept of it.
async fn read(
    connection: &mut Connection,
    response: Response<Incoming>,
) -> Result<(String, bool), SendError> {
    let mut incoming = response.into_body();
    let (mut body, mut cut) = (Vec::new(), false);
    while let Some(piece) = connection.piece(&mut incoming).await {
        let piece = piece.map_err(SendError::broken)?;
        let Ok(chunk) = piece.into_data() else {
            continue;
        };
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
