//! The whole indexer, as `sluice indexer` runs it, over a database file.

use std::{net::SocketAddr, path::Path};

use anyhow::Context;
use service_kit::{CancellationToken, Clock};
use sluice_config::Config;
use sluice_harness::services;
use sluice_testkit::free_port::free_address;
use tokio::task::JoinHandle;

/// A running indexer.
pub struct Indexer {
    shutdown: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Indexer {
    /// Starts one that follows this stream.
    ///
    /// # Errors
    /// When there is no free port for its health endpoints.
    pub fn start(geyser: &str, database: &Path) -> anyhow::Result<Self> {
        let shutdown = CancellationToken::new();
        let config = config(geyser, database, free_address()?)?;
        let running = tokio::spawn(services::indexer(config, Clock::system(), shutdown.clone()));
        Ok(Self { shutdown, running })
    }

    /// Stops it.
    ///
    /// # Errors
    /// When it broke off before.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        self.running.await.context("the indexer panicked")?
    }
}

/// The configuration of an indexer that may deliver to this machine.
///
/// # Errors
/// When an argument does not fit into one.
pub fn config(geyser: &str, database: &Path, health: SocketAddr) -> anyhow::Result<Config> {
    let text = format!(
        "[chain]\nrpc-url = \"http://127.0.0.1:1\"\n[geyser]\nprobe-limits = false\n[[geyser.endpoints]]\nurl = \"{geyser}\"\n[store]\npath = {database:?}\n\
         [indexer]\nlisten = \"{health}\"\n[webhooks]\nallow-http-loopback = true\n"
    );
    Ok(Config::parse(&text, Path::new("bench.toml"))?)
}
