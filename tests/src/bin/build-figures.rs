//! Measures how fast the API builds transactions, against a server that does nothing but HTTP and JSON, and writes the
//! figures as JSON to the file that the one argument names.
//!
//! Everything runs in this process: the API, its node, which answers from memory at once, the chain that it listens to,
//! and the clients. So the share is that of one machine's work, whatever machine it is.

use std::{env, fs, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use axum::{Json, Router, routing::post};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use sluice_tests::{
    load::{Measured, Target},
    names::keypair,
    stage::Stage,
};
use solana_signer::Signer;
use tokio::net::TcpListener;

/// Throughput must be at least this share of the echo's, percent.
const LEAST_SHARE: u64 = 50;

/// 99 of 100 answers must take no longer than this, microseconds.
const MOST_P99: u64 = 2_000;

/// Connections when throughput is measured: so many that the machine is never idle.
const BUSY: usize = 32;

/// Connections when latency is measured: a machine that is used and not overrun, where an answer does not wait for the
/// answers to others.
const USED: usize = 4;

/// Rounds, each of an echo and two API parts; the median round counts, so that a hiccup of the machine does not.
const ROUNDS: usize = 5;

/// Time of each part.
const PART: Duration = Duration::from_secs(3);

/// Wallets that ask in turn: so many that hardly two of the same are under way at once.
const WALLETS: usize = 1_000;

/// Something measured.
#[derive(Serialize)]
struct Figure {
    figure: &'static str,
    value: u64,
    unit: &'static str,
    /// The least or most that it may be; the figure's name says which.
    must: u64,
    met: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let file = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: build-figures <file to write>")?;
    let stage = Stage::start(Duration::from_secs(5)).await?;
    let bodies = Arc::new(bodies(&stage).await?);
    let echo = Target {
        port: echo().await?,
        path: "/",
        bodies: Arc::clone(&bodies),
    };
    let api = Target {
        port: stage.port,
        path: "/v1/swap/transaction",
        bodies,
    };
    // Caches and connections are warm before anything counts.
    echo.load(BUSY, PART / 3).await?;
    api.load(BUSY, PART / 3).await?;
    let mut shares = Vec::new();
    let mut latencies = Vec::new();
    for _ in 0..ROUNDS {
        let bare = echo.load(BUSY, PART).await?;
        stage.node.forget_calls();
        let built = api.load(BUSY, PART).await?;
        let calls = stage.node.calls("getMultipleAccounts");
        show("echo", &bare);
        show("build", &built);
        println!("      {calls} calls for accounts");
        ensure!(calls > 0, "the node was not asked");
        shares.push(built.per_second * 100 / bare.per_second.max(1));
        let calm = api.load(USED, PART).await?;
        show("calm", &calm);
        latencies.push(u64::try_from(calm.latency(990).as_micros())?);
    }
    let (share, p99) = (median(shares), median(latencies));
    let figures = [
        Figure {
            figure: "transactions built, at least, of a bare JSON echo's answers",
            value: share,
            unit: "%",
            must: LEAST_SHARE,
            met: share >= LEAST_SHARE,
        },
        Figure {
            figure: "p99 of building a transaction, at most",
            value: p99,
            unit: "microseconds",
            must: MOST_P99,
            met: p99 <= MOST_P99,
        },
    ];
    for figure in &figures {
        let missed = if figure.met { "" } else { "  NOT MET" };
        println!(
            "{:<62} {:>6} {:>6}  {}{missed}",
            figure.figure, figure.value, figure.must, figure.unit
        );
    }
    let text = serde_json::to_string_pretty(&figures)? + "\n";
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    stage.stop().await
}

fn show(name: &str, measured: &Measured) {
    println!(
        "{name:<6}{:>8} per second, p50 {:?}, p99 {:?}",
        measured.per_second,
        measured.latency(500),
        measured.latency(990)
    );
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// A server that parses JSON and writes it back.
async fn echo() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let app = Router::new().route("/", post(async |Json(body): Json<Value>| Json(body)));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(port)
}

/// A request of each wallet: the same quote, SOL in, and both token accounts to be created.
async fn bodies(stage: &Stage) -> anyhow::Result<Vec<Bytes>> {
    let mints = stage.sol_pool.state.mints;
    let url = format!(
        "{}/v1/quote?inputMint={}&outputMint={}&amount=1000000",
        stage.url, mints.token_0, mints.token_1
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
    Ok((0..WALLETS).map(body).collect())
}
