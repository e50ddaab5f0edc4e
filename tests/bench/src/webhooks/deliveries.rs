//! Deliveries per second, leased, signed, posted and recorded, against a bare client that posts the same.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use service_kit::{CancellationToken, Clock};
use sluice_indexer::{
    delivery::{capacity::Submissions, dispatcher::Dispatcher, limits::MAX_IN_FLIGHT, retry},
    metrics::Metrics,
    to_lease::ToLease,
    traces::MessageTraces,
};
use sluice_store::{
    Commitment, Store,
    testing::{Disk, PrivateCluster},
};
use sluice_testkit::{
    figure::{Figure, Limit},
    load::LoadClient,
};
use sluice_webhook_client::{Client, Reach};

use super::{
    bare::{self, EndpointRequests, Prepared},
    queue::{POOLS, Queue},
    receiver::{Keeping, Receivers},
};

/// Webhooks, each with a receiver of its own.
const WEBHOOKS: usize = 8;

/// Messages of one round.
const MESSAGES: u64 = 20_000;

/// Rounds of each, in turns, so that all meet the same other work on the machine.
const ROUNDS: usize = 7;

/// Deadline of an attempt: the default.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// Measures both databases against the bare client.
///
/// # Errors
/// When something does not start or does not answer.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let receivers = Receivers::start(WEBHOOKS, Keeping::Count)?;
    let client = Client::new(DEADLINE, Reach::PublicAndLoopback)?;
    let cluster = PrivateCluster::start(&folder.path().join("postgres"), Disk::Waits)?;
    let url = cluster.create_database("bench").await?;
    let mut sqlite = queue(
        Store::open(&folder.path().join("sluice.db")).await?,
        &receivers,
    )
    .await?;
    let mut postgres = queue(Store::connect(&url).await?, &receivers).await?;
    let at_once = usize::try_from(MAX_IN_FLIGHT)?;
    let (endpoints, mut clients) = endpoints(&mut sqlite, &receivers, at_once).await?;
    let bare_client = bare::client(at_once)?;

    let mut rounds = Rounds::default();
    for round in 0..=ROUNDS {
        let bare = bare::send_all(&bare_client, &endpoints, at_once).await?;
        let driven = drive_all(&mut clients).await?;
        let on_sqlite = drain(&mut sqlite, &receivers, &client).await?;
        let on_postgres = drain(&mut postgres, &receivers, &client).await?;
        // The first round opens connections and fills caches.
        if round > 0 {
            rounds.add(bare, driven, on_sqlite, on_postgres);
        }
    }
    postgres.store.close().await;
    sqlite.store.close().await;
    Ok(rounds.figures())
}

/// Deliveries per second of each round.
#[derive(Default)]
struct Rounds {
    bare: Vec<f64>,
    driven: Vec<f64>,
    sqlite: Vec<f64>,
    postgres: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, bare: Duration, driven: Duration, sqlite: Duration, postgres: Duration) {
        let all = [
            (&mut self.bare, bare),
            (&mut self.driven, driven),
            (&mut self.sqlite, sqlite),
            (&mut self.postgres, postgres),
        ];
        for (rates, took) in all {
            rates.push(rate(took));
        }
        let last = |rates: &[f64]| rates.last().copied().unwrap_or_default();
        println!(
            "deliveries/s: bare client {:.0}, connections alone {:.0}, SQLite {:.0}, PostgreSQL {:.0}",
            last(&self.bare),
            last(&self.driven),
            last(&self.sqlite),
            last(&self.postgres)
        );
    }

    fn figures(&self) -> Vec<Figure> {
        let rate = |figure, rates: &[f64]| {
            Figure::new(
                figure,
                median(rates.to_vec()).round(),
                "deliveries/s",
                Limit::None,
            )
        };
        let share = |figure, rates: &[f64], least| {
            let shares = rates.iter().zip(&self.bare).map(|(rate, bare)| rate / bare);
            Figure::new(
                figure,
                median(shares.collect()),
                "ratio",
                Limit::AtLeast(least),
            )
        };
        vec![
            rate("deliveries of a bare client", &self.bare),
            rate(
                "the same bodies over connections without a client",
                &self.driven,
            ),
            rate("durable deliveries, SQLite", &self.sqlite),
            share(
                "durable deliveries, SQLite, against the bare client",
                &self.sqlite,
                0.35,
            ),
            rate("durable deliveries, PostgreSQL", &self.postgres),
            share(
                "durable deliveries, PostgreSQL, against the bare client",
                &self.postgres,
                0.25,
            ),
        ]
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn rate(took: Duration) -> f64 {
    MESSAGES as f64 / took.as_secs_f64()
}

/// The one in the middle; not a number when there is none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn queue(store: Store, receivers: &Receivers) -> anyhow::Result<Queue> {
    Queue::create(store, &receivers.urls(), Commitment::Confirmed).await
}

