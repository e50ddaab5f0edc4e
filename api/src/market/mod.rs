//! The live market: every pool of the exchange with everything a quote depends on, held in memory
//! and moved from slot to slot by the Geyser stream.
//!
//! - Only whole slots are visible. Writes are staged until the stream says that their slot is
//!   frozen and then appear together, so a pool and its vaults never come from two moments.
//! - A start subscribes first and then reads the accounts over RPC. What both deliver is joined by
//!   slot and write order; see [`apply`] for why nothing can fall between the two.
//! - Any doubt (a stream that ended, slots that were undone, an RPC call that failed) makes the
//!   market not ready and starts it over from a full snapshot. Nothing is patched up.

mod apply;
mod assembly;
mod bootstrap;
mod content;
#[cfg(test)]
mod fixtures;
mod run;
mod subscription;
mod view;

use service_kit::CancellationToken;
use sluice_config::Config;
use sluice_geyser::Endpoint;
use tokio::task::JoinHandle;

pub use view::{Market, PoolView, Status};

/// Starts the task that keeps the market, and returns the handle to read it by. The task never gives
/// up; it ends when `shutdown` is cancelled.
#[must_use]
pub fn spawn(config: &Config, shutdown: CancellationToken) -> (Market, JoinHandle<()>) {
    let endpoint = Endpoint {
        url: config.geyser.endpoint.clone(),
        x_token: config.geyser.x_token.clone(),
    };
    let rpc = bootstrap::Snapshots::new(config.chain.rpc_url.as_str());
    let market = Market::default();
    let task = tokio::spawn(run::run(market.clone(), endpoint, rpc, shutdown));
    (market, task)
}
