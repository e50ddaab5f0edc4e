//! Figures of building transactions, measured against a server that does nothing but HTTP and JSON.
//!
//! They are written as JSON to the file that the one argument names.
//!
//! Everything runs in this process: the API, its node, which answers from memory at once, the chain that it listens to,
//! and the clients. So the share is that of one machine's work, whatever machine it is.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use axum::{
    Json, Router,
    extract::State,
    http::{
        HeaderMap, HeaderValue,
        header::{CONTENT_TYPE, HOST},
    },
    response::IntoResponse,
    routing::post,
};
use bytes::Bytes;
use serde_json::{Value, json};
use sluice_harness::api::ApiHarness;
use sluice_testkit::{
    figure::{self, Figure, Limit},
    load::{self, Load, LoadClient},
    names::keypair,
};
use solana_signer::Signer;
use tokio::net::TcpListener;

/// What is measured.
const PATH: &str = "/v1/swap/transaction";

/// Throughput must be at least this share of the echo's, percent.
const LEAST_SHARE: f64 = 50.0;

/// 99 of 100 answers must take no longer than this, microseconds.
const MOST_P99: f64 = 2_000.0;

/// Connections, for throughput and for latency alike: so many that the processors of a small machine always have something
/// to do, although each transaction waits for an answer of the node.
const CONNECTIONS: usize = 32;

/// Rounds that are measured.
const ROUNDS: usize = 21;

/// Rounds that count: those in which the echo's own p99, before and after the API's part, was shortest. Echoes that take
/// longer waited for processors that others had, and so did the API's answers of that round. Of these the median is shown.
const CALM_ROUNDS: usize = 7;

/// Time of each part: short, so that all parts of a round meet the same machine.
const PART: Duration = Duration::from_secs(1);

/// Wallets that ask in turn: so many that hardly two of the same are under way at once.
const WALLETS: usize = 1_000;

/// Wallets that the API cannot know: more than it remembers, so that each was forgotten when its turn comes again.
const STRANGERS: usize = 20_000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: build-figures <file to write>")?;
    let harness = ApiHarness::start(Duration::from_secs(5)).await?;
    let mut bench = Bench::new(&harness).await?;
    bench.warm().await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(bench.round().await?);
    }
    rounds.sort_by(|a, b| a.p99_of_echo.total_cmp(&b.p99_of_echo));
    rounds.truncate(CALM_ROUNDS);
    ensure!(
        harness.node.count("getMultipleAccounts") > 0,
        "the node was not asked"
    );
    println!(
        "For wallets never seen before: {} % of that echo. Beside an echo of the request, which answers a tenth of the \
         bytes: {} %",
        median(&rounds, |round| round.of_strangers),
        median(&rounds, |round| round.of_request),
    );
    let figures = [
        Figure::new(
            "transactions built, of a bare JSON echo of that size",
            median(&rounds, |round| round.share),
            "%",
            Limit::AtLeast(LEAST_SHARE),
        ),
        Figure::new(
            "p99 of building a transaction",
            median(&rounds, |round| round.p99),
            "microseconds",
            Limit::AtMost(MOST_P99),
        ),
        Figure::new(
            "p99 of the bare echo beside it",
            median(&rounds, |round| round.p99_of_echo),
            "microseconds",
            Limit::None,
        ),
    ];
    figure::report(&figures, &file)?;
    harness.stop().await
}

