//! All wiring of the indexer, top to bottom.

use std::sync::Arc;

use anyhow::Context;
use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_geyser::Endpoint;
use sluice_store::Store;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    follow::Follower,
    health::{self, Health},
    retention,
    status::Status,
    webhooks::{deliver::Dispatcher, retry, send::Sender, watch as webhooks},
};

/// Runs the indexer until `shutdown`, then lets deliveries under way finish for a few seconds. A stream
/// or a database that goes away meanwhile ends nothing: it is logged, the readiness answer says so, and
/// work resumes when they return.
///
/// # Errors
/// When the indexer cannot start: the database cannot be opened, or the health address is taken. Or
/// when one of its tasks breaks off, which is a fault of ours.
pub async fn run(config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let store = Store::open(&config.store.path).await?;
    let listener = TcpListener::bind(config.indexer.listen)
        .await
        .with_context(|| {
            format!(
                "cannot listen on {} for health requests",
                config.indexer.listen
            )
        })?;
    let sender = Sender::new(
        config.webhooks.delivery_timeout(),
        config.webhooks.allow_http_loopback,
    )
    .context("cannot set up the HTTP client for deliveries")?;

    let (publish, subscriptions) = watch::channel(webhooks::load(&store).await?);
    let status = Status::default();
    let stored = Arc::new(Notify::new());
    let follower = Follower {
        endpoint: Endpoint {
            url: config.geyser.endpoint,
            x_token: config.geyser.x_token,
        },
        store: store.clone(),
        subscriptions: subscriptions.clone(),
        status: status.clone(),
        stored: Arc::clone(&stored),
    };
    let dispatcher = Dispatcher {
        store: store.clone(),
        sender,
        deadline: config.webhooks.delivery_timeout(),
        schedule: &retry::SCHEDULE,
        stored,
    };
    let health = Health {
        store: store.clone(),
        status,
        subscriptions,
    };

    // One task's end ends them all, so that a supervisor sees a dead process and not half an indexer.
    let stop = shutdown.child_token();
    let mut tasks = JoinSet::new();
    tasks.spawn(webhooks::run(store.clone(), publish, stop.clone()));
    tasks.spawn(follower.run(stop.clone()));
    tasks.spawn(dispatcher.run(stop.clone()));
    tasks.spawn(retention::run(store.clone(), stop.clone()));
    let serving = stop.clone();
    tasks.spawn(async move {
        if let Err(error) = health::serve(listener, health, serving).await {
            tracing::error!(%error, "the health endpoints failed");
        }
    });
    tracing::info!(listen = %config.indexer.listen, "the indexer runs");

    let mut broken = false;
    while let Some(ended) = tasks.join_next().await {
        broken |= ended.is_err() || !shutdown.is_cancelled();
        stop.cancel();
    }
    store.close().await;
    anyhow::ensure!(
        !broken,
        "a task of the indexer ended by itself; the log says why"
    );
    tracing::info!("the indexer has stopped");
    Ok(())
}
