//! All wiring of the API, top to bottom.

use std::sync::Arc;

use anyhow::Context;
use axum::serve::ListenerExt;
use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_store::Store;
use tokio::net::TcpListener;

use crate::{chain::Rpc, market, router::router, routes::webhooks, state::AppState};

/// Serves the API until `shutdown`.
///
/// # Errors
/// When the database cannot be opened or the address cannot be bound. Later trouble with the stream,
/// the RPC or the database makes the API not ready; it does not end it.
pub async fn run(config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let store = Store::open(&config.store.path)
        .await
        .with_context(|| format!("cannot open the database {}", config.store.path.display()))?;
    let listen = config.api.listen;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen} (api.listen)"))?;
    let (market, market_task) = market::spawn(&config, shutdown.clone());
    let rpc = Arc::new(Rpc::new(
        config.chain.rpc_url.as_str(),
        config.chain.rpc_timeout(),
    ));
    let blockhashes = tokio::spawn(Arc::clone(&rpc).keep_fresh(shutdown.clone()));
    let state = AppState::new(market, rpc, store, config.chain.exchange);
    let webhooks_open = listen.ip().is_loopback();
    if !webhooks_open {
        tracing::warn!(
            %listen,
            "webhook routes are not served: there are no API keys, so only loopback may manage webhooks"
        );
    }
    let settings = webhooks::Settings {
        allow_http_loopback: config.webhooks.allow_http_loopback,
    };
    tracing::info!(%listen, "API listening");
    // An answer of several packets must not wait for the acknowledgement of its first.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    axum::serve(listener, router(state, webhooks_open, settings))
        .with_graceful_shutdown(shutdown.clone().cancelled_owned())
        .await
        .context("the API server failed")?;
    market_task.await.context("the market task failed")?;
    blockhashes.await.context("the blockhash task failed")?;
    Ok(())
}
