//! A crowd: 10,000 connections that drip a byte a second and a flood of builds, and what of it other clients notice.
//!
//! The API is a process of its own, with the limits that it has by itself. Every address of the loopback network counts as a
//! client: the crowd has as many as no limit of one client stops it alone, and each other client has its own. What a crowd
//! costs a client is the ratio of its latencies with the crowd and without, in turns. The crowd is a third process, so that no
//! client waits in one runtime with it, and gives way to the others where processors run short: what it costs itself is another
//! machine's to pay. It takes part of the same processors all the same, so the ratio is rather too high.

use std::{
    env, io,
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::{Context, ensure};
use axum::http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_TYPE, HOST},
};
use bytes::Bytes;
use serde_json::{Value, json};
use sluice_harness::api::{ApiHarness, Lines};
use sluice_testkit::{
    figure::{Figure, Limit},
    load::{self, Load},
    names::keypair,
};
use solana_signer::Signer;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin},
    net::{TcpSocket, TcpStream},
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

/// First argument of the process that serves.
pub const CHILD: &str = "serve-a-crowd";

/// First argument of the process that is the crowd; the second is what the one that serves has said.
pub const CROWD: &str = "be-a-crowd";

/// How much the crowd gives way to other processes: all that there is.
const LOWEST_PRIORITY: &str = "19";

/// Connections that drip, and how many of them each address has: fewer than a client may have.
const DRIPPING: u32 = 10_000;
const DRIPPING_OF_ONE: u32 = 200;

/// How often each of them sends a byte, and in the mean comes back where it was cut off. Each keeps its own time, as strangers
/// do: all at the same moment would take both processors of a small machine for a fifth of every second to connect, and what
/// others notice of it would be what the crowd costs itself.
const DRIP: Duration = Duration::from_secs(1);

/// Connections of the flood, each from an address of its own, and the pause of each between two builds: ten times what a
/// client may ask for.
const FLOOD: u32 = 20;
const FLOOD_PAUSE: Duration = Duration::from_millis(20);

/// Clients that ask as clients do: each from its own address, no more often than it may, half of them on a new connection each
/// time.
const OTHERS: u32 = 32;
const OTHERS_PAUSE: Duration = Duration::from_millis(100);

/// Rounds with and without the crowd, in turns.
const ROUNDS: usize = 5;

/// One round, and how long a crowd may take to be there.
const ROUND: Duration = Duration::from_secs(12);
const GATHERING: Duration = Duration::from_secs(8);

/// Room for an answer.
const ANSWER_BYTES: usize = 64 * 1024;

/// Measures.
///
/// # Errors
/// When the process cannot be started, or nobody is answered.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let server = Server::start().await?;
    let (mut calm, mut crowded) = (Seen::default(), Seen::default());
    // Nothing is cold in what counts.
    server.others(ROUND).await?;
    for _ in 0..ROUNDS {
        calm.add(server.others(ROUND).await?);
        let crowd = Crowd::gather(&server.said)?;
        sleep(GATHERING).await;
        crowded.add(server.others(ROUND).await?);
        crowd.end().await?;
        // The server clears away what is left of it.
        sleep(GATHERING).await;
    }
    ensure!(!calm.load.latencies.is_empty(), "nobody was answered");
    let [before, with] = [&calm, &crowded].map(|seen| seen.load.permille(990).as_secs_f64());
    println!(
        "p50 {:?} and {:?}, p99 {before:.6} and {with:.6} s, without the crowd and with it",
        calm.load.permille(500),
        crowded.load.permille(500),
    );
    Ok(vec![
        Figure::new(
            "10,000 dripping connections and a flood of builds: other clients' p99, against without",
            with / before,
            "ratio",
            Limit::AtMost(1.5),
        ),
        Figure::new(
            "10,000 dripping connections and a flood of builds: requests of other clients that failed",
            f64::from(crowded.failed),
            "requests",
            Limit::AtMost(0.0),
        ),
    ])
}

/// What other clients saw.
#[derive(Default)]
struct Seen {
    load: Load,
    failed: u32,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.load.add(other.load);
        self.failed += other.failed;
    }
}

/// The process that serves, and what it has said.
struct Server {
    _child: Child,
    said: String,
    served: Served,
}

/// Where is served, and what may be asked there.
struct Served {
    address: SocketAddr,
    quote: Bytes,
    build: Bytes,
}

impl Served {
    fn parse(said: &str) -> anyhow::Result<Self> {
        let served: Value = serde_json::from_str(said)?;
        let text = |name: &str| served[name].as_str().context("a text").map(str::to_owned);
        let headers: HeaderMap = [
            (HOST, HeaderValue::from_static("localhost")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]
        .into_iter()
        .collect();
        Ok(Self {
            address: text("address")?.parse()?,
            quote: load::get(&text("quote")?),
            build: load::post("/v1/swap/transaction", &headers, text("body")?.as_bytes()),
        })
    }
}

impl Server {
    async fn start() -> anyhow::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg(CHILD)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        let said = lines.next_line().await?.context("the server ended")?;
        Ok(Self {
            _child: child,
            served: Served::parse(&said)?,
            said,
        })
    }

    /// What clients see who ask for this long.
    async fn others(&self, time: Duration) -> anyhow::Result<Seen> {
        let until = Instant::now() + time;
        let mut asking = JoinSet::new();
        for number in 0..OTHERS {
            let other = Asking {
                server: self.served.address,
                from: address(200, number),
                request: self.served.quote.clone(),
                keeps: number % 2 == 0,
            };
            asking.spawn(other.ask_until(until));
        }
        let mut seen = Seen::default();
        while let Some(one) = asking.join_next().await {
            seen.add(one?);
        }
        Ok(seen)
    }
}

