//! The market under test, as a reader sees it: the one place of the suite that names the API's own types.

use std::path::Path;

use cpmm::PoolSnapshot;
use service_kit::CancellationToken;
use sluice_api::market::{Market, QuoteCommitment, Status, View, spawn};
use sluice_config::Config;
use solana_pubkey::Pubkey;
use tokio::task::JoinHandle;

use super::model::Moment;

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
    Config::parse(&text, Path::new("faults.toml")).expect("the settings are valid")
}

/// One of the two views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The newest state.
    Processed,
    /// The newest confirmed state.
    Confirmed,
}

/// A running market.
pub struct Observed {
    market: Market,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Observed {
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

    /// A handle that reads the same market.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader(self.market.clone())
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

/// Reads a market.
#[derive(Clone)]
pub struct Reader(Market);

impl Reader {
    /// Why the market cannot be read, if it says so.
    #[must_use]
    pub fn not_ready(&self) -> Option<String> {
        match self.0.status() {
            Status::Ready { .. } => None,
            Status::NotReady(not_ready) => Some(not_ready.reason),
        }
    }

    /// One view, whole; `None` while the market is not ready.
    #[must_use]
    pub fn moment(&self, level: Level) -> Option<Moment> {
        Some(Held(self.view(level)?).moment())
    }

    /// The slot of one view; `None` while the market is not ready.
    #[must_use]
    pub fn slot(&self, level: Level) -> Option<u64> {
        Some(self.view(level)?.slot().get())
    }

    fn view(&self, level: Level) -> Option<View> {
        let commitment = match level {
            Level::Processed => QuoteCommitment::Processed,
            Level::Confirmed => QuoteCommitment::Confirmed,
        };
        self.0.view(commitment).ok()
    }

    /// The processed view as it is now, to be read again later.
    ///
    /// # Panics
    /// When the market is not ready.
    #[must_use]
    pub fn hold(&self) -> Held {
        let view = self.0.view(QuoteCommitment::Processed);
        Held(view.expect("the market is ready"))
    }

    /// Pools of two mints in one view, in order of their addresses.
    #[must_use]
    pub fn pools_for(&self, a: &Pubkey, b: &Pubkey) -> Vec<Pubkey> {
        let Ok(view) = self.0.view(QuoteCommitment::Processed) else {
            return Vec::new();
        };
        let mut pools: Vec<Pubkey> = view.pools_for(a, b).map(|pool| pool.address).collect();
        pools.sort_unstable();
        pools
    }
}

/// A view that somebody holds.
pub struct Held(View);

impl Held {
    /// What it shows.
    #[must_use]
    pub fn moment(&self) -> Moment {
        let pools = self.0.pools();
        Moment {
            slot: self.0.slot().get(),
            clock: self.0.clock(),
            pools: pools
                .map(|pool| (pool.address, PoolSnapshot::clone(&pool.snapshot)))
                .collect(),
        }
    }
}
