//! Wires up the API: store, market, RPC client, routes and listener, until shutdown.

use std::{num::NonZeroUsize, sync::Arc};

use anyhow::Context;
use axum::Router;
use service_kit::{CancellationToken, Clock, Reference, ReferenceClock, open_files};
use sluice_config::{ApiConfig, ClientLimitsConfig, Config, WebhooksConfig};
use sluice_market::{Endpoint, Market};
use sluice_store::{SharedTime, Store, StoreError};
use sluice_transaction::{Exchange, ExchangeIds};
use sluice_webhook_client::Client;
use solana_pubkey::Pubkey;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    auth::{Authenticator, CallerLimiter, RateLimit},
    calibrator::{self, Calibrator},
    client::Proxies,
    client_limits::ClientLimits,
    console::{self, DemoWallet},
    metrics::{self, Metrics},
    middleware::{Quotes, Surrounded},
    pages,
    places::{Most, Places},
    rate_limit::Opened,
    request_id::RequestIds,
    router::{quotes, router},
    routes::{keys, webhooks},
    rpc::{Rpc, SendNodes},
    sender::{self, Sender, Shortage},
    server::{self, Deadlines},
    state::{AppState, ChainAccess},
};

/// Serves the API until `shutdown`. The store is the process's one, which is closed where it was opened. Times of webhooks
/// are by its server's clock, if there is one; what quotes go by is `host`, this machine's.
///
/// # Errors
/// When the database cannot be read or the address cannot be bound. Later trouble with the stream,
/// the RPC or the database makes the API not ready; it does not end it.
pub async fn run(
    config: Config,
    store: Store,
    host: Clock,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let listen = config.api.listen;
    let listener = listener(&config.api)?;
    let lookup_table = lookup_table(config.chain.lookup_table.as_deref())?;
    let ids = exchange_ids(&config)?;
    let (market, market_task) = sluice_market::spawn(
        market_settings(&config, ids),
        host.clone(),
        shutdown.clone(),
    );
    let metrics = Metrics::default();
    let rpc = Arc::new(Rpc::new(
        config.chain.rpc_url.as_str(),
        ids,
        config.chain.rpc_timeout(),
        metrics.clone(),
    ));
    let authenticator = authenticator(&config.api, &store).await?;
    let (clock, following) = follow_database(&host, store.clone(), shutdown.clone()).await?;
    let webhooks = hooks(&config.webhooks, &store, &authenticator, clock, &shutdown)?;
    let blockhashes = tokio::spawn(Arc::clone(&rpc).keep_fresh(shutdown.clone()));
    let table = Arc::clone(&rpc).keep_lookup_table(lookup_table, shutdown.clone());
    let table = tokio::spawn(table);
    let sources = calibrator::Sources {
        market: market.clone(),
        rpc: Arc::clone(&rpc),
        store: store.clone(),
        executions: sluice_market::follow_executions(ids, endpoints(&config), shutdown.clone()),
    };
    let (calibrator, calibration) = calibrate(&config, sources, host, &metrics, &shutdown);
    let shortage = Shortage {
        market: market.clone(),
        rpc: Arc::clone(&rpc),
        calibrator: Arc::clone(&calibrator),
    };
    let (sender, sending) = send(&config, shortage, &metrics, &shutdown);
    let shown = shown(&config.api, &metrics, &market, authenticator)?;
    let places = ClientPlaces::new(&config.api.clients, &metrics);
    let chain = ChainAccess {
        market,
        rpc,
        calibrator,
        sender,
        unwraps_lamports: config.chain.unwrap_lamports,
    };
    let origins = config.api.cors_origins.clone();
    let state = AppState::new(chain, store, places.streams, origins, shutdown.clone());
    tracing::info!(%listen, "API listening");
    let quotes = quotes(state.clone());
    let routes = router(state, webhooks).merge(shown);
    serve(
        listener,
        (routes, quotes),
        places.connections,
        &config.api,
        metrics,
        shutdown,
    )
    .await;
    market_task.await.context("the market task failed")?;
    following.await.context("the clock's task failed")?;
    blockhashes.await.context("the blockhash task failed")?;
    table.await.context("the lookup table task failed")?;
    calibration.await.context("the calibration task failed")?;
    sending.await.context("the sender's task failed")?;
    Ok(())
}

