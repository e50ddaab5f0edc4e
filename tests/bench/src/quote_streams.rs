//! Quote streams: latency from seal to the last of 10,000 readers, memory of each, all reconnecting at once, as server-sent
//! events and over WebSocket, a hundred readers over a connection with HTTP/2 or one over each.
//!
//! The API and the chain before it are a process of their own, so that its memory is the readers' alone, and neither
//! process needs more files than a system lets one have.

pub mod bare;
mod readers;

use std::{
    env,
    net::SocketAddr,
    process::Stdio,
    time::{Duration, SystemTime},
};

use anyhow::Context;
use cpmm::ids;
use service_kit::{CancellationToken, Clock};
use sluice_testkit::{
    figure::{Figure, Limit},
    scripted_chain::ScriptedChain,
    scripted_pools::{self, ScriptedPools},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    task::LocalSet,
    time::sleep,
};

use self::readers::{Form, Readers, Way};
use crate::{
    http::{self, FIRST_SLOT, SLOT_TIME},
    start::resident_of,
};

/// First argument of the process that serves.
pub const CHILD: &str = "serve-streams";

/// What precedes the address in the line of the process that serves that names it.
const LISTENS: &str = "listens on ";

/// Readers, unless an argument names another number.
const READERS: usize = 10_000;

/// Slots that are measured: so many that the 99th percentile is not the worst of them.
const SLOTS: usize = 125;

/// What is measured of readers of server-sent events that share connections.
const OF_SHARED_EVENTS: [&str; 4] = [
    "Quote streams over HTTP/2: seal to the last reader, p99",
    "Quote streams over HTTP/2: resident memory of a reader",
    "Quote streams over HTTP/2: all connect again at once, until each has the newest quote",
    "Quote streams over HTTP/2: readers that lost the newest quote by it",
];

/// The same of readers over WebSocket that share connections.
const OF_SHARED_MESSAGES: [&str; 4] = [
    "Quote streams over WebSocket and HTTP/2: seal to the last reader, p99",
    "Quote streams over WebSocket and HTTP/2: resident memory of a reader",
    "Quote streams over WebSocket and HTTP/2: all connect again at once, until each has the newest quote",
    "Quote streams over WebSocket and HTTP/2: readers that lost the newest quote by it",
];

/// The same of readers of server-sent events with a connection each.
const OF_EVENTS: [&str; 4] = [
    "Quote streams over HTTP/1.1: seal to the last reader, p99",
    "Quote streams over HTTP/1.1: resident memory of a reader",
    "Quote streams over HTTP/1.1: all connect again at once, until each has the newest quote",
    "Quote streams over HTTP/1.1: readers that lost the newest quote by it",
];

/// The same of readers over WebSocket with a connection each.
const OF_MESSAGES: [&str; 4] = [
    "Quote streams over WebSocket: seal to the last reader, p99",
    "Quote streams over WebSocket: resident memory of a reader",
    "Quote streams over WebSocket: all connect again at once, until each has the newest quote",
    "Quote streams over WebSocket: readers that lost the newest quote by it",
];

/// What is swapped: enough that each change of the pool changes what comes out.
const AMOUNT: u64 = 100_000;

/// When to give up waiting for readers.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures with so many readers.
///
/// # Errors
/// When a process cannot be started, or a reader is given no quote.
pub async fn figures(readers: Option<usize>) -> anyhow::Result<Vec<Figure>> {
    LocalSet::new()
        .run_until(measure(readers.unwrap_or(READERS)))
        .await
}

