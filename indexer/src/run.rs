//! Wiring of the indexer: makes every task from the configuration, and runs them until shutdown.

#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use anyhow::Context;
use service_kit::{
    CancellationToken, Clock, Reference, ReferenceClock, open_files,
    traces::{self, Exporting, Traces},
};
use sluice_config::Config;
use sluice_geyser::{Endpoint, Servers};
use sluice_store::{MOST_PULLED, SharedTime, Store, StoreError};
use sluice_webhook_client::{Client, Reach};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{
    delivery::{
        capacity::{DispatchCapacity, Submissions},
        dispatcher::Dispatcher,
        limits::{MAX_LEASED, MAX_LEASED_BYTES, MOST_IDLE_OF_PROCESS, most_idle, most_leased},
        retry,
    },
    events::{idl::Idls, subscription_index::Subscriptions},
    health::{self, Health},
    heartbeat::HeartbeatWriter,
    idl_reader::IdlReader,
    idl_watcher::IdlWatcher,
    ingest::{
        backfill::Backfill, follower::Follower, outbox::Outbox,
        requested_backfill::RequestedBackfills, session::SessionContext, settling::Settling,
    },
    leadership,
    metrics::Metrics,
    operation_writer::OperationWriter,
    retention,
    rpc::Node,
    status::Status,
    subscription_watcher::SubscriptionWatcher,
    to_lease::ToLease,
    traces::MessageTraces,
};

/// What this process is called among the services of a collector of traces.
const SERVICE: &str = "sluice-indexer";

/// Runs the indexer until `shutdown`, then lets deliveries under way finish, each until its deadline. A stream
/// or a database that goes away meanwhile ends nothing: it is logged, the readiness answer says so, and
/// work resumes when they return.
///
/// Of several processes on one database all deliver and one, the leader, ingests the chain; another takes over when that
/// one dies.
///
/// The store is the process's one, which is closed where it was opened. All times are by the database's clock, where it has
/// one of its own, and otherwise go on from `host`, this machine's, as it is at the start.
///
/// # Errors
/// When the indexer cannot start: the database cannot be read, an IDL is not understood, or the health
/// address is taken. Or when one of its tasks breaks off, which is a fault of ours.
pub async fn run(
    config: Config,
    store: Store,
    host: Clock,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let idls = idls(&config)?;
    let listen = config.indexer.listen;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen} for health requests"))?;
    let open_files = raised_open_files();
    let client = client(&config, open_files)?;
    // One task's end ends them all, so that a supervisor sees a dead process and not half an indexer.
    let stop = shutdown.child_token();
    let (clock, following) = follow_database(host, store.clone(), stop.clone()).await?;
    let (watcher, subscriptions) = SubscriptionWatcher::start(store.clone()).await?;
    let (idl_watcher, idls) = IdlWatcher::start(store.clone(), idls).await?;
    let status = Status::new(config.indexer.longest_standstill());
    let metrics = Metrics::default();
    let (traces, exporting) = traces(&config)?;
    let stored = Arc::<ToLease>::default();
    let submissions =
        Submissions::with_room(client.deadline(), most_leased(open_files), MAX_LEASED_BYTES);
    let servers = servers(&config);
    let leader_tasks = LeaderTasks {
        node: node(&config),
        servers: servers.clone(),
        store: store.clone(),
        subscriptions: subscriptions.clone(),
        idls,
        idl_refresh: config.webhooks.idl_refresh(),
        status: status.clone(),
        stored: Arc::clone(&stored),
        capacity: submissions.capacity(),
        metrics: metrics.clone(),
        traces: traces.clone(),
        probes_limits: config.geyser.probe_limits,
        watches_closed: config.geyser.watch_closed_accounts,
        retention: retention_limits(&config),
        clock: clock.clone(),
    };
    let dispatcher = Dispatcher {
        store: store.clone(),
        client,
        schedule: retry::schedule(config.webhooks.retry_pauses()),
        most_pulled: MOST_PULLED,
        to_lease: stored,
        metrics: metrics.clone(),
        traces,
        clock: clock.clone(),
    };
    let health = Health {
        servers,
        store: store.clone(),
        status,
        subscriptions,
        metrics,
        clock,
    };

    let mut tasks = JoinSet::new();
    tasks.spawn(following);
    if let Some(exporting) = exporting {
        tasks.spawn(exporting.run(stop.clone()));
    }
    tasks.spawn(watcher.run(stop.clone()));
    tasks.spawn(idl_watcher.run(stop.clone()));
    tasks.spawn(leader_tasks.run(stop.clone()));
    tasks.spawn(dispatcher.run(submissions, stop.clone()));
    tasks.spawn(serve_health(listener, health, stop.clone()));
    tracing::info!(%listen, "the indexer runs");
    until_ended(tasks, &shutdown, &stop).await
}