/// An address of this machine that counts as a client of its own.
fn address(network: u8, number: u32) -> Ipv4Addr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, network, high, low.saturating_add(1))
}

async fn connect(server: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The process that is the crowd.
struct Crowd(Child);

impl Crowd {
    /// Gathers from now on.
    fn gather(said: &str) -> anyhow::Result<Self> {
        let child = Command::new("nice")
            .args(["-n", LOWEST_PRIORITY])
            .arg(env::current_exe()?)
            .args([CROWD, said])
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self(child))
    }

    async fn end(mut self) -> anyhow::Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait().await?;
        ensure!(status.success(), "the crowd has failed: {status}");
        Ok(())
    }
}

/// The process that is the crowd, until its input ends.
///
/// # Errors
/// When it is not told where to gather.
pub async fn gather(said: &str) -> anyhow::Result<()> {
    let served = Served::parse(said)?;
    let mut all = JoinSet::new();
    let held = Arc::new(AtomicUsize::new(0));
    for number in 0..DRIPPING {
        let from = address(100, number / DRIPPING_OF_ONE);
        let begins = DRIP * number / DRIPPING;
        all.spawn(drip(begins, served.address, from, Arc::clone(&held)));
    }
    for number in 0..FLOOD {
        let from = address(150, number);
        all.spawn(flood(served.address, from, served.build.clone()));
    }
    stdin().read_to_end(&mut Vec::new()).await?;
    println!("{} of {DRIPPING} dripped at the end", held.load(Relaxed));
    all.abort_all();
    Ok(())
}

/// Begins a request and sends a byte of it now and then, again when it is cut off.
async fn drip(begins: Duration, server: SocketAddr, from: Ipv4Addr, held: Arc<AtomicUsize>) {
    sleep(begins).await;
    loop {
        if let Ok(mut stream) = connect(server, from).await {
            held.fetch_add(1, Relaxed);
            drip_down(&mut stream).await;
            held.fetch_sub(1, Relaxed);
        }
        sleep(DRIP.mul_f64(rand::random_range(0.5..1.5))).await;
    }
}

async fn drip_down(stream: &mut TcpStream) {
    if stream
        .write_all(b"GET /v1/quote HTTP/1.1\r\nx: ")
        .await
        .is_err()
    {
        return;
    }
    let mut byte = [0];
    loop {
        tokio::select! {
            () = sleep(DRIP) => {}
            // An answer, if it comes, is the end as well.
            _ = stream.read(&mut byte) => return,
        }
        if stream.write_all(b"z").await.is_err() {
            return;
        }
    }
}

/// Asks for builds, whatever the answer is.
async fn flood(server: SocketAddr, from: Ipv4Addr, request: Bytes) {
    let mut answer = vec![0; ANSWER_BYTES];
    loop {
        if let Ok(mut stream) = connect(server, from).await {
            while stream.write_all(&request).await.is_ok()
                && matches!(stream.read(&mut answer).await, Ok(1..))
            {
                sleep(FLOOD_PAUSE).await;
            }
        }
        sleep(FLOOD_PAUSE).await;
    }
}

/// A client as others are.
struct Asking {
    server: SocketAddr,
    from: Ipv4Addr,
    request: Bytes,
    /// Whether it keeps its connection from one request to the next.
    keeps: bool,
}

impl Asking {
    async fn ask_until(self, until: Instant) -> Seen {
        let mut seen = Seen::default();
        let mut pace = interval(OTHERS_PAUSE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut kept = None;
        while Instant::now() < until {
            pace.tick().await;
            let begun = Instant::now();
            match self.ask(kept.take()).await {
                Ok(stream) => {
                    seen.load.latencies.push(begun.elapsed());
                    kept = self.keeps.then_some(stream);
                }
                Err(error) => {
                    eprintln!("a client was not answered: {error}");
                    seen.failed += 1;
                }
            }
        }
        seen
    }

    /// Asks on the connection that was kept, or on a new one where the server has closed it meanwhile, as HTTP clients do.
    async fn ask(&self, kept: Option<TcpStream>) -> io::Result<TcpStream> {
        if let Some(stream) = kept
            && let Ok(stream) = self.ask_on(stream).await
        {
            return Ok(stream);
        }
        let stream = connect(self.server, self.from).await?;
        self.ask_on(stream).await
    }

    async fn ask_on(&self, mut stream: TcpStream) -> io::Result<TcpStream> {
        stream.write_all(&self.request).await?;
        let mut answer = Vec::with_capacity(4_096);
        while !load::is_whole(&answer)? {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(stream)
    }
}

/// The process that serves: says where, and what may be asked of it.
///
/// # Errors
/// When the API cannot be started.
pub async fn serve() -> anyhow::Result<()> {
    let lines = Lines {
        api: "[api.clients]\nloopback = true",
        ..Lines::default()
    };
    let harness = ApiHarness::start_with(Duration::from_secs(5), lines).await?;
    let mints = harness.sol_pool.state.mints;
    let quote = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount=1000000",
        mints.token_0, mints.token_1
    );
    let http = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}{quote}", harness.url);
    let answer: Value = http.get(url).send().await?.json().await?;
    ensure!(answer["quote"].is_object(), "no quote: {answer}");
    let body = json!({
        "quote": answer["quote"],
        "userPublicKey": keypair("wallet 0").pubkey().to_string(),
    });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, harness.port)).to_string();
    let served = json!({ "address": address, "quote": quote, "body": body.to_string() });
    println!("{served}");
    std::future::pending().await
}