async fn measure(count: usize) -> anyhow::Result<Vec<Figure>> {
    let way = |form, is_multiplexed| Way {
        form,
        is_multiplexed,
    };
    let shared_events = Measured::of(way(Form::Events, true), count).await?;
    let shared_messages = Measured::of(way(Form::Messages, true), count).await?;
    let events = Measured::of(way(Form::Events, false), count).await?;
    let bare = bare_p99(count, events.event).await?;
    let messages = Measured::of(way(Form::Messages, false), count).await?;
    let mut figures = shared_events.figures(OF_SHARED_EVENTS);
    figures.extend(shared_messages.figures(OF_SHARED_MESSAGES));
    figures.extend(events.figures(OF_EVENTS));
    figures.push(Figure::new(
        "Bare writes of as many bytes, one over each connection: from the first to the last reader, p99",
        bare.as_secs_f64() * 1_000.0,
        "ms",
        Limit::None,
    ));
    figures.push(ratio(
        "Quote streams over HTTP/1.1: seal to the last reader, p99, against bare writes",
        events.p99,
        bare,
    ));
    figures.extend(messages.figures(OF_MESSAGES));
    figures.push(ratio(
        "Quote streams over WebSocket: seal to the last reader, p99, against HTTP/1.1",
        messages.p99,
        events.p99,
    ));
    Ok(figures)
}

fn ratio(name: &'static str, one: Duration, other: Duration) -> Figure {
    let ratio = one.as_secs_f64() / other.as_secs_f64();
    Figure::new(name, ratio, "ratio", Limit::None)
}

/// What readers of one way were given, and what they cost.
struct Measured {
    p99: Duration,
    /// Resident memory of each, bytes.
    memory: f64,
    /// Bytes of the longest event.
    event: usize,
    again: Again,
}

impl Measured {
    async fn of(way: Way, count: usize) -> anyhow::Result<Self> {
        let mut server = Server::start(&[CHILD]).await?;
        let readers = Readers::new(server.address, path(), way);
        readers.open(1, None);
        readers.until(1, 0, PATIENCE).await?;
        let before = server.resident()?;
        readers.open(count - 1, None);
        readers.until(count, 0, PATIENCE).await?;
        let grown = (server.resident()? - before) * 1_024.0 * 1_024.0;
        let slots = server.slots(SLOTS).await?;
        let lags = readers.last_after(&slots, count);
        let (median, _) = percentile(50, lags.clone())?;
        let (p99, whole) = percentile(99, lags)?;
        let event = readers.longest();
        let again = reconnect(&mut server, &readers, count).await?;
        readers.close();
        println!(
            "{way:?}: {whole} of {SLOTS} slots reached all {count} readers, half of them within {median:?}; the others were skipped by some"
        );
        Ok(Self {
            p99,
            memory: grown / as_f64(count),
            event,
            again,
        })
    }