/// Answers health requests until `stop`.
async fn serve_health(listener: TcpListener, health: Health, stop: CancellationToken) {
    if let Err(error) = health::serve(listener, health, stop).await {
        tracing::error!(%error, "the health endpoints failed");
    }
}

/// Waits for all tasks; the first one that ends stops the others.
async fn until_ended(
    mut tasks: JoinSet<()>,
    shutdown: &CancellationToken,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut broken = false;
    while let Some(ended) = tasks.join_next().await {
        broken |= ended.is_err() || !shutdown.is_cancelled();
        stop.cancel();
    }
    anyhow::ensure!(
        !broken,
        "a task of the indexer ended by itself; the log says why"
    );
    tracing::info!("the indexer has stopped");
    Ok(())
}

/// How many files this process may have open, after asking for a socket for each delivery and one that is kept for the next.
fn raised_open_files() -> Option<u64> {
    let sockets =
        u64::try_from(MAX_LEASED.saturating_add(MOST_IDLE_OF_PROCESS)).unwrap_or(u64::MAX);
    open_files::raise(sockets.saturating_add(open_files::OTHERS))
}

/// What decodes events: the built-in IDLs, the exchange's for its address on this cluster, and those that are configured.
fn idls(config: &Config) -> anyhow::Result<Idls> {
    let exchange = config.chain.exchange_program.as_deref();
    let exchange = exchange.map(str::parse).transpose().context(
        "chain.exchange-program is no address; give the exchange's program, 32 bytes in base58",
    )?;
    Idls::load(&config.webhooks.idls, exchange).context("webhooks.idls names a bad file")
}

/// A clock that goes by the database's, and what keeps it so until `stop`.
async fn follow_database(
    host: Clock,
    store: Store,
    stop: CancellationToken,
) -> Result<(Clock, impl Future<Output = ()> + Send), StoreError> {
    let read = move || {
        let store = store.clone();
        async move {
            let shared = store.shared_time().await?;
            Ok::<_, StoreError>(shared.map(|time| match time {
                SharedTime::Server(now) => Reference::Shows(now.into()),
                SharedTime::Noted(time) => Reference::IsPast(time.into()),
            }))
        }
    };
    let reference = ReferenceClock::start(host, read).await?;
    Ok((reference.clock(), reference.run(stop)))
}

/// What posts messages, with no more connections kept open than this process has files for.
fn client(config: &Config, open_files: Option<u64>) -> anyhow::Result<Client> {
    let reach = if config.webhooks.allow_http_loopback {
        Reach::PublicAndLoopback
    } else {
        Reach::Public
    };
    let client = Client::new(config.webhooks.delivery_timeout(), reach)
        .context("cannot set up the HTTP client for deliveries")?;
    Ok(client.keeping_open(most_idle(open_files)))
}

/// The traces of messages, and the task that sends them where there is a collector.
fn traces(config: &Config) -> anyhow::Result<(MessageTraces, Option<Exporting>)> {
    let Some(endpoint) = config.telemetry.otlp_endpoint() else {
        return Ok((MessageTraces::default(), None));
    };
    let settings = traces::Settings {
        endpoint: endpoint.to_owned(),
        ratio: config.telemetry.trace_ratio,
        service: SERVICE,
    };
    let started = Traces::start(&settings);
    let (traces, exporting) =
        started.context("cannot set up the way to telemetry.otlp-endpoint")?;
    Ok((MessageTraces::new(traces), Some(exporting)))
}

