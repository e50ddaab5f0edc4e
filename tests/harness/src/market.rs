//! Market harness: the market's own task, between a server and a node named by their addresses.

use std::time::SystemTime;

use cpmm::ExchangeIds;
use service_kit::{CancellationToken, Clock};
use sluice_market::{Endpoint, Freshness, Market, ReadLimits, Settings, spawn};
use tokio::task::JoinHandle;

/// Settings of a market that listens to these servers.
///
/// # Panics
/// When an address is no URL.
#[must_use]
pub fn settings(geyser: &[String], rpc: &str) -> Settings {
    let url = |text: &str| text.parse().expect("an address of a double");
    let endpoint = |text: &String| Endpoint {
        url: url(text),
        x_token: None,
    };
    Settings {
        exchange: ExchangeIds::MAINNET,
        endpoints: geyser.iter().map(endpoint).collect(),
        rpc_url: url(rpc),
        read_limits: ReadLimits::default(),
        watch_closed_accounts: true,
        freshness: Freshness::default(),
    }
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
    /// Starts a market with these settings, at a time of day before that of every played chain: how old a slot is by its
    /// own time plays no part.
    #[must_use]
    pub fn start(settings: Settings) -> Self {
        Self::start_at(settings, Clock::stopped_at(SystemTime::UNIX_EPOCH))
    }

    /// Starts a market that has the time of day from `clock`.
    #[must_use]
    pub fn start_at(settings: Settings, clock: Clock) -> Self {
        let shutdown = CancellationToken::new();
        let (market, task) = spawn(settings, clock, shutdown.clone());
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
