//! Start of a market of 200,000 pools: its time and memory in a process of its own, and its time at a provider.

use std::{
    env, fs,
    process::Stdio,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail};
use service_kit::{CancellationToken, Clock};
use sluice_market::{Endpoint, Freshness, Market, ReadLimits, Settings, Status, spawn};
use sluice_testkit::{
    figure::{Figure, Limit},
    population::Population,
    rpc_node::{Provider, RpcNode},
    running_chain::{Running, RunningChain},
};
use tokio::{process::Command, time::sleep};

/// More pools than the exchange has.
const POOLS: u64 = 200_000;

/// First argument of the process that holds the market.
pub const CHILD: &str = "hold-a-market";

/// A slot of the chain.
const SLOT_TIME: Duration = Duration::from_millis(400);

/// Slot in which the chain begins.
const SLOT: u64 = 1_000;

/// Time in which the allocator returns what only the start needed.
const SETTLING: Duration = Duration::from_secs(5);

/// When to give up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures a start.
///
/// # Errors
/// When a double or the process cannot be started, or the market does not get ready.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let chain = Population {
        pools: POOLS,
        per_pair: 1,
        quote_tokens: 1,
    };
    let node = RpcNode::holding(chain.accounts(SLOT)).await?;
    node.reach(SLOT);
    let chain = RunningChain::start(node.clone(), Running::at_once(SLOT, SLOT_TIME)).await?;
    let (seconds, megabytes) = start(&chain, &node).await?;
    node.provide_by(undisturbed());
    let (calm, _) = start(&chain, &node).await?;
    node.provide_by(Provider {
        refuses_one_in: 3,
        drops_one_in: 50,
        ..undisturbed()
    });
    let (disturbed, _) = start(&chain, &node).await?;
    println!(
        "at a provider: {calm} s, with faults {disturbed} s, {:?}",
        node.provided()
    );
    Ok(vec![
        Figure::new(
            "200,000 pools: start from a local snapshot",
            seconds,
            "s",
            Limit::AtMost(10.0),
        ),
        Figure::new(
            "200,000 pools: resident memory",
            megabytes,
            "MB",
            Limit::AtMost(400.0),
        ),
        Figure::new(
            "200,000 pools: start at a provider with faults, against one without",
            disturbed / calm,
            "times",
            Limit::AtMost(3.0),
        ),
    ])
}

/// A provider without faults that answers in up to 40 seconds, 400 times as fast, and takes a list in parts only. What the market
/// waits for after a fault is not faster, so that faults cost more here than they would there.
fn undisturbed() -> Provider {
    Provider {
        refuses_one_in: 0,
        drops_one_in: 0,
        slowest: Duration::from_millis(100),
        parallel: 24,
        most_listed: 20_000,
        seed: 7,
    }
}

/// Seconds that a start takes in a process of its own, and the megabytes that it holds then.
async fn start(chain: &RunningChain, node: &RpcNode) -> anyhow::Result<(f64, f64)> {
    let child = Command::new(env::current_exe()?)
        .args([CHILD, chain.endpoint().url.as_str(), &node.url()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, child)
        .await
        .context("the market does not get ready")??;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    let [seconds, megabytes] = numbers[..] else {
        bail!("the process that holds the market said {text:?}");
    };
    Ok((seconds, megabytes))
}

/// The process that holds the market: says how many seconds its start took and how many megabytes it holds.
///
/// # Errors
/// When its arguments are not two addresses, or this is no Linux.
pub async fn hold(geyser: &str, rpc: &str) -> anyhow::Result<()> {
    let endpoint = Endpoint {
        url: geyser.parse().context("the stream's address")?,
        x_token: None,
    };
    let settings = Settings {
        exchange: cpmm::ExchangeIds::MAINNET,
        endpoints: vec![endpoint],
        rpc_url: rpc.parse().context("the node's address")?,
        read_limits: ReadLimits::default(),
        watch_closed_accounts: true,
        freshness: Freshness::default(),
    };
    let begun = Instant::now();
    let (market, _task) = spawn(
        settings,
        // Before the time of the played chain.
        Clock::stopped_at(SystemTime::UNIX_EPOCH),
        CancellationToken::new(),
    );
    while !is_whole(&market) {
        sleep(Duration::from_millis(5)).await;
    }
    let took = begun.elapsed();
    sleep(SETTLING).await;
    println!("{:.2} {:.0}", took.as_secs_f64(), resident()?);
    Ok(())
}

fn is_whole(market: &Market) -> bool {
    let whole = usize::try_from(POOLS).ok();
    matches!(market.status(), Status::Ready { pools, .. } if Some(pools) == whole)
}

/// Resident memory of this process, megabytes.
///
/// # Errors
/// When this is no Linux.
pub fn resident() -> anyhow::Result<f64> {
    resident_of("self")
}

/// Resident memory of the process of this id, megabytes.
pub(crate) fn resident_of(process: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kilobytes.context("the system does not say")? / 1_024.0)
}
