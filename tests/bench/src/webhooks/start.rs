//! Start on a database in which a million deliveries are pending, in a process of its own.

use std::{
    env, fs,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use service_kit::{CancellationToken, Clock};
use sluice_harness::services;
use sluice_store::{Commitment, Store};
use sluice_testkit::{
    figure::{Figure, Limit},
    free_port::free_address,
};
use tokio::{process::Command, runtime::Builder, task::spawn_blocking, time::sleep};

use super::{
    indexer::config,
    queue::Queue,
    receiver::{Keeping, Receivers},
};

/// Deliveries that wait.
const WAITING: u64 = 1_000_000;

/// Webhooks that they are for.
const WEBHOOKS: usize = 8;

/// First argument of the process that is started.
pub const CHILD: &str = "run-an-indexer";

/// How long it delivers before its memory is read: thousands of deliveries.
const WORKING: Duration = Duration::from_secs(5);

/// Readiness answers that are timed.
const ANSWERS: usize = 500;

/// Measures a start.
///
/// # Errors
/// When the database cannot be filled, or the process does not deliver.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("sluice.db");
    let receivers = Receivers::start(WEBHOOKS, Keeping::Count)?;
    let store = Store::open(&database).await?;
    let mut queue = Queue::create(store.clone(), &receivers.urls(), Commitment::Confirmed).await?;
    queue.owe(WAITING).await?;
    store.close().await;

    let health = free_address()?;
    let begun = Instant::now();
    let mut child = Command::new(env::current_exe()?)
        .args([CHILD.as_ref(), database.as_os_str()])
        .arg(health.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    receivers.until(1).await?;
    let first = begun.elapsed();
    sleep(WORKING).await;
    let process = child.id().context("the indexer has ended")?;
    let memory = peak_memory(process)?;
    let readiness = spawn_blocking(move || probed(health)).await??;
    let check = check(&database).await?;
    let delivered = receivers.count();
    child.kill().await?;
    println!("{delivered} of {WAITING} waiting deliveries were made in its first seconds");
    Ok(vec![
        Figure::new(
            "1,000,000 queued deliveries: start to the first one",
            first.as_secs_f64(),
            "s",
            Limit::AtMost(5.0),
        ),
        Figure::new(
            "1,000,000 queued deliveries: most resident memory",
            memory,
            "MB",
            Limit::AtMost(300.0),
        ),
        Figure::new(
            "1,000,000 queued deliveries: readiness answered while they are made, p99",
            readiness.as_secs_f64() * 1_000.0,
            "ms",
            Limit::AtMost(5.0),
        ),
        Figure::new(
            "1,000,000 queued deliveries: an API's readiness asks the database while they are made, p99",
            check.as_secs_f64() * 1_000.0,
            "ms",
            Limit::AtMost(5.0),
        ),
    ])
}

/// How long the database takes for what the readiness of an API in another process asks it, the 99th percentile.
async fn check(database: &Path) -> anyhow::Result<Duration> {
    let store = Store::open(database).await?;
    let mut times = Vec::new();
    for _ in 0..ANSWERS {
        let begun = Instant::now();
        store.check().await?;
        times.push(begun.elapsed());
        sleep(Duration::from_millis(2)).await;
    }
    store.close().await;
    Ok(percentile_99(times))
}

fn percentile_99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// As a supervisor probes, which is no task among those of another runtime: this one has a thread to itself.
fn probed(health: SocketAddr) -> anyhow::Result<Duration> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(readiness(health))
}

/// How long answers of the readiness take, the 99th percentile. Each tells what the database held a moment before.
async fn readiness(health: SocketAddr) -> anyhow::Result<Duration> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("http://{health}/health/ready");
    let mut times = Vec::new();
    for _ in 0..ANSWERS {
        let begun = Instant::now();
        let body: Value = client.get(&url).send().await?.json().await?;
        times.push(begun.elapsed());
        ensure!(
            body["pendingDeliveries"] == 1_000,
            "the queue was not looked at: {body}"
        );
        sleep(Duration::from_millis(2)).await;
    }
    Ok(percentile_99(times))
}

/// The process that is started. It follows a stream that is not there.
///
/// # Errors
/// When the indexer cannot start.
pub async fn run(database: &Path, health: &str) -> anyhow::Result<()> {
    let config = config("http://127.0.0.1:1", database, health.parse()?)?;
    services::indexer(config, Clock::system(), CancellationToken::new()).await
}

/// The most memory that a process has held so far, megabytes.
pub(super) fn peak_memory(process: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    match kilobytes {
        Some(kilobytes) => Ok(kilobytes / 1_024.0),
        None => bail!("the system does not say how much memory the indexer holds"),
    }
}
