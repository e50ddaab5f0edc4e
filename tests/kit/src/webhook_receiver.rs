//! Webhook receiver: an HTTP server on bare sockets that answers as scripted, in right ways and in wrong ones.
//!
//! It stands for an integrator's endpoint, and is stricter than one: it takes nothing but a `POST` with a length, and
//! once it knows a secret, nothing that no known secret signed. What it does not take is a fault, answered with 400 or
//! 401, and must be asked for with [`WebhookReceiver::faults`]. A library would not let it lie, so it has none.

use std::{
    borrow::Cow,
    io::{self, Read},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use flate2::read::GzDecoder;
use standardwebhooks::Webhook as Verifier;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::arrival;

/// Most headers of a request, and most bytes of their text.
const MOST_HEADERS: usize = 64;
const MOST_HEAD_BYTES: usize = 64 * 1024;

/// Time between two bytes of an answer that drips.
const DRIP: Duration = Duration::from_millis(50);

/// How long what is expected may take to arrive: several times the lease of a delivery whose sender was killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200.
    Accept,
    /// 200, after so long.
    AcceptAfter(Duration),
    /// This status with this text.
    Status(u16, String),
    /// This status, which asks for a pause of so many seconds.
    RetryAfter(u16, u32),
    /// 307 to this URL.
    Redirect(String),
    /// Nothing, for as long as the sender waits.
    Hang,
    /// 200, byte by byte, for as long as the sender waits.
    Drip,
    /// A reset instead of an answer.
    Reset,
    /// A reset before the body is read.
    Unread,
    /// 200, and fewer bytes than it says.
    TooShort,
    /// 200, and more bytes than it says.
    TooLong,
    /// The end, in the middle of the status line.
    BrokenOff,
}

impl Reply {
    /// Whether the request's body is read before it is given.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        *self != Self::Unread
    }
}

/// A request before its body.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Path and query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
}

/// A whole request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// When its head was at this machine's socket, however long it waited there to be read.
    pub at: Instant,
    /// Path and query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, as sent.
    pub body: Bytes,
    /// The answer that it gets.
    pub reply: Reply,
}

/// Decides what is answered.
pub trait Replies: Send + Sync + 'static {
    /// The answer to a request with this head; `number` counts all requests, from 0.
    fn reply(&self, head: &RequestHead, number: usize) -> Reply;

    /// Takes note of a whole request, before it is answered.
    fn received(&self, _request: &ReceivedRequest) {}

    /// Whether requests are kept for [`WebhookReceiver::received`], which grows with every one of them.
    fn keeps(&self) -> bool {
        true
    }
}

impl<F: Fn(&RequestHead, usize) -> Reply + Send + Sync + 'static> Replies for F {
    fn reply(&self, head: &RequestHead, number: usize) -> Reply {
        self(head, number)
    }
}

/// The receiver. Dropping it ends it; connections that are open go on until their sender ends them.
pub struct WebhookReceiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    replies: Box<dyn Replies>,
    log: Mutex<Log>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct Log {
    secrets: Vec<Verifier>,
    received: Vec<ReceivedRequest>,
    faults: Vec<String>,
    begun: usize,
    taken: usize,
    connections: usize,
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl WebhookReceiver {
    /// One that gives every request this answer.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn always(reply: Reply) -> io::Result<Self> {
        Self::start(move |_: &RequestHead, _| reply.clone()).await
    }

    /// One that gives these answers in turn, and accepts what comes after them.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn in_turn(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let reply = move |_: &RequestHead, number: usize| {
            let scripted = replies.get(number).cloned();
            scripted.unwrap_or(Reply::Accept)
        };
        Self::start(reply).await
    }

    /// One on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(replies: impl Replies) -> io::Result<Self> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), replies).await
    }

    /// One at this address.
    ///
    /// # Errors
    /// When it cannot be bound.
    pub async fn listen(address: SocketAddr, replies: impl Replies) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            replies: Box::new(replies),
            log: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A callback URL of it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// From now on nothing is taken that neither this secret nor another known one signed.
    ///
    /// # Panics
    /// When it is no secret of Standard Webhooks.
    pub fn trust(&self, secret: &str) {
        let verifier = Verifier::new(secret).expect("a secret of Standard Webhooks");
        self.shared.log().secrets.push(verifier);
    }

    /// Every whole request so far, in order of arrival, those that were not taken left out.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.log().received.clone()
    }

    /// The same, once there are so many.
    ///
    /// # Errors
    /// When they do not come within two minutes: how many came instead.
    pub async fn until(&self, count: usize) -> Result<Vec<ReceivedRequest>, String> {
        let mut counted = self.shared.count.subscribe();
        let waiting = timeout(PATIENCE, counted.wait_for(|received| *received >= count)).await;
        let received = self.received();
        if waiting.is_err() {
            let (came, faults) = (received.len(), self.faults());
            return Err(format!(
                "{came} of {count} requests came; faults: {faults:?}"
            ));
        }
        Ok(received)
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.log().connections
    }

    /// What was not taken, in words.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.shared.log().faults.clone()
    }
}

impl Shared {
    /// Never held while waiting.
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> usize {
        let mut log = self.log();
        log.begun += 1;
        log.begun - 1
    }

