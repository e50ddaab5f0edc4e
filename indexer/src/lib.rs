//! The indexer: what happens on the chain becomes signed webhooks.
//!
//! [`ingest`] reads the chain and, slot by slot, commits the matching messages together with the
//! checkpoint; [`delivery`] sends them until they are accepted. [`run::run`] wires both.

pub mod delivery;
pub mod events;
pub mod health;
pub mod heartbeat;
pub mod ingest;
pub mod leadership;
pub mod metrics;
mod retention;
pub mod run;
pub mod slots;
pub mod status;
pub mod subscription_watcher;

pub use run::run;
