//! Live market: every pool of the exchange with all that its quotes depend on, in memory, slot by slot.
//!
//! - Only whole slots are visible: of a slot that the stream may have delivered in part nothing is taken
//!   before it was asked for again. So a pool and its vaults never come from two states.
//! - Only what is new is visible: the chain's time and the node's slot say how old the newest slot is.
//! - Every slot of every fork keeps a state of its own, which shares what it did not change with its
//!   parent: see [`state`]. At a reorg the market shows the state of another slot.
//! - A start subscribes first and then reads the accounts over RPC. What both deliver is joined by
//!   slot; see [`market_tree`] for why nothing can fall between the two.
//! - Each slot is taken whole from the server that completes it first; one that is lost, slow or behind costs nothing
//!   while another one is there.
//! - A lost stream is resumed by replaying from the last confirmed slot. Where that cannot be done, and
//!   at any doubt, the market begins again. Until the gap is closed, up to the slot in which the node was when the stream
//!   came back, it is not ready.

mod account_snapshot;
mod accounts;
mod bank;
mod bootstrap;
mod decoded_account;
mod dependencies;
mod divergence;
mod executions;
#[cfg(test)]
mod fixtures;
mod freshness;
mod market_tree;
mod missing_accounts;
mod neighbours;
mod node_watcher;
mod program_watch;
pub mod replay;
mod run;
mod settings;
mod shown_mints;
mod slot_state;
mod snapshot_reader;
mod state;
mod subscription;
mod trie;
mod view;

use service_kit::{CancellationToken, Clock};
pub use sluice_geyser::{Endpoint, ServerMetrics, Standing};
use tokio::task::JoinHandle;

pub use executions::{Execution, follow_executions};
pub use freshness::Freshness;
pub use program_watch::{Sighting, watch_program};
pub use settings::{ReadLimits, Settings};
pub use view::{Ladder, Market, NotReady, PoolView, QuoteCommitment, STALE_AFTER, Status, View};

/// Starts the task that keeps the market, and returns the handle to read it by. The task never gives
/// up; it ends when `shutdown` is cancelled. `clock` is what the chain's time is held against.
#[must_use]
pub fn spawn(
    settings: Settings,
    clock: Clock,
    shutdown: CancellationToken,
) -> (Market, JoinHandle<()>) {
    let (exchange, freshness) = (settings.exchange, settings.freshness);
    let sources = run::Sources::from(settings);
    let market = Market::new(exchange, freshness, clock, sources.servers.clone());
    let task = tokio::spawn(run::run(market.clone(), sources, shutdown));
    (market, task)
}
