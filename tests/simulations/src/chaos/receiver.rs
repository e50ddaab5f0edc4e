//! Receivers that answer as receivers do: mostly well, and else in every wrong way. One server plays them all, on
//! bare sockets, because a library would not let it lie.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use rand::{Rng, SeedableRng, rngs::StdRng};
use sha2::{Digest, Sha256};
use standardwebhooks::HEADER_WEBHOOK_ID;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
    time::sleep,
};

use super::ledger::Ledger;

/// Path of the receivers; the webhook's id follows.
const HOOK: &str = "/hook/";

/// Where redirects lead. Nobody may ever come here.
const ELSEWHERE: &str = "/elsewhere";

/// Most headers of a request, and most bytes of their text.
const MOST_HEADERS: usize = 32;
const MOST_HEAD_BYTES: usize = 16 * 1024;

/// How long an answer is held back that never comes, and between two bytes of one that drips. Both are beyond the
/// deadline of the senders, which is [`super::process::DEADLINE_SECS`].
const HANGING: Duration = Duration::from_secs(4);
const DRIP: Duration = Duration::from_millis(200);

/// What a dripping answer promises, bytes: four seconds of it.
const DRIPPING_BYTES: usize = 20;

/// Weather changes this often; in one of so many such times a receiver fails whatever comes.
const WEATHER: Duration = Duration::from_secs(4);
const STORM_ONE_IN: u32 = 12;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// 200.
    Well,
    /// 200, and more bytes than it says.
    TooLong,
    /// 500.
    Refused,
    /// 429, which asks for a pause.
    TooMuch,
    /// 307 to another place.
    Redirected,
    /// Nothing at all.
    Hanging,
    /// 200, byte by byte, past every deadline.
    Dripping,
    /// A reset instead of an answer.
    Reset,
    /// A reset before the request is read.
    Unread,
    /// 200, and fewer bytes than it says.
    TooShort,
    /// The end, in the middle of the status line.
    BrokenOff,
}

impl Answer {
    /// Whether a sender may take it for acceptance. With more bytes than announced, the announced ones are a whole
    /// answer.
    const fn accepts(self) -> bool {
        matches!(self, Self::Well | Self::TooLong)
    }

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Well => "accepted",
            Self::TooLong => "accepted, with more bytes than said",
            Self::Refused => "500",
            Self::TooMuch => "429",
            Self::Redirected => "307",
            Self::Hanging => "no answer",
            Self::Dripping => "200, dripping",
            Self::Reset => "reset",
            Self::Unread => "reset while sending",
            Self::TooShort => "200, fewer bytes than said",
            Self::BrokenOff => "half a status line",
        }
    }

    /// The answer to a request that nobody wrote a script for. In a storm none is good.
    fn draw(rng: &mut StdRng, storm: bool) -> Self {
        // Of a thousand.
        let lot = rng.random_range(if storm { 700 } else { 0 }..1_000);
        match lot {
            0..670 => Self::Well,
            670..700 => Self::TooLong,
            700..760 => Self::Refused,
            760..762 => Self::TooMuch,
            762..800 => Self::Redirected,
            800..830 => Self::Hanging,
            830..860 => Self::Dripping,
            860..900 => Self::Reset,
            900..930 => Self::Unread,
            930..970 => Self::TooShort,
            _ => Self::BrokenOff,
        }
    }
}

/// What every connection shares.
struct Shared {
    address: SocketAddr,
    seed: u64,
    begun: Instant,
    healed: AtomicBool,
    ledger: Mutex<Ledger>,
    answered: Mutex<std::collections::BTreeMap<Answer, u64>>,
    asked: Mutex<std::collections::HashMap<String, u64>>,
}

/// The receivers. Dropping them ends them.
pub struct Receivers {
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receivers {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let shared = Arc::new(Shared {
            address: listener.local_addr()?,
            seed,
            begun: Instant::now(),
            healed: AtomicBool::new(false),
            ledger: Mutex::default(),
            answered: Mutex::default(),
            asked: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            accepting: accepting.abort_handle(),
        })
    }

    /// The address of a webhook's receiver.
    #[must_use]
    pub fn url(&self, webhook: &str) -> String {
        format!("http://{}{HOOK}{webhook}", self.shared.address)
    }

    /// From now on all answer well.
    pub fn heal(&self) {
        self.shared.healed.store(true, Ordering::SeqCst);
    }

    /// What arrived. Never held while waiting.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.shared.ledger)
    }

    /// How often each answer was given.
    #[must_use]
    pub fn answered(&self) -> Vec<(Answer, u64)> {
        let answered = lock(&self.shared.answered);
        answered
            .iter()
            .map(|(answer, count)| (*answer, *count))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((connection, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                // Senders are killed all the time, and what they were sending breaks off.
                let _ = serve(connection, &shared).await;
            });
        }
    }
}

