//! The live market: every pool of the exchange with everything a quote depends on, held in memory
//! and moved from slot to slot by the Geyser stream.
//!
//! - Only whole slots are visible. Writes build up an unseen state until the stream says that their
//!   slot is complete, so a pool and its vaults never come from two moments.
//! - Every slot of every branch keeps a state of its own, which shares what it did not change with its
//!   parent: see [`state`]. Where the chain leaves a slot, the market falls back to another one.
//! - A start subscribes first and then reads the accounts over RPC. What both deliver is joined by
//!   slot; see [`ledger`] for why nothing can fall between the two.
//! - A lost stream is resumed by replaying from the last confirmed slot. Where that cannot be done, and
//!   at any doubt, the market begins again. Until the gap is closed it is not ready.

mod accounts;
mod assembly;
mod bank;
mod content;
#[cfg(test)]
mod fixtures;
mod ledger;
pub mod replay;
mod run;
mod settings;
mod snapshot;
mod state;
mod subscription;
mod view;
mod wanted;

use service_kit::CancellationToken;
pub use sluice_geyser::Endpoint;
use tokio::task::JoinHandle;

pub use settings::Settings;
pub use view::{Market, NotReady, PoolView, QuoteCommitment, STALE_AFTER, Status, View};

/// Starts the task that keeps the market, and returns the handle to read it by. The task never gives
/// up; it ends when `shutdown` is cancelled.
#[must_use]
pub fn spawn(settings: Settings, shutdown: CancellationToken) -> (Market, JoinHandle<()>) {
    let market = Market::default();
    let task = tokio::spawn(run::run(market.clone(), settings.into(), shutdown));
    (market, task)
}