    /// Keeps a request, unless its signature is wrong; what it is answered.
    fn take(&self, request: ReceivedRequest) -> Reply {
        let mut log = self.log();
        let mut secrets = log.secrets.iter();
        let signed = log.secrets.is_empty()
            || text_of(&request).is_ok_and(|text| {
                secrets.any(|secret| secret.verify(&text, &request.headers).is_ok())
            });
        if !signed {
            let fault = format!("{}: no known secret signed it", request.path);
            log.faults.push(fault.clone());
            return Reply::Status(401, fault);
        }
        let reply = request.reply.clone();
        log.taken += 1;
        let count = log.taken;
        self.replies.received(&request);
        if self.replies.keeps() {
            log.received.push(request);
        }
        // Under the lock, so that no later count is overwritten by an earlier one.
        self.count.send_replace(count);
        reply
    }
}

/// What was signed: the body before it was compressed.
fn text_of(request: &ReceivedRequest) -> io::Result<Cow<'_, [u8]>> {
    if request
        .headers
        .get("content-encoding")
        .is_none_or(|encoding| encoding != "gzip")
    {
        return Ok(Cow::Borrowed(&request.body));
    }
    let mut text = Vec::new();
    GzDecoder::new(&request.body[..]).read_to_end(&mut text)?;
    Ok(Cow::Owned(text))
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((connection, _)) = listener.accept().await {
            shared.log().connections += 1;
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                // Senders may be killed at any time, and what they were sending breaks off.
                let _ = serve(connection, &shared).await;
            });
        }
    }
}

async fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    arrival::stamp(&connection)?;
    let (mut read, mut at) = (Vec::new(), Instant::now());
    loop {
        let (head, head_len, body_len) = loop {
            match head_of(&read) {
                Ok(Some(head)) => break head,
                Ok(None) if read.len() <= MOST_HEAD_BYTES => {
                    let Some(arrived) = arrival::read(&connection, &mut read).await? else {
                        return Ok(());
                    };
                    at = arrived;
                }
                Ok(None) => return refuse(&mut connection, shared, "an endless head").await,
                Err(fault) => return refuse(&mut connection, shared, &fault).await,
            }
        };
        let mut reply = shared.replies.reply(&head, shared.begin());
        if reply.reads_body() {
            let end = head_len + body_len;
            while read.len() < end {
                if connection.read_buf(&mut read).await? == 0 {
                    return Ok(());
                }
            }
            reply = shared.take(ReceivedRequest {
                at,
                path: head.path,
                headers: head.headers,
                body: Bytes::copy_from_slice(&read[head_len..end]),
                reply,
            });
            read.drain(..end);
        }
        if !give(&mut connection, &reply).await? {
            return Ok(());
        }
    }
}

/// Answers 400 to what is no request for a receiver.
async fn refuse(connection: &mut TcpStream, shared: &Shared, fault: &str) -> io::Result<()> {
    shared.log().faults.push(fault.to_owned());
    let reply = Reply::Status(400, fault.to_owned());
    give(connection, &reply).await.map(drop)
}

/// The head of a request, once it is whole, with its length and that of the body; or what is wrong with it.
fn head_of(read: &[u8]) -> Result<Option<(RequestHead, usize, usize)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let len = match request.parse(read).map_err(|error| error.to_string())? {
        httparse::Status::Complete(len) => len,
        httparse::Status::Partial => return Ok(None),
    };
    if request.method != Some("POST") {
        return Err(format!("a {} request", request.method.unwrap_or_default()));
    }
    let mut map = HeaderMap::with_capacity(request.headers.len());
    for header in request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_bytes(header.value);
        map.append(
            name.map_err(|error| error.to_string())?,
            value.map_err(|error| error.to_string())?,
        );
    }
    let body_len = map
        .get("content-length")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .ok_or("a request without a length")?;
    let head = RequestHead {
        path: request.path.unwrap_or_default().to_owned(),
        headers: map,
    };
    Ok(Some((head, len, body_len)))
}

/// Gives an answer; false when it ends the connection.
async fn give(connection: &mut TcpStream, reply: &Reply) -> io::Result<bool> {
    let (text, goes_on) = match reply {
        Reply::Accept => (answer(200, "", "ok"), true),
        Reply::AcceptAfter(wait) => {
            sleep(*wait).await;
            (answer(200, "", "ok"), true)
        }
        Reply::Status(status, text) => (answer(*status, "", text), true),
        Reply::RetryAfter(status, seconds) => {
            let header = format!("retry-after: {seconds}\r\n");
            (answer(*status, &header, ""), true)
        }
        Reply::Redirect(url) => (answer(307, &format!("location: {url}\r\n"), ""), true),
        Reply::Hang => {
            // The sender's patience ends before this does.
            while connection.read(&mut [0; 1024]).await? > 0 {}
            return Ok(false);
        }
        Reply::Drip => return drip(connection).await,
        Reply::Reset | Reply::Unread => {
            connection.set_zero_linger()?;
            return Ok(false);
        }
        Reply::TooShort => (
            "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nok".into(),
            false,
        ),
        Reply::TooLong => (answer(200, "", "ok") + ", and more", false),
        Reply::BrokenOff => ("HTTP/1.1 20".into(), false),
    };
    connection.write_all(text.as_bytes()).await?;
    Ok(goes_on)
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status} Scripted\r\n{headers}content-length: {len}\r\n\r\n{body}")
}

async fn drip(connection: &mut TcpStream) -> io::Result<bool> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
    connection.write_all(head).await?;
    // The sender's patience ends before this does.
    loop {
        sleep(DRIP).await;
        connection.write_all(b".").await?;
    }
}
