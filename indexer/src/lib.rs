//! The indexer: what happens on the chain becomes signed webhooks.
//!
//! [`follow`] reads the chain and, slot by slot, commits the matching messages together with the
//! checkpoint; [`webhooks::deliver`] sends them until they are accepted. [`run::run`] wires both.

pub mod follow;
pub mod health;
mod incident;
pub mod lead;
pub mod metrics;
mod outbox;
mod retention;
pub mod run;
mod session;
pub mod slots;
pub mod status;
pub mod subscribe;
pub mod webhooks;

pub use run::run;