/// Where clients connect, of which there may be as many as the configuration allows, each with a file of its own.
fn listener(config: &ApiConfig) -> anyhow::Result<TcpListener> {
    let connections = u64::try_from(config.clients.connections.get()).unwrap_or(u64::MAX);
    open_files::raise(connections.saturating_add(open_files::OTHERS));
    let listen = config.listen;
    server::listen(listen).with_context(|| format!("cannot listen on {listen} (api.listen)"))
}

/// The routes of webhooks, and of the keys that they are managed with.
fn hooks(
    config: &WebhooksConfig,
    store: &Store,
    authenticator: &Authenticator,
    clock: Clock,
    shutdown: &CancellationToken,
) -> anyhow::Result<Router> {
    let webhooks = webhooks::router(
        store.clone(),
        webhooks::Settings::from(config),
        test_client(config)?,
        authenticator.clone(),
        clock.clone(),
        shutdown.clone(),
    );
    Ok(webhooks.merge(keys::router(store.clone(), authenticator.clone(), clock)))
}

/// The client that sends tests of webhooks.
fn test_client(config: &WebhooksConfig) -> anyhow::Result<Client> {
    let reach = webhooks::Settings::from(config).reach;
    Client::new(config.delivery_timeout(), reach)
        .context("cannot set up the HTTP client for tests of webhooks")
}

/// What is shown to people and to machines that watch: metrics, pages, the console.
fn shown(
    api: &ApiConfig,
    metrics: &Metrics,
    market: &Market,
    authenticator: Authenticator,
) -> anyhow::Result<Router> {
    let (metrics, market) = (metrics.clone(), market.clone());
    let demo_wallet = api.demo_wallet.as_deref().map(DemoWallet::read);
    let demo_wallet = demo_wallet.transpose()?;
    if demo_wallet.is_some() {
        tracing::warn!(
            "api.demo-wallet: whoever opens the console on this machine signs with its key"
        );
    }
    let routes = metrics::routes(metrics.clone(), market.clone(), api.metrics_for_all);
    Ok(routes.merge(pages::routes()).merge(console::routes(
        authenticator,
        metrics,
        market,
        demo_wallet,
    )))
}

/// What the exchange's swaps may use, and the task that learns it until `shutdown`.
fn calibrate(
    config: &Config,
    sources: calibrator::Sources,
    host: Clock,
    metrics: &Metrics,
    shutdown: &CancellationToken,
) -> (Arc<Calibrator>, JoinHandle<()>) {
    let exchange = exchange(config.chain.exchange);
    let calibrator = Arc::new(Calibrator::new(exchange, host, metrics.clone()));
    let learning = calibrator::run(Arc::clone(&calibrator), sources, shutdown.clone());
    (calibrator, tokio::spawn(learning))
}

/// What sends transactions to all nodes, and the task that follows them until `shutdown`.
fn send(
    config: &Config,
    shortage: Shortage,
    metrics: &Metrics,
    shutdown: &CancellationToken,
) -> (Arc<Sender>, JoinHandle<()>) {
    let chain = &config.chain;
    let urls = std::iter::once(&chain.rpc_url).chain(&chain.send_urls);
    let nodes = SendNodes::new(urls, chain.rpc_timeout(), metrics);
    let rpc = Arc::clone(&shortage.rpc);
    let sender = Arc::new(Sender::new(rpc, nodes, shortage, metrics.clone()));
    let sightings = sluice_market::watch_program(
        swap_guard_interface::PROGRAM_ID,
        endpoints(config),
        shutdown.clone(),
    );
    let following = sender::run(Arc::clone(&sender), sightings, shutdown.clone());
    (sender, tokio::spawn(following))
}

/// A clock that goes by the database's, and the task that keeps it so until `shutdown`.
async fn follow_database(
    host: &Clock,
    store: Store,
    shutdown: CancellationToken,
) -> Result<(Clock, JoinHandle<()>), StoreError> {
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
    let reference = ReferenceClock::start(host.clone(), read).await?;
    Ok((reference.clock(), tokio::spawn(reference.run(shutdown))))
}

/// Serves the routes to clients, as the configuration limits these, until `shutdown`.
async fn serve(
    listener: TcpListener,
    (routes, quotes): (Router, Quotes),
    connections: Places,
    api: &ApiConfig,
    metrics: Metrics,
    shutdown: CancellationToken,
) {
    let clients = &api.clients;
    let proxies = Proxies::new(clients.trusted_proxies.clone(), &clients.client_header);
    let limits = client_limits(clients, proxies);
    let ids = RequestIds::new(rand::random());
    let routes = Surrounded::new(routes, quotes, &api.cors_origins, limits, metrics, ids);
    let deadlines = Deadlines {
        head: clients.head_timeout(),
        write: clients.write_timeout(),
    };
    server::serve(listener, Arc::new(routes), connections, deadlines, shutdown).await;
}