    fn figures(&self, names: [&'static str; 4]) -> Vec<Figure> {
        let [last, memory, again, lost] = names;
        vec![
            Figure::new(
                last,
                self.p99.as_secs_f64() * 1_000.0,
                "ms",
                Limit::AtMost(50.0),
            ),
            Figure::new(memory, self.memory, "bytes", Limit::AtMost(20_000.0)),
            Figure::new(again, self.again.took.as_secs_f64(), "s", Limit::None),
            Figure::new(lost, as_f64(self.again.lost), "readers", Limit::AtMost(0.0)),
        ]
    }
}

/// The lag that so many of 100 slots did not exceed, and of how many slots.
fn percentile(percent: usize, mut lags: Vec<Duration>) -> anyhow::Result<(Duration, usize)> {
    lags.sort_unstable();
    let last = (lags.len() * percent).div_ceil(100).checked_sub(1);
    let lag = last.and_then(|last| lags.get(last));
    Ok((*lag.context("no slot reached every reader")?, lags.len()))
}

/// The same of a loop that writes events of this length and does nothing else.
async fn bare_p99(count: usize, event: usize) -> anyhow::Result<Duration> {
    let mut server = Server::start(&[bare::CHILD, &event.to_string()]).await?;
    let way = Way {
        form: Form::Events,
        is_multiplexed: false,
    };
    let readers = Readers::new(server.address, path(), way);
    readers.open(count, None);
    readers.until(count, 0, PATIENCE).await?;
    let slots = server.slots(SLOTS).await?;
    // Before they are closed, with which they forget what they have received.
    let lags = readers.last_after(&slots, count);
    readers.close();
    Ok(percentile(99, lags)?.0)
}

/// What came of all readers connecting again.
struct Again {
    took: Duration,
    lost: usize,
}

async fn reconnect(server: &mut Server, readers: &Readers, count: usize) -> anyhow::Result<Again> {
    let last = server.slots(1).await?[0].slot;
    readers.close();
    let begun = tokio::time::Instant::now();
    readers.open(count, Some(last));
    // What was sealed while nobody was connected has to come, or what came after it.
    let missed = server.slots(1).await?[0].slot;
    let arrived = readers.until(count, missed, PATIENCE).await;
    Ok(Again {
        took: begun.elapsed(),
        lost: arrived.err().map_or(0, |_| count - readers.having(missed)),
    })
}

/// Exact up to 2^53; no count is near.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
const fn as_f64(count: usize) -> f64 {
    count as f64
}

fn path() -> String {
    let [input, output] = mints();
    format!("/v1/quote/stream?inputMint={input}&outputMint={output}&amount={AMOUNT}")
}

fn mints() -> [solana_pubkey::Pubkey; 2] {
    let tokens = ScriptedPools::default().pools[0].tokens;
    [tokens.token_0.mint, tokens.token_1.mint]
}

/// A slot that was sealed.
pub struct Sealed {
    slot: u64,
    at: SystemTime,
}

/// The process that serves.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Server {
    async fn start(words: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(words)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        // The chain behind it writes its slots meanwhile.
        let address = loop {
            let line = lines.next_line().await?.context("the server ended")?;
            if let Some(address) = line.strip_prefix(LISTENS) {
                break address.parse().context("where the server listens")?;
            }
        };
        Ok(Self {
            child,
            lines,
            address,
        })
    }

    fn resident(&self) -> anyhow::Result<f64> {
        let id = self.child.id().context("the server ended")?;
        resident_of(&id.to_string())
    }

    /// The next slots that are sealed.
    async fn slots(&mut self, count: usize) -> anyhow::Result<Vec<Sealed>> {
        // What was written meanwhile is past.
        let begun = Clock::system().now();
        let mut slots = Vec::new();
        while slots.len() < count {
            let line = self.lines.next_line().await?.context("the server ended")?;
            let (slot, nanos) = line.split_once(' ').context("a slot and its time")?;
            let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos.parse()?);
            if at >= begun {
                let slot = slot.parse()?;
                slots.push(Sealed { slot, at });
            }
        }
        // The last one needs its time to arrive.
        sleep(SLOT_TIME).await;
        Ok(slots)
    }
}

/// The process that serves: says where, and then of each slot when it was sealed.
///
/// # Errors
/// When the API cannot be started.
pub fn serve() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let shutdown = CancellationToken::new();
    let settings = "[api.clients]\nconnections = 40000\nstreams = 40000\n";
    let address = http::serve_api(folder.path(), settings, shutdown, |chain| async move {
        trade(&chain).await;
    })?;
    println!("{LISTENS}{address}");
    loop {
        std::thread::park();
    }
}

/// Slots pass, and in each of them the first pool pays a little more.
async fn trade(chain: &ScriptedChain) {
    let pool = ScriptedPools::default().pools[0];
    let mut tip = chain.lock().tree.confirmed();
    for slot in FIRST_SLOT + 1.. {
        let now = Clock::system().now();
        tip = chain.open(slot, tip);
        let reserve = 3_000_000 + (slot - FIRST_SLOT) * 1_000;
        chain.write(tip, pool.vaults.token_1, pool.vault_1(reserve), None);
        let clock = scripted_pools::clock_at(slot, scripted_pools::EPOCH, now);
        chain.write(tip, ids::CLOCK, clock, None);
        chain.freeze(tip);
        let sealed = Clock::system().now().duration_since(SystemTime::UNIX_EPOCH);
        chain.seal(tip);
        chain.confirm(tip);
        println!("{slot} {}", sealed.unwrap_or_default().as_nanos());
        sleep(SLOT_TIME).await;
    }
}