fn median(rounds: &[Round], value: fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What one round says.
struct Round {
    /// Transactions for each answer of the echo of their size, percent.
    share: f64,
    /// As `share`, for wallets whose token accounts have to be derived.
    of_strangers: f64,
    /// As `share`, beside an echo of the request.
    of_request: f64,
    /// p99 of building a transaction, microseconds.
    p99: f64,
    /// p99 of the echo, microseconds: the longer of the one before and the one after.
    p99_of_echo: f64,
}

/// What is measured.
struct Bench {
    /// The API, asked by wallets that it knows.
    api: LoadClient,
    /// The API, asked by wallets that it does not know, or no more.
    strangers: LoadClient,
    /// An echo with as many bytes each way as the API.
    echo: LoadClient,
    /// An echo of the request.
    request_echo: LoadClient,
}

impl Bench {
    async fn new(harness: &ApiHarness) -> anyhow::Result<Self> {
        let strangers = bodies(harness, WALLETS, STRANGERS).await?;
        let known = bodies(harness, 0, WALLETS).await?;
        let mut api = client(harness.port, PATH, &known).await?;
        let answer = serde_json::from_slice(&api.answer().await?)?;
        let echo = echo(answer).await?;
        Ok(Self {
            api,
            strangers: client(harness.port, PATH, &strangers).await?,
            echo: client(echo, "/answer", &known).await?,
            request_echo: client(echo, "/", &known).await?,
        })
    }

    /// Caches and connections are warm before anything counts.
    async fn warm(&mut self) -> anyhow::Result<()> {
        for client in [&mut self.request_echo, &mut self.echo, &mut self.api] {
            client.ask_for(PART).await?;
        }
        Ok(())
    }

    async fn round(&mut self) -> anyhow::Result<Round> {
        let request_echo = load("echo of the request", &mut self.request_echo).await?;
        let strangers = load("unknown wallets", &mut self.strangers).await?;
        let before = load("echo", &mut self.echo).await?;
        let built = load("transactions", &mut self.api).await?;
        let after = load("echo", &mut self.echo).await?;
        let echo = before.per_second().midpoint(after.per_second());
        let percent = |part: &Load, whole: f64| (part.per_second() * 100.0 / whole).floor();
        Ok(Round {
            share: percent(&built, echo),
            of_strangers: percent(&strangers, echo),
            of_request: percent(&built, request_echo.per_second()),
            p99: micros(&built)?,
            p99_of_echo: micros(&before)?.max(micros(&after)?),
        })
    }
}

/// The time that 99 of 100 answers did not exceed, microseconds.
fn micros(load: &Load) -> anyhow::Result<f64> {
    Ok(u32::try_from(load.permille(990).as_micros())?.into())
}

async fn load(name: &str, client: &mut LoadClient) -> anyhow::Result<Load> {
    let load = client.ask_for(PART).await?;
    println!(
        "{name:<20}{:>7.0} per second, {:?} of processor time each, p50 {:?}, p99 {:?}",
        load.per_second(),
        load.processor_time_each(),
        load.permille(500),
        load.permille(990)
    );
    Ok(load)
}

/// A client that posts these bodies as JSON.
async fn client(port: u16, path: &str, bodies: &[Bytes]) -> anyhow::Result<LoadClient> {
    let headers: HeaderMap = [
        (HOST, HeaderValue::from_static("localhost")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ]
    .into_iter()
    .collect();
    let requests = bodies.iter().map(|body| load::post(path, &headers, body));
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let client = LoadClient::connect(server, CONNECTIONS, requests.collect::<Vec<_>>()).await?;
    Ok(client)
}

/// A server that parses JSON and writes JSON: at `/` what it was sent, at `/answer` what the API answers, so that as many
/// bytes go each way as with the API.
async fn echo(answer: Value) -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let app = Router::new()
        .route("/", post(async |Json(body): Json<Value>| Json(body)))
        .route(
            "/answer",
            post(
                async |State(answer): State<Arc<Value>>, Json(_): Json<Value>| {
                    Json(&*answer).into_response()
                },
            ),
        )
        .with_state(Arc::new(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(port)
}

/// A request of each of so many wallets: the same quote, SOL in, and both token accounts to be created.
async fn bodies(harness: &ApiHarness, first: usize, count: usize) -> anyhow::Result<Vec<Bytes>> {
    let mints = harness.sol_pool.state.mints;
    let url = format!(
        "{}/v1/quote?inputMint={}&outputMint={}&amount=1000000",
        harness.url, mints.token_0, mints.token_1
    );
    let http = reqwest::Client::builder().no_proxy().build()?;
    let answer: Value = http.get(url).send().await?.json().await?;
    ensure!(answer["quote"].is_object(), "no quote: {answer}");
    let body = |n: usize| {
        let wallet = keypair(&format!("wallet {n}")).pubkey();
        let body = json!({
            "quote": answer["quote"],
            "userPublicKey": wallet.to_string(),
            "wrapAndUnwrapSol": true,
            "priorityFeeLamports": 10_000,
        });
        Bytes::from(body.to_string())
    };
    Ok((first..first + count).map(body).collect())
}
