//! Instructions of a request, counted by valgrind's callgrind: a quote, a transaction, and a bare route beside them.
//!
//! No machine and no neighbour on it changes them, unlike times. The server is a process of its own under callgrind,
//! which counts while requests come and not before. Slots are long meanwhile, so that hardly anything but requests is
//! worked on.

use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use axum::http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_TYPE, HOST},
};
use bytes::Bytes;
use cpmm::PerToken;
use serde_json::{Value, json};
use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_harness::{
    api::{ApiSurroundings, Lines},
    services,
};
use sluice_testkit::{
    figure::Figure,
    free_port::free_address,
    load::{self, LoadClient},
    names::keypair,
};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::http;

/// First argument of the process that serves the API under callgrind; the second is its configuration file.
pub const API: &str = "serve-api";

/// First argument of the process that serves the bare route under callgrind; the second is its address, the third the file
/// that it answers with.
pub const BARE: &str = "serve-bare";

/// Quotes that are counted: so many that what else a server does meanwhile is far below the 3 % that are allowed.
const QUOTES: usize = 1_000;

/// Transactions that are counted, each of which takes many times as long as a quote.
const BUILDS: usize = 200;

/// Connections of the client.
const CONNECTIONS: usize = 4;

/// Wallets that ask for transactions in turn.
const WALLETS: usize = 100;

/// How long a server under callgrind may take to answer: it is some fifty times as slow as by itself.
const PATIENCE: Duration = Duration::from_secs(300);

/// A slot while requests are counted: so long that slots hardly count, and short enough that the market stays ready.
const SLOT_TIME: Duration = Duration::from_secs(4);

/// How long what is under way of the slots before may take to come.
const SETTLED: Duration = Duration::from_secs(3);

/// Instructions per request that a test build may take: see `bench-report.json` for what it takes.
const MOST: Limits = Limits {
    quote: 216_000,
    build: 3_650_000,
    bare: 120_000,
};

struct Limits {
    quote: u64,
    build: u64,
    bare: u64,
}

/// Counts the instructions of requests.
///
/// # Errors
/// When valgrind is missing, or a server cannot be started or does not answer.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let Counted {
        quote,
        build,
        answer,
    } = of_api().await?;
    let bare = of_bare(&answer).await?;
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let of_bare = |value: u64| value as f64 / bare as f64;
    println!(
        "a quote is {:.2} bare routes, a transaction {:.2}",
        of_bare(quote),
        of_bare(build)
    );
    let exact = |figure, value, most| Figure::exact(figure, value, "instructions", most);
    Ok(vec![
        exact("GET /v1/quote", quote, MOST.quote),
        exact("POST /v1/swap/transaction", build, MOST.build),
        exact("bare route", bare, MOST.bare),
    ])
}

/// Instructions of requests to the API.
struct Counted {
    quote: u64,
    build: u64,
    /// The answer to the first quote.
    answer: Vec<u8>,
}

/// Runs the API under callgrind, with a chain whose slots are long once it quotes.
async fn of_api() -> anyhow::Result<Counted> {
    // What is slow under callgrind is fresh all the same.
    let lines = Lines {
        chain: "[freshness]\nmax-clock-age-secs = 3600\nmax-slots-behind = 9000\n",
        ..Lines::default()
    };
    let around = ApiSurroundings::start(PATIENCE, lines).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, around.port));
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("api.toml");
    fs::write(&file, &around.config)?;
    let mut server = Callgrind::start(folder, &[API, &file.to_string_lossy()])?;
    let quote = load::get(&path(around.sol_pool.state.mints));
    let answer = until_answered(address, &quote).await?;
    around.chain.pace(SLOT_TIME);
    sleep(SETTLED).await;
    let quotes = vec![quote; QUOTES];
    let quote = server.count(send(address, quotes)).await? / as_u64(QUOTES);
    let builds = builds(&answer)?;
    let build = server.count(send(address, builds)).await? / as_u64(BUILDS);
    server.end()?;
    Ok(Counted {
        quote,
        build,
        answer,
    })
}

/// Instructions of a bare route with this answer.
async fn of_bare(answer: &[u8]) -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let address = free_address()?;
    let file = folder.path().join("answer.json");
    fs::write(&file, answer)?;
    let words = [BARE, &address.to_string(), &file.to_string_lossy()];
    let mut server = Callgrind::start(folder, &words)?;
    let request = load::get("/v1/quote");
    until_answered(address, &request).await?;
    let requests = vec![request; QUOTES];
    let counted = server.count(send(address, requests)).await?;
    server.end()?;
    Ok(counted / as_u64(QUOTES))
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn path(mints: PerToken<Pubkey>) -> String {
    let (input, output) = (mints.token_0, mints.token_1);
    format!("/v1/quote?inputMint={input}&outputMint={output}&amount=1000000")
}

