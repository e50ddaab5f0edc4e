//! Effect of one hanging endpoint on ninety-nine others.
//!
//! The same load runs on two dispatchers, of which one has such an endpoint, in turns.

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use service_kit::{CancellationToken, Clock};
use sluice_indexer::{
    delivery::{capacity::Submissions, dispatcher::Dispatcher, retry},
    metrics::Metrics,
    traces::MessageTraces,
};
use sluice_store::{Commitment, Store};
use sluice_testkit::figure::{Figure, Limit};
use sluice_webhook_client::{Client, Reach};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use super::{
    queue::Queue,
    receiver::{Keeping, Receivers},
};

/// Receivers. Of one row, the first hangs.
const RECEIVERS: usize = 100;

/// Messages stored at once, one for each receiver: a slot.
const MESSAGES: u64 = 100;

/// Between two of them: 1,000 messages in a second.
const TICK: Duration = Duration::from_millis(100);

/// Slots of one round.
const SLOTS: u64 = 20;

/// Rounds of each, in turns, so that both meet the same other work on the machine.
const ROUNDS: usize = 9;

/// Deadline of an attempt: the default. The receiver that hangs holds its connections for so long.
const DEADLINE: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "webhookId")]
    webhook: String,
    sequence: u64,
}

/// Measures both rows.
///
/// # Errors
/// When something does not start, or a message does not arrive.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let mut healthy = Row::start(&folder.path().join("healthy.db"), 0).await?;
    let mut hanging = Row::start(&folder.path().join("hanging.db"), 1).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (one, other) = (healthy.round().await?, hanging.round().await?);
        // The first round opens connections.
        if round > 0 {
            without.push(p99(one));
            with.push(p99(other));
        }
    }
    healthy.stop().await?;
    hanging.stop().await?;
    let (without, with) = (median(without), median(with));
    Ok(vec![
        Figure::new(
            "stored -> first byte, p99 of 99 receivers, median of rounds",
            without.as_secs_f64() * 1_000.0,
            "ms",
            Limit::None,
        ),
        Figure::new(
            "the same beside one that hangs",
            with.as_secs_f64() / without.as_secs_f64(),
            "ratio",
            Limit::AtMost(1.1),
        ),
    ])
}

fn p99(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    let at = latencies.len() * 99 / 100;
    latencies.get(at).copied().unwrap_or(Duration::MAX)
}

/// The one in the middle: a round in which others used the machine does not count.
fn median(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    let middle = latencies.len() / 2;
    latencies.get(middle).copied().unwrap_or(Duration::MAX)
}

/// A dispatcher with its database and its receivers.
struct Row {
    receivers: Receivers,
    hanging: u64,
    queue: Queue,
    stored: Arc<Notify>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Row {
    async fn start(database: &Path, hanging: usize) -> anyhow::Result<Self> {
        let receivers = Receivers::start_with(RECEIVERS, hanging, Keeping::Everything)?;
        let store = Store::open(database).await?;
        let queue = Queue::create(store.clone(), &receivers.urls(), Commitment::Confirmed).await?;
        let stored = Arc::new(Notify::new());
        let dispatcher = Dispatcher {
            store,
            client: Client::new(DEADLINE, Reach::PublicAndLoopback)?,
            schedule: retry::SCHEDULE.into(),
            inserted: Arc::clone(&stored),
            metrics: Metrics::default(),
            traces: MessageTraces::default(),
            clock: Clock::system(),
        };
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(dispatcher.run(Submissions::new(DEADLINE), shutdown.clone()));
        Ok(Self {
            receivers,
            hanging: u64::try_from(hanging)?,
            queue,
            stored,
            shutdown,
            running,
        })
    }

    /// From the moment when a message was stored to its first byte, for each message to a receiver that both rows have.
    async fn round(&mut self) -> anyhow::Result<Vec<Duration>> {
        let before = self.receivers.count();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let first_webhook = self
            .queue
            .webhooks
            .first()
            .context("there are webhooks")?
            .clone();
        let mut last = 0;
        let mut stored = HashMap::new();
        for _ in 0..SLOTS {
            ticks.tick().await;
            let messages = self.queue.messages(0, MESSAGES);
            self.queue.store(&messages).await?;
            let now = Instant::now();
            self.stored.notify_one();
            last += 1;
            stored.insert(last, now);
        }
        let healthy = u64::try_from(RECEIVERS)? - self.hanging;
        self.receivers.until(before + SLOTS * healthy).await?;
        let mut arrivals = Vec::new();
        let mut newest: HashMap<String, u64> = HashMap::new();
        for arrival in self.receivers.take() {
            let payload: Payload = serde_json::from_slice(&arrival.body)?;
            let most = newest.entry(payload.webhook.clone()).or_default();
            *most = (*most).max(payload.sequence);
            if payload.webhook != first_webhook.as_str() {
                arrivals.push((payload.sequence, arrival.at));
            }
        }
        let newest = newest.into_values().max().context("nothing arrived")?;
        let latencies: Vec<Duration> = arrivals
            .into_iter()
            .filter_map(|(sequence, at)| {
                let nth = sequence + SLOTS - newest;
                Some(at.saturating_duration_since(*stored.get(&nth)?))
            })
            .collect();
        ensure!(
            latencies.len() == usize::try_from(SLOTS)? * (RECEIVERS - 1),
            "{} messages arrived in time",
            latencies.len()
        );
        Ok(latencies)
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        self.running.await.context("the dispatcher panicked")?;
        self.queue.store.close().await;
        Ok(())
    }
}
