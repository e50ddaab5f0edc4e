//! Indexer: turns what happens on the chain into signed webhooks.
//!
//! [`ingest`] reads the chain into the fork tree of [`slots`] and, slot by slot, commits the messages that [`events`]
//! composes together with the checkpoint; [`delivery`] sends them until they are accepted. [`run::run`] wires all.

pub mod delivery;
pub mod events;
pub mod health;
pub mod heartbeat;
mod idl_reader;
mod idl_watcher;
pub mod ingest;
pub mod leadership;
pub mod metrics;
mod operation_writer;
mod retention;
pub mod rpc;
pub mod run;
pub mod slots;
pub mod status;
pub mod subscription_watcher;
pub mod to_lease;
pub mod traces;

pub use run::run;