/// Sends each request once.
async fn send(server: SocketAddr, requests: Vec<Bytes>) -> anyhow::Result<()> {
    let given = requests.len();
    let mut client = LoadClient::connect(server, CONNECTIONS, requests).await?;
    let load = client.send_all().await?;
    ensure!(
        load.latencies.len() == given,
        "not every request was answered"
    );
    Ok(())
}

/// The first answer of the 200s.
async fn until_answered(server: SocketAddr, request: &Bytes) -> anyhow::Result<Vec<u8>> {
    let begun = Instant::now();
    loop {
        match http::first_answer(server, request).await {
            Ok(answer) => return Ok(answer),
            Err(error) => ensure!(begun.elapsed() < PATIENCE, "no answer: {error}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Requests for transactions of the quote in this answer, by wallets in turn.
fn builds(answer: &[u8]) -> anyhow::Result<Vec<Bytes>> {
    let answer: Value = serde_json::from_slice(answer)?;
    ensure!(answer["quote"].is_object(), "no quote: {answer}");
    let headers: HeaderMap = [
        (HOST, HeaderValue::from_static("localhost")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ]
    .into_iter()
    .collect();
    let request = |number: usize| {
        let wallet = keypair(&format!("wallet {}", number % WALLETS)).pubkey();
        let body = json!({
            "quote": answer["quote"],
            "userPublicKey": wallet.to_string(),
            "wrapAndUnwrapSol": true,
            "priorityFeeLamports": 10_000,
        });
        load::post(
            "/v1/swap/transaction",
            &headers,
            body.to_string().as_bytes(),
        )
    };
    Ok((0..BUILDS).map(request).collect())
}

/// A process of this program under callgrind, in a mode in which it serves until its standard input is closed.
struct Callgrind {
    process: Child,
    /// Where it writes what it counted, before the number of the part.
    counts: PathBuf,
    parts: u32,
    _folder: TempDir,
}

impl Callgrind {
    /// Starts it; nothing is counted yet.
    fn start(folder: TempDir, words: &[&str]) -> anyhow::Result<Self> {
        let counts = folder.path().join("callgrind.out");
        let process = Command::new("valgrind")
            .args(["--quiet", "--tool=callgrind", "--instr-atstart=no"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .arg(env::current_exe()?)
            .args(words)
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start valgrind: install the package valgrind")?;
        Ok(Self {
            process,
            counts,
            parts: 0,
            _folder: folder,
        })
    }

    /// How many instructions the process executes during `work`.
    async fn count(
        &mut self,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<u64> {
        self.command(&["instrumentation", "on"])?;
        work.await?;
        self.command(&["dump"])?;
        self.command(&["instrumentation", "off"])?;
        self.parts += 1;
        let file = self.counts.with_extension(format!("out.{}", self.parts));
        let counts = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        let total = counts
            .lines()
            .find_map(|line| line.strip_prefix("totals: "));
        let total = total.context("callgrind wrote no total")?;
        Ok(total.trim().parse()?)
    }

    /// Gives callgrind a command, as `callgrind_control` does.
    fn command(&self, words: &[&str]) -> anyhow::Result<()> {
        let output = Command::new("vgdb")
            .arg(format!("--pid={}", self.process.id()))
            .args(words)
            .output()
            .context("cannot start vgdb, which comes with valgrind")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vgdb {words:?}: {said}");
        Ok(())
    }

    /// Ends the process.
    fn end(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        let status = self.process.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Callgrind {
    fn drop(&mut self) {
        // Ended already, unless something failed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves the API as it is configured until the standard input is closed.
///
/// # Errors
/// Those of the API.
pub fn serve_api(config: &Path) -> anyhow::Result<()> {
    let config = Config::parse(&fs::read_to_string(config)?, config)?;
    let shutdown = CancellationToken::new();
    let closed = shutdown.clone();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        closed.cancel();
    });
    http::on_one_thread(services::api(config, shutdown))
}

/// Serves this file at the path of the quotes until the standard input is closed.
///
/// # Errors
/// When the address is taken or the file cannot be read.
pub fn serve_bare(address: &str, answer: &Path) -> anyhow::Result<()> {
    let answer = fs::read(answer)?;
    http::serve_bare_at(address.parse()?, answer)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