/// Requests of a round, as many in all and to each receiver as are delivered: for the bare client, and for clients that are
/// connections alone.
async fn endpoints(
    queue: &mut Queue,
    receivers: &Receivers,
    at_once: usize,
) -> anyhow::Result<(Vec<EndpointRequests>, Vec<LoadClient>)> {
    let mut messages = Vec::new();
    while messages.len() < usize::try_from(MESSAGES)? {
        messages.extend(queue.messages(0, POOLS.min(MESSAGES)));
    }
    ensure!(
        messages.len() == usize::try_from(MESSAGES)?,
        "rounds would differ in length"
    );
    let (mut endpoints, mut clients) = (Vec::new(), Vec::new());
    for (webhook, address) in queue.webhooks.iter().zip(receivers.addresses()) {
        let secrets = queue.secrets(webhook).await?;
        let requests: Vec<Prepared> = messages
            .iter()
            .filter(|message| message.webhook == *webhook)
            .map(|message| Prepared::new(message, &secrets, *address))
            .collect::<Result<_, _>>()?;
        let bytes: Vec<_> = requests.iter().map(Prepared::bytes).collect();
        clients.push(LoadClient::connect(*address, at_once, bytes).await?);
        endpoints.push(EndpointRequests::new(*address, requests)?);
    }
    Ok((endpoints, clients))
}

/// Sends everything over all connections of all clients at once; says how long it took.
async fn drive_all(clients: &mut [LoadClient]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    try_join_all(clients.iter_mut().map(LoadClient::send_all)).await?;
    Ok(begun.elapsed())
}

/// Delivers a full queue until it is empty and everything is recorded; says how long it took.
async fn drain(
    queue: &mut Queue,
    receivers: &Receivers,
    client: &Client,
) -> anyhow::Result<Duration> {
    queue.owe(MESSAGES).await?;
    let (store, owed) = (queue.store.clone(), Owed::default());
    let storing = async { Ok(()) };
    deliver(&store, (receivers, MESSAGES), client, owed, storing).await
}

/// How a dispatcher is told of what is stored.
pub(super) struct Owed {
    pub(super) to_lease: Arc<ToLease>,
    pub(super) submissions: Submissions,
}

impl Default for Owed {
    fn default() -> Self {
        Self {
            to_lease: Arc::default(),
            submissions: Submissions::new(DEADLINE),
        }
    }
}

/// Delivers so many messages, of which some are stored only by `storing`, until everything is recorded; says how long it
/// took.
pub(super) async fn deliver(
    store: &Store,
    (receivers, messages): (&Receivers, u64),
    client: &Client,
    owed: Owed,
    storing: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Duration> {
    let expected = receivers.count() + messages;
    let dispatcher = Dispatcher {
        store: store.clone(),
        client: client.clone(),
        schedule: retry::SCHEDULE.into(),
        most_pulled: sluice_store::MOST_PULLED,
        to_lease: owed.to_lease,
        metrics: Metrics::default(),
        traces: MessageTraces::default(),
        clock: Clock::system(),
    };
    let shutdown = CancellationToken::new();
    let begun = Instant::now();
    let running = tokio::spawn(dispatcher.run(owed.submissions, shutdown.clone()));
    storing.await?;
    receivers.until(expected).await?;
    // It records what is left before it ends.
    shutdown.cancel();
    running.await.context("the dispatcher panicked")?;
    let took = begun.elapsed();
    let stats = store.queue_stats().await?;
    ensure!(
        stats.pending == 0 && stats.failed == 0 && receivers.count() == expected,
        "not everything was delivered once and recorded: {stats:?}"
    );
    Ok(took)
}