/// How long messages are kept.
fn retention_limits(config: &Config) -> retention::Limits {
    retention::Limits {
        finished: config.webhooks.retention(),
        undelivered: config.webhooks.undelivered_retention(),
        bytes: config.webhooks.max_stored_bytes(),
    }
}

/// The stream's servers.
fn servers(config: &Config) -> Servers {
    let endpoints = config.geyser.endpoints().into_iter();
    Servers::new(endpoints.map(|endpoint| Endpoint {
        url: endpoint.url,
        x_token: endpoint.x_token,
    }))
}

/// The node from which slots are read that no stream server replays; `None` where that is switched off.
fn node(config: &Config) -> Option<Node> {
    let calls_per_second = NonZeroU32::new(config.indexer.backfill_calls_per_second)?;
    let (url, timeout) = (config.chain.rpc_url.clone(), config.chain.rpc_timeout());
    Some(Node::new(url, calls_per_second, timeout))
}

/// The tasks of the leader.
struct LeaderTasks {
    servers: Servers,
    /// Where slots are read that no stream server replays.
    node: Option<Node>,
    /// By which they are elected.
    store: Store,
    subscriptions: watch::Receiver<Arc<Subscriptions>>,
    idls: watch::Receiver<Arc<Idls>>,
    /// How long an IDL counts that was read from the chain; `None` where none is read.
    idl_refresh: Option<Duration>,
    status: Status,
    stored: Arc<ToLease>,
    capacity: DispatchCapacity,
    metrics: Metrics,
    traces: MessageTraces,
    retention: retention::Limits,
    clock: Clock,
    probes_limits: bool,
    watches_closed: bool,
}

impl LeaderTasks {
    async fn run(self, shutdown: CancellationToken) {
        let start = |tasks: &mut JoinSet<()>, store: &Store, stop: &CancellationToken| {
            self.start(tasks, store, stop);
        };
        let observers = (&self.status, &self.metrics);
        if !leadership::run(&self.store, observers, start, &shutdown).await {
            tracing::error!("a task of the leader ended by itself");
        }
    }

    /// Starts them on a store that takes their writes while this process leads.
    fn start(&self, tasks: &mut JoinSet<()>, store: &Store, stop: &CancellationToken) {
        let settling = Settling::default();
        let outbox = Outbox {
            store: store.clone(),
            stored: Arc::clone(&self.stored),
            settling: settling.clone(),
            capacity: self.capacity.clone(),
            metrics: self.metrics.clone(),
            traces: self.traces.clone(),
            clock: self.clock.clone(),
        };
        let backfills = RequestedBackfills {
            node: self.node.clone(),
            outbox: outbox.clone(),
            idls: self.idls.clone(),
            status: self.status.clone(),
        };
        let follower = Follower {
            servers: self.servers.clone(),
            probes_limits: self.probes_limits,
            watches_closed: self.watches_closed,
            subscriptions: self.subscriptions.clone(),
            backfill: self.node.clone().map(Backfill::new),
            context: SessionContext {
                outbox,
                idls: self.idls.clone(),
                status: self.status.clone(),
                node: self.node.clone(),
            },
        };
        let heartbeats = HeartbeatWriter {
            store: store.clone(),
            subscriptions: self.subscriptions.clone(),
            stored: Arc::clone(&self.stored),
            clock: self.clock.clone(),
        };
        if let (Some(node), Some(refresh)) = (&self.node, self.idl_refresh) {
            let reader = IdlReader {
                node: node.clone(),
                store: store.clone(),
                subscriptions: self.subscriptions.clone(),
                idls: self.idls.clone(),
                refresh,
                clock: self.clock.clone(),
            };
            tasks.spawn(reader.run(stop.clone()));
        }
        tasks.spawn(follower.run(stop.clone()));
        tasks.spawn(settling.run(store.clone(), self.metrics.clone(), stop.clone()));
        let operations = OperationWriter {
            store: store.clone(),
            stored: Arc::clone(&self.stored),
            clock: self.clock.clone(),
        };
        tasks.spawn(heartbeats.run(stop.clone()));
        tasks.spawn(operations.run(stop.clone()));
        tasks.spawn(backfills.run(stop.clone()));
        tasks.spawn(retention::run(
            store.clone(),
            self.retention,
            self.clock.clone(),
            stop.clone(),
        ));
    }
}
