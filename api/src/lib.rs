//! The REST API: exact quotes from a live view of every pool, ready-to-sign transactions, bare
//! instructions, and the management of webhooks.
//!
//! A request flows `router` → `routes/<resource>/<endpoint>` → `extract` (typed values only) →
//! `pricing` over `market` → `sluice_transaction` → answer; every failure is an [`error::ApiError`]. This crate
//! writes webhook definitions and never an event or a delivery: those are the indexer's.

mod answer;
pub mod auth;
pub mod error;
pub mod extract;
pub mod limits;
pub mod market;
mod middleware;
pub mod openapi;
pub mod pricing;
mod router;
pub mod routes;
mod rpc;
mod run;
mod state;

pub use run::run;
pub use state::AppState;
