//! Throughput and latency of `GET /v1/quote` against a bare route, under the same load, in turns.
//!
//! The bare route is asked the same and answers as many bytes.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::Context;
use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use bytes::Bytes;
use cpmm::ids;
use service_kit::{CancellationToken, Clock, telemetry};
use sluice_config::Config;
use sluice_harness::services;
use sluice_testkit::{
    figure::{Figure, Limit},
    free_port::free_address,
    load::{self, Load, LoadClient},
    rpc_node::RpcNode,
    scripted_chain::ScriptedChain,
    scripted_pools::{self, ScriptedPools},
    yellowstone_server::YellowstoneServer,
};
use tokio::{runtime, task::yield_now, time::sleep};

/// Connections of the load generator: enough to keep one core of a server busy.
const CONNECTIONS: usize = 32;

/// Rounds of each server, in turns, so that both meet the same other work on the machine.
const ROUNDS: usize = 12;

/// One round.
const ROUND: Duration = Duration::from_millis(500);

/// Slot in which the chain behind the API begins.
pub(crate) const FIRST_SLOT: u64 = 1_000;

/// A slot of the chain behind the API.
pub(crate) const SLOT_TIME: Duration = Duration::from_millis(400);

/// Measures the API's quotes against a bare route.
///
/// # Errors
/// When a server cannot be started or does not answer.
pub fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let shutdown = CancellationToken::new();
    let api = serve_api(folder.path(), "", shutdown.clone(), |chain| async move {
        go_on(&chain).await;
    })?;
    let measured = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(api));
    shutdown.cancel();
    let (quotes, bare) = measured?;
    let p99 = |load: &Load| load.permille(990).as_secs_f64();
    Ok(vec![
        Figure::new(
            "GET /v1/quote",
            quotes.per_second().round(),
            "answers/s",
            Limit::None,
        ),
        Figure::new(
            "GET /v1/quote, throughput against a bare route",
            quotes.per_second() / bare.per_second(),
            "ratio",
            Limit::AtLeast(0.80),
        ),
        Figure::new(
            "GET /v1/quote, p99 against a bare route",
            p99(&quotes) / p99(&bare),
            "ratio",
            Limit::AtMost(1.5),
        ),
    ])
}

async fn measure(api: SocketAddr) -> anyhow::Result<(Load, Load)> {
    let request = load::get(&path());
    let answer = ready(api, &request).await?;
    let bare = serve_bare(answer)?;
    let mut api = LoadClient::connect(api, CONNECTIONS, [request.clone()]).await?;
    let mut bare = LoadClient::connect(bare, CONNECTIONS, [request]).await?;
    let (mut quotes, mut constants) = (Load::default(), Load::default());
    let awake = tokio::spawn(stay_awake());
    for _ in 0..ROUNDS {
        quotes.add(api.ask_for(ROUND).await?);
        constants.add(bare.ask_for(ROUND).await?);
    }
    awake.abort();
    Ok((quotes, constants))
}

/// Keeps the load generator's thread from sleeping. To wake it is the kernel's work, on the processor of the server that answers: the
/// faster of two servers keeps it busy and would be spared what the slower one pays.
async fn stay_awake() {
    loop {
        yield_now().await;
    }
}

fn path() -> String {
    let tokens = ScriptedPools::default().tokens;
    let (input, output) = (tokens[0].mint, tokens[1].mint);
    format!("/v1/quote?inputMint={input}&outputMint={output}&amount=1000")
}

/// The first quote.
async fn ready(api: SocketAddr, request: &Bytes) -> anyhow::Result<Vec<u8>> {
    let mut last = None;
    for _ in 0..100 {
        match first_answer(api, request).await {
            Ok(answer) => return Ok(answer),
            Err(error) => last = Some(error),
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no answer"), anyhow::Error::from))
        .context("the API does not quote")
}

pub(crate) async fn first_answer(api: SocketAddr, request: &Bytes) -> io::Result<Vec<u8>> {
    let mut client = LoadClient::connect(api, 1, [request.clone()]).await?;
    client.answer().await
}

/// A whole API on a thread of its own, with these lines more in its configuration, and a chain behind it on which
/// slots pass as `go_on` lets them.
pub(crate) fn serve_api<Passing: Future<Output = ()>>(
    folder: &Path,
    settings: &str,
    shutdown: CancellationToken,
    go_on: impl FnOnce(ScriptedChain) -> Passing + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    // As the service does: without it each span of a library takes the way of programs that log by the crate `log`.
    telemetry::init(telemetry::Format::Text);
    let address = free_address()?;
    let store = folder.join("sluice.db");
    let record = ScriptedChain::new(FIRST_SLOT, ScriptedPools::default().state(FIRST_SLOT));
    // The doubles have a thread of their own, so that the API's has nothing else to do.
    let (started, urls) = std::sync::mpsc::channel();
    let chain = record.clone();
    let ended = shutdown.clone();
    thread::spawn(move || {
        on_one_thread(async move {
            let node = RpcNode::of_chain(chain.clone()).await.expect("a free port");
            let server = YellowstoneServer::start(chain.clone())
                .await
                .expect("a free port");
            let _ = started.send((node.url(), format!("http://{}", server.address())));
            tokio::select! {
                () = go_on(chain) => {}
                () = ended.cancelled() => {}
            }
        });
    });
    let (rpc, geyser) = urls.recv().context("the doubles did not start")?;
    let text = format!(
        "[chain]\nrpc-url = \"{rpc}\"\n[[geyser.endpoints]]\nurl = \"{geyser}\"\n[store]\npath = {store:?}\n[api]\nlisten = \"{address}\"\n{settings}"
    );
    let config = Config::parse(&text, Path::new("bench.toml"))?;
    // A name, so that a profiler distinguishes it from the load generator.
    thread::Builder::new()
        .name("api".to_owned())
        .spawn(move || on_one_thread(services::api(config, shutdown)))?;
    Ok(address)
}

/// Slots pass, one after the other, each with the time of day: the API quotes from new ones alone.
async fn go_on(chain: &ScriptedChain) {
    let mut tip = chain.lock().tree.confirmed();
    for slot in FIRST_SLOT + 1.. {
        let now = Clock::system().now();
        tip = chain.open(slot, tip);
        let clock = scripted_pools::clock_at(slot, scripted_pools::EPOCH, now);
        chain.write(tip, ids::CLOCK, clock, None);
        chain.freeze(tip);
        chain.seal(tip);
        chain.confirm(tip);
        sleep(SLOT_TIME).await;
    }
}

/// A route that answers these bytes.
fn serve_bare(answer: Vec<u8>) -> io::Result<SocketAddr> {
    serve_bare_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), answer)
}

/// As [`serve_bare`], at this address.
pub(crate) fn serve_bare_at(address: SocketAddr, answer: Vec<u8>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let answer = Bytes::from(answer);
    let route = get(move || {
        let answer = answer.clone();
        async move { ([(CONTENT_TYPE, "application/json")], answer) }
    });
    thread::Builder::new()
        .name("bare".to_owned())
        .spawn(move || {
            on_one_thread(async move {
                let listener = tokio::net::TcpListener::from_std(listener);
                let listener = listener.expect("a runtime is there");
                let app = Router::new().route("/v1/quote", route);
                axum::serve(listener, app).await
            })
        })?;
    Ok(address)
}

/// Runs this on a runtime of one thread.
pub fn on_one_thread<F: Future>(future: F) -> F::Output {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has room for one more thread")
        .block_on(future)
}