/// What clients may hold open.
struct ClientPlaces {
    connections: Places,
    streams: Places,
}

impl ClientPlaces {
    fn new(clients: &ClientLimitsConfig, metrics: &Metrics) -> Self {
        let proxies = Proxies::new(clients.trusted_proxies.clone(), &clients.client_header);
        let places = |of, of_all: NonZeroUsize, of_client: NonZeroUsize| {
            let most = Most {
                of_all: of_all.get(),
                of_client: of_client.get(),
                limits_loopback: clients.loopback,
            };
            Places::new(of, most, proxies.clone(), metrics.clone())
        };
        let (connections, streams) = (Opened::Connections, Opened::Streams);
        Self {
            connections: places(
                connections,
                clients.connections,
                clients.connections_per_client,
            ),
            streams: places(streams, clients.streams, clients.streams_per_client),
        }
    }
}

/// How many requests a client may make.
fn client_limits(clients: &ClientLimitsConfig, proxies: Proxies) -> ClientLimits {
    let requests = RateLimit {
        per_minute: clients.requests_per_minute,
        burst: clients.requests_burst,
    };
    let node_requests = RateLimit {
        per_minute: clients.node_requests_per_minute,
        burst: clients.node_requests_burst,
    };
    ClientLimits::new(requests, node_requests, proxies, clients.loopback)
}

/// The address of the lookup table that the configuration names.
fn lookup_table(configured: Option<&str>) -> anyhow::Result<Option<Pubkey>> {
    let parsed = configured.map(str::parse::<Pubkey>).transpose();
    parsed.context("chain.lookup-table is no address; name the table that `sluice lookup-table create` printed")
}

/// Where the exchange of the configuration is.
fn exchange_ids(config: &Config) -> anyhow::Result<ExchangeIds> {
    ExchangeIds::configured(config.chain.exchange_program.as_deref())
        .context("chain.exchange-program")
}

/// The exchange of the configuration, as transactions are built for it.
const fn exchange(configured: sluice_config::Exchange) -> Exchange {
    match configured {
        sluice_config::Exchange::Raydium => Exchange::Raydium,
        sluice_config::Exchange::StandIn => Exchange::StandIn,
    }
}

/// The servers of the stream.
fn endpoints(config: &Config) -> Vec<Endpoint> {
    let endpoints = config.geyser.endpoints().into_iter();
    endpoints
        .map(|endpoint| Endpoint {
            url: endpoint.url,
            x_token: endpoint.x_token,
        })
        .collect()
}

/// The market's part of the configuration.
fn market_settings(config: &Config, exchange: ExchangeIds) -> sluice_market::Settings {
    let geyser = &config.geyser;
    sluice_market::Settings {
        exchange,
        endpoints: endpoints(config),
        rpc_url: config.chain.rpc_url.clone(),
        read_limits: sluice_market::ReadLimits {
            idle_timeout: config.bootstrap.idle_timeout(),
            answer_timeout: config.bootstrap.answer_timeout(),
            parallel_calls: config.bootstrap.parallel_calls,
        },
        watch_closed_accounts: geyser.watch_closed_accounts,
        freshness: sluice_market::Freshness {
            max_clock_age: config.freshness.max_clock_age(),
            max_slots_behind: config.freshness.max_slots_behind,
        },
    }
}

/// The authenticator of the webhook routes. While no API key was ever made, the log says who is let in.
async fn authenticator(api: &ApiConfig, store: &Store) -> anyhow::Result<Authenticator> {
    if !store.api_keys_in_use().await? {
        if api.keyless {
            tracing::warn!(
                "api.keyless: there are no API keys, and every program of this process's user on this machine manages all webhooks"
            );
        } else {
            tracing::warn!(
                "the webhook routes refuse every request: there are no API keys; make one with `sluice keys add NAME`, \
                 or set api.keyless where every program of this process's user may manage webhooks"
            );
        }
    }
    let limiter = CallerLimiter::new(RateLimit {
        per_minute: api.rate_limit_per_minute,
        burst: api.rate_limit_burst,
    });
    Ok(Authenticator::new(store.clone(), limiter, api.keyless))
}
