//! The indexer: what happens on the chain becomes signed webhooks.
//!
//! [`follow`] reads the confirmed chain and, slot by slot, commits the matching messages together with
//! the checkpoint; [`webhooks::deliver`] sends them until they are accepted. [`run::run`] wires both.

pub mod follow;
pub mod health;
mod incident;
pub mod project;
mod retention;
pub mod run;
pub mod status;
pub mod subscribe;
pub mod webhooks;

pub use run::run;
