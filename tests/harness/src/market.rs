//! Market harness: the market's own task, between a server and a node named by their addresses.

use std::path::Path;

use service_kit::CancellationToken;
use sluice_api::market::{Market, spawn};
use sluice_config::Config;
use tokio::task::JoinHandle;

/// Settings of a market that listens to the first of these servers that works.
///
/// # Panics
/// When the settings are not what the file format asks for.
#[must_use]
pub fn settings(geyser: &[String], rpc: &str) -> Config {
    let (first, more) = geyser.split_first().expect("a market needs a server");
    let fallbacks: String = more
        .iter()
        .map(|url| format!("[[geyser.fallback]]\nendpoint = \"{url}\"\n"))
        .collect();
    let text = format!(
        "[chain]\nrpc-url = \"{rpc}\"\n[geyser]\nendpoint = \"{first}\"\n{fallbacks}[store]\npath = \"unused.db\"\n"
    );
    Config::parse(&text, Path::new("market.toml")).expect("the settings are valid")
}

/// A running market. Dropping it ends it.
pub struct MarketHarness {
    market: Market,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for MarketHarness {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl MarketHarness {
    /// Starts a market with these settings.
    #[must_use]
    pub fn start(settings: &Config) -> Self {
        let shutdown = CancellationToken::new();
        let (market, task) = spawn(settings, shutdown.clone());
        Self {
            market,
            shutdown,
            task,
        }
    }

    /// The market that it publishes.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// Ends the task.
    ///
    /// # Panics
    /// When the task panicked.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        (&mut self.task).await.expect("the market's task panicked");
    }
}
