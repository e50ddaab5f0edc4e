//! Effect of one hanging endpoint on ninety-nine others.
//!
//! The same load runs on two dispatchers, of which one has such an endpoint, in turns. Its messages are stored as the indexer stores
//! them, leased to its own dispatcher.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use service_kit::{CancellationToken, Clock};
use sluice_indexer::{
    delivery::{
        capacity::{DispatchCapacity, Submissions},
        dispatcher::Dispatcher,
        retry,
    },
    metrics::Metrics,
    to_lease::ToLease,
    traces::MessageTraces,
};
use sluice_store::{Commitment, Store};
use sluice_testkit::{
    figure::{Figure, Limit},
    webhook_receiver::Reply,
};
use sluice_webhook_client::{Client, Reach};
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use super::{
    queue::Queue,
    receiver::{Keeping, Manners, Receivers},
};

/// Receivers. Of one row, the first hangs.
pub(super) const RECEIVERS: usize = 100;

/// Messages stored at once, one for each receiver: a slot.
pub(super) const MESSAGES: u64 = 100;

/// Between two of them: 1,000 messages in a second.
const TICK: Duration = Duration::from_millis(100);

/// Slots of one round.
const SLOTS: u64 = 20;

/// Pairs of rounds, so that both rows meet the same other work on the machine. One pair's ratio differs by a third from the next one's
/// where nothing else runs: the median of so many, by some hundredths.
pub(super) const PAIRS: usize = 25;

/// Deadline of an attempt: the default. The receiver that hangs holds its connections for so long.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

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
    let shape = |hanging| Shape {
        receivers: RECEIVERS,
        manners: Manners {
            odd: hanging,
            odd_reply: Reply::Hang,
            reply: Reply::Accept,
        },
        written_from: 0,
        // The same ones in both rows.
        unjudged: 1,
    };
    let healthy = Row::start(&folder.path().join("healthy.db"), shape(0)).await?;
    let hanging = Row::start(&folder.path().join("hanging.db"), shape(1)).await?;
    let compared = compare(healthy, hanging).await?;
    Ok(vec![
        Figure::new(
            "stored -> first byte, p99 of 99 receivers, median of rounds",
            compared.alone * 1_000.0,
            "ms",
            Limit::None,
        ),
        Figure::new(
            "the same beside one that hangs, median of pairs",
            compared.ratio,
            "ratio",
            Limit::AtMost(1.1),
        ),
    ])
}

/// Two rows, by the 99th percentiles of their rounds.
pub(super) struct Compared {
    /// Median of the first row, seconds.
    pub(super) alone: f64,
    /// Median of the pairs of rounds: the other row to the first.
    pub(super) ratio: f64,
}

/// Rounds of both rows, a pair at a time, of which each row begins every other: what the first leaves to be done falls to the second.
pub(super) async fn compare(mut one: Row, mut other: Row) -> anyhow::Result<Compared> {
    let (mut alone, mut ratios) = (Vec::new(), Vec::new());
    for pair in 0..=PAIRS {
        let (without, with) = if pair % 2 == 0 {
            let without = one.round().await?;
            (without, other.round().await?)
        } else {
            let with = other.round().await?;
            (one.round().await?, with)
        };
        // The first pair opens connections.
        if pair > 0 {
            let (without, with) = (p99(without), p99(with));
            alone.push(without);
            ratios.push(with / without);
        }
    }
    one.stop().await?;
    other.stop().await?;
    Ok(Compared {
        alone: median(alone),
        ratio: median(ratios),
    })
}

/// Seconds.
fn p99(mut latencies: Vec<Duration>) -> f64 {
    latencies.sort_unstable();
    let at = latencies.len() * 99 / 100;
    latencies
        .get(at)
        .map_or(f64::INFINITY, Duration::as_secs_f64)
}

/// The one in the middle: a round in which others used the machine does not count.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    values.get(middle).copied().unwrap_or(f64::INFINITY)
}

/// Who receives in a row, and who of them is judged.
pub(super) struct Shape {
    pub(super) receivers: usize,
    pub(super) manners: Manners,
    /// The first pool that each slot writes: those before are of webhooks that get nothing in a round.
    pub(super) written_from: u64,
    /// The first so many receivers, whose latencies do not count.
    pub(super) unjudged: usize,
}

/// A dispatcher with its database and its receivers.
pub(super) struct Row {
    receivers: Receivers,
    shape: Shape,
    pub(super) queue: Queue,
    capacity: DispatchCapacity,
    stored: Arc<ToLease>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Row {
    async fn start(database: &Path, shape: Shape) -> anyhow::Result<Self> {
        let store = Store::open(database).await?;
        let receivers =
            Receivers::start_with(shape.receivers, &shape.manners, Keeping::Everything)?;
        let queue = Queue::create(store, &receivers.urls(), Commitment::Confirmed).await?;
        Self::over(queue, receivers, shape)
    }

    /// The row of these receivers, whose queue may hold something already.
    pub(super) fn over(queue: Queue, receivers: Receivers, shape: Shape) -> anyhow::Result<Self> {
        let store = queue.store.clone();
        let stored = Arc::<ToLease>::default();
        let dispatcher = Dispatcher {
            store,
            client: Client::new(DEADLINE, Reach::PublicAndLoopback)?,
            schedule: retry::SCHEDULE.into(),
            most_pulled: sluice_store::MOST_PULLED,
            to_lease: Arc::clone(&stored),
            metrics: Metrics::default(),
            traces: MessageTraces::default(),
            clock: Clock::system(),
        };
        let shutdown = CancellationToken::new();
        let submissions = Submissions::new(DEADLINE);
        let capacity = submissions.capacity();
        let running = tokio::spawn(dispatcher.run(submissions, shutdown.clone()));
        Ok(Self {
            receivers,
            shape,
            queue,
            capacity,
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
        let unjudged: HashSet<String> = self
            .queue
            .webhooks
            .iter()
            .take(self.shape.unjudged)
            .map(|webhook| webhook.as_str().to_owned())
            .collect();
        let mut last = 0;
        let mut stored = HashMap::new();
        for _ in 0..SLOTS {
            ticks.tick().await;
            let messages = self.queue.messages(self.shape.written_from, MESSAGES);
            let written = self.queue.write(&messages, &self.capacity).await?;
            let now = written.submit(&self.stored).await?;
            last += 1;
            stored.insert(last, now);
        }
        let odd = u64::try_from(self.shape.manners.odd)?;
        // Those that are written, less the odd ones among them.
        let counted = MESSAGES - odd.saturating_sub(self.shape.written_from);
        self.receivers.until(before + SLOTS * counted).await?;
        let mut arrivals = Vec::new();
        let mut newest: HashMap<String, u64> = HashMap::new();
        for arrival in self.receivers.take() {
            let payload: Payload = serde_json::from_slice(&arrival.body)?;
            let most = newest.entry(payload.webhook.clone()).or_default();
            *most = (*most).max(payload.sequence);
            if !unjudged.contains(&payload.webhook) {
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
            latencies.len() == usize::try_from(SLOTS)? * self.judged()?,
            "{} messages arrived in time",
            latencies.len()
        );
        Ok(latencies)
    }

    /// How many receivers are judged.
    fn judged(&self) -> anyhow::Result<usize> {
        let written = usize::try_from(self.shape.written_from)?;
        let written_and_unjudged = self.shape.unjudged.saturating_sub(written);
        Ok(usize::try_from(MESSAGES)? - written_and_unjudged)
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        self.running.await.context("the dispatcher panicked")?;
        self.queue.store.close().await;
        Ok(())
    }
}