/// The head of a request.
struct Head {
    path: String,
    headers: HeaderMap,
    /// Bytes of the body, and how many bytes of what was read are the head's.
    body_len: usize,
    len: usize,
}

async fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut read = Vec::new();
    loop {
        let head = loop {
            match head_of(&read)? {
                Some(head) => break head,
                None if read.len() > MOST_HEAD_BYTES => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                None if connection.read_buf(&mut read).await? == 0 => return Ok(()),
                None => {}
            }
        };
        let Some(webhook) = head.path.strip_prefix(HOOK) else {
            lock(&shared.ledger).fault(format!("somebody came to {}", head.path));
            return Ok(());
        };
        let answer = shared.answer(webhook, &head.headers);
        *lock(&shared.answered).entry(answer).or_default() += 1;
        if answer == Answer::Unread {
            return connection.set_zero_linger();
        }
        let end = head.len + head.body_len;
        while read.len() < end {
            if connection.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        let body = &read[head.len..end];
        lock(&shared.ledger).take(webhook, &head.headers, body, answer.accepts());
        if !give(&mut connection, answer, shared.address).await? {
            return Ok(());
        }
        read.drain(..end);
    }
}

impl Shared {
    /// The same for the same attempt at the same message of the same run, whatever happens beside it.
    fn answer(&self, webhook: &str, headers: &HeaderMap) -> Answer {
        if self.healed.load(Ordering::SeqCst) {
            return Answer::Well;
        }
        let id = headers
            .get(HEADER_WEBHOOK_ID)
            .map_or(&[][..], HeaderValue::as_bytes);
        let attempt = {
            let mut asked = lock(&self.asked);
            let attempt = asked
                .entry(String::from_utf8_lossy(id).into_owned())
                .or_default();
            *attempt += 1;
            *attempt
        };
        let time = self.begun.elapsed().as_secs() / WEATHER.as_secs();
        let mut weather = self.rng(webhook.as_bytes(), time);
        let storm = weather.random_ratio(1, STORM_ONE_IN);
        Answer::draw(&mut self.rng(id, attempt), storm)
    }

    fn rng(&self, what: &[u8], number: u64) -> StdRng {
        let digest = Sha256::new()
            .chain_update(self.seed.to_le_bytes())
            .chain_update(number.to_le_bytes())
            .chain_update(what)
            .finalize();
        StdRng::from_seed(digest.into())
    }
}

/// Reads the head of a request, once it is whole.
fn head_of(read: &[u8]) -> io::Result<Option<Head>> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let len = match request.parse(read).map_err(invalid)? {
        httparse::Status::Complete(len) => len,
        httparse::Status::Partial => return Ok(None),
    };
    let mut map = HeaderMap::new();
    for header in request.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_bytes(header.value);
        map.append(
            name.map_err(|_| io::ErrorKind::InvalidData)?,
            value.map_err(|_| io::ErrorKind::InvalidData)?,
        );
    }
    let body_len = map
        .get("content-length")
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(Head {
        path: request.path.unwrap_or_default().to_owned(),
        headers: map,
        body_len,
        len,
    }))
}

/// Gives an answer; false when it ends the connection.
async fn give(connection: &mut TcpStream, answer: Answer, here: SocketAddr) -> io::Result<bool> {
    let text = match answer {
        Answer::Well => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        Answer::TooLong => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more".to_owned(),
        Answer::Refused => {
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops".to_owned()
        }
        Answer::TooMuch => {
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
                .to_owned()
        }
        Answer::Redirected => format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{here}{ELSEWHERE}\r\nContent-Length: 0\r\n\r\n"
        ),
        Answer::Hanging => {
            sleep(HANGING).await;
            return Ok(false);
        }
        Answer::Dripping => return drip(connection).await,
        Answer::Reset | Answer::Unread => {
            connection.set_zero_linger()?;
            return Ok(false);
        }
        Answer::TooShort => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok".to_owned(),
        Answer::BrokenOff => "HTTP/1.1 20".to_owned(),
    };
    connection.write_all(text.as_bytes()).await?;
    Ok(matches!(
        answer,
        Answer::Well | Answer::Refused | Answer::TooMuch | Answer::Redirected
    ))
}

async fn drip(connection: &mut TcpStream) -> io::Result<bool> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {DRIPPING_BYTES}\r\n\r\n");
    connection.write_all(head.as_bytes()).await?;
    for _ in 0..DRIPPING_BYTES {
        sleep(DRIP).await;
        connection.write_all(b".").await?;
    }
    Ok(false)
}
