//! Figures of building transactions, measured against a server that does nothing but HTTP and JSON.
//!
//! They are written as JSON to the file that the one argument names.
//!
//! Everything runs in this process: the API, its node, which answers from memory at once, the chain that it listens to,
//! and the clients. So the share is that of one machine's work, whatever machine it is.

use std::{env, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use axum::{Json, Router, extract::State, response::IntoResponse, routing::post};
use bytes::Bytes;
use serde_json::{Value, json};
use sluice_harness::api::ApiHarness;
use sluice_testkit::{
    figure::{self, Figure, Limit},
    load::{Measured, Target},
    names::keypair,
};
use solana_signer::Signer;
use tokio::net::TcpListener;

/// Throughput must be at least this share of the echo's, percent.
const LEAST_SHARE: f64 = 50.0;

/// 99 of 100 answers must take no longer than this, microseconds.
const MOST_P99: f64 = 2_000.0;

/// Connections, for throughput and for latency alike: so many that the processors of a small machine always have something
/// to do, although each transaction waits for an answer of the node.
const CONNECTIONS: usize = 32;

/// Rounds, of which the median counts.
const ROUNDS: usize = 7;

/// Most rounds that are begun. One in which the machine was busy with something else does not count.
const ATTEMPTS: usize = 40;

/// The echo's own p99 in a round that counts, before and after the API's part. Echoes that take longer waited for
/// processors that others had, and so did the API's answers of that round.
const CALM: Duration = Duration::from_millis(1);

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
    let bench = Bench::new(&harness).await?;
    bench.warm().await?;
    let mut rounds = Vec::new();
    let mut attempts = 0..ATTEMPTS;
    while rounds.len() < ROUNDS {
        attempts.next().context(
            "others use this machine too much to measure it: try again when it is quiet",
        )?;
        rounds.extend(bench.round().await?);
    }
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
    ];
    figure::report(&figures, &file)?;
    harness.stop().await
}

fn median(rounds: &[Round], value: fn(&Round) -> u32) -> f64 {
    let mut values: Vec<u32> = rounds.iter().map(value).collect();
    values.sort_unstable();
    values[values.len() / 2].into()
}

/// What one round says.
struct Round {
    /// Transactions for each answer of the echo of their size, percent.
    share: u32,
    /// As `share`, for wallets whose token accounts have to be derived.
    of_strangers: u32,
    /// As `share`, beside an echo of the request.
    of_request: u32,
    /// p99 of building a transaction, microseconds.
    p99: u32,
}

/// What is measured.
struct Bench {
    /// The API, asked by wallets that it knows.
    api: Target,
    /// The API, asked by wallets that it does not know, or no more.
    strangers: Target,
    /// An echo with as many bytes each way as the API.
    echo: Target,
    /// An echo of the request.
    request_echo: Target,
}

impl Bench {
    async fn new(harness: &ApiHarness) -> anyhow::Result<Self> {
        let api = |bodies| Target {
            port: harness.port,
            path: "/v1/swap/transaction",
            bodies: Arc::new(bodies),
        };
        let strangers = api(bodies(harness, WALLETS, STRANGERS).await?);
        let api = api(bodies(harness, 0, WALLETS).await?);
        let echo = Target {
            port: echo(api.answer().await?).await?,
            path: "/answer",
            bodies: Arc::clone(&api.bodies),
        };
        let request_echo = Target {
            path: "/",
            ..echo.clone()
        };
        Ok(Self {
            api,
            strangers,
            echo,
            request_echo,
        })
    }

    /// Caches and connections are warm before anything counts.
    async fn warm(&self) -> anyhow::Result<()> {
        for target in [&self.request_echo, &self.echo, &self.api] {
            target.load(CONNECTIONS, PART).await?;
        }
        Ok(())
    }

    /// One round; `None` when the machine was busy with something else.
    async fn round(&self) -> anyhow::Result<Option<Round>> {
        let request_echo = load("echo of the request", &self.request_echo).await?;
        let strangers = load("unknown wallets", &self.strangers).await?;
        let before = load("echo", &self.echo).await?;
        let built = load("transactions", &self.api).await?;
        let after = load("echo", &self.echo).await?;
        if before.latency(990).max(after.latency(990)) > CALM {
            println!("{:<20} does not count: others used the machine", "");
            return Ok(None);
        }
        let echo = before.per_second.midpoint(after.per_second).max(1);
        let percent = |part: &Measured, whole: u64| u32::try_from(part.per_second * 100 / whole);
        Ok(Some(Round {
            share: percent(&built, echo)?,
            of_strangers: percent(&strangers, echo)?,
            of_request: percent(&built, request_echo.per_second.max(1))?,
            p99: u32::try_from(built.latency(990).as_micros())?,
        }))
    }
}

async fn load(name: &str, target: &Target) -> anyhow::Result<Measured> {
    let measured = target.load(CONNECTIONS, PART).await?;
    println!(
        "{name:<20}{:>7} per second, {:?} of processor time each, p50 {:?}, p99 {:?}",
        measured.per_second,
        measured.processor_time,
        measured.latency(500),
        measured.latency(990)
    );
    Ok(measured)
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
