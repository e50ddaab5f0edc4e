//! Receivers that answer as receivers do: mostly well, and else in every wrong way, drawn by a seed.
//!
//! They stand for subscribers' endpoints, and are stricter in that each fails in all ways within minutes, and in that a message
//! whose signature, order or number is wrong is written down as a fault instead of being ignored.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::{HeaderMap, HeaderValue};
use rand::{Rng, SeedableRng, rngs::StdRng};
use sha2::{Digest, Sha256};
use sluice_testkit::{
    network_link::NetworkLink,
    webhook_receiver::{ReceivedRequest, Replies, Reply, RequestHead, WebhookReceiver},
};
use standardwebhooks::HEADER_WEBHOOK_ID;

use super::{
    history::arrival_line,
    ledger::{Arrival, Headers, Ledger},
};

/// Path of the receivers; the webhook's id follows.
const HOOK: &str = "/hook/";

/// Where redirects lead. No sender may ever come here.
const ELSEWHERE: &str = "/elsewhere";

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
    fn reply(self) -> Reply {
        match self {
            Self::Well => Reply::Accept,
            Self::TooLong => Reply::TooLong,
            Self::Refused => Reply::Status(500, "oops".to_owned()),
            Self::TooMuch => Reply::RetryAfter(429, 1),
            Self::Redirected => Reply::Redirect(ELSEWHERE.to_owned()),
            Self::Hanging => Reply::Hang,
            Self::Dripping => Reply::Drip,
            Self::Reset => Reply::Reset,
            Self::Unread => Reply::Unread,
            Self::TooShort => Reply::TooShort,
            Self::BrokenOff => Reply::BrokenOff,
        }
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

    /// A random answer. In a storm none is good.
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

/// Draws the answers, and keeps what arrived.
struct Drawn {
    seed: u64,
    begun: Instant,
    healed: AtomicBool,
    /// How far the clocks of senders have been off at most, seconds.
    clocks_off: AtomicU64,
    ledger: Mutex<Ledger>,
    /// The lines of the history.
    written: Mutex<BufWriter<File>>,
    answered: Mutex<std::collections::BTreeMap<Answer, u64>>,
    asked: Mutex<std::collections::HashMap<String, u64>>,
}

/// The receivers of all webhooks. Dropping them ends them.
pub struct Receivers {
    drawn: Arc<Drawn>,
    server: WebhookReceiver,
    /// The way of every process to it.
    link: NetworkLink,
}

impl Receivers {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(seed: u64, history: File) -> io::Result<Self> {
        let drawn = Arc::new(Drawn {
            seed,
            begun: Instant::now(),
            healed: AtomicBool::new(false),
            clocks_off: AtomicU64::new(0),
            ledger: Mutex::default(),
            written: Mutex::new(BufWriter::new(history)),
            answered: Mutex::default(),
            asked: Mutex::default(),
        });
        let server = WebhookReceiver::start(Seeded(Arc::clone(&drawn))).await?;
        let link = NetworkLink::to(server.address()).await?;
        Ok(Self {
            drawn,
            server,
            link,
        })
    }

    /// The way of every process to it.
    #[must_use]
    pub fn link(&self) -> &NetworkLink {
        &self.link
    }

    /// The address of a webhook's receiver.
    #[must_use]
    pub fn url(&self, webhook: &str) -> String {
        format!("http://{}{HOOK}{webhook}", self.link.address())
    }

    /// From now on all answer well.
    pub fn heal(&self) {
        self.drawn.healed.store(true, Ordering::SeqCst);
    }

    /// From now on senders' clocks may be so many seconds off, and so may the times at which they say they signed.
    pub fn let_clocks_be_off(&self, seconds: u64) {
        self.drawn.clocks_off.fetch_max(seconds, Ordering::SeqCst);
    }

    /// What arrived. Never held while waiting.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Asked before the ledger is held, which the server locks while it holds its faults.
        let faults = self.server.faults();
        let mut ledger = lock(&self.drawn.ledger);
        for fault in faults {
            ledger.fault(fault);
        }
        ledger
    }

    /// Writes a line of the history.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, line: &str) -> io::Result<()> {
        writeln!(lock(&self.drawn.written), "{line}")
    }

    /// Writes everything that is still to be written to the file of the history.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&self) -> io::Result<()> {
        lock(&self.drawn.written).flush()
    }

    /// How often each answer was given.
    #[must_use]
    pub fn answered(&self) -> Vec<(Answer, u64)> {
        let answered = lock(&self.drawn.answered);
        answered
            .iter()
            .map(|(answer, count)| (*answer, *count))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the server asks for its replies.
struct Seeded(Arc<Drawn>);

impl Replies for Seeded {
    fn reply(&self, head: &RequestHead, _number: usize) -> Reply {
        let Some(webhook) = head.path.strip_prefix(HOOK) else {
            lock(&self.0.ledger).fault(format!("a request came to {}", head.path));
            return Reply::Reset;
        };
        let answer = self.0.answer(webhook, &head.headers);
        *lock(&self.0.answered).entry(answer).or_default() += 1;
        answer.reply()
    }

    fn received(&self, request: &ReceivedRequest) {
        // With more bytes than announced, the announced ones are a whole answer.
        let accepted = matches!(request.reply, Reply::Accept | Reply::TooLong);
        if let Some(webhook) = request.path.strip_prefix(HOOK) {
            let mut ledger = lock(&self.0.ledger);
            let arrival = self.0.arrival(webhook, request, accepted);
            ledger.take(&arrival);
            // While the ledger is held, so that both have one order.
            let written = writeln!(lock(&self.0.written), "{}", arrival_line(&arrival));
            if let Err(error) = written {
                ledger.fault(format!("the history cannot be written: {error}"));
            }
        }
    }

    fn keeps(&self) -> bool {
        false
    }
}

impl Drawn {
    #[expect(
        clippy::disallowed_methods,
        reason = "senders sign by the system's clock"
    )]
    fn arrival(&self, webhook: &str, request: &ReceivedRequest, accepted: bool) -> Arrival {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        Arrival {
            webhook: webhook.to_owned(),
            headers: Headers::of(&request.headers),
            body: String::from_utf8_lossy(&request.body).into_owned(),
            accepted,
            at: i64::try_from(seconds).unwrap_or(i64::MAX),
            clocks_off: self.clocks_off.load(Ordering::SeqCst),
        }
    }

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
