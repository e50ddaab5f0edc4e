//! REST API: exact quotes, ready-to-sign transactions, bare instructions, and management of webhooks.
//!
//! A request flows `router` → `routes/<resource>/<endpoint>` → `extract` (typed values only) →
//! `pricing` over `sluice_market` → `sluice_transaction` → answer; every failure is an [`error::ApiError`]. A plain request
//! for a quote skips the router.
//!
//! In the database this crate writes webhook definitions and signing secrets, makes messages due again on
//! request, and resets what was learnt of an endpoint whose URL changed or whose webhook was switched on
//! again. For temporary webhooks it leases and releases deliveries and records their attempts. Messages,
//! checkpoints and all other deliveries are written by the indexer, API keys by `sluice keys`.

mod answer;
pub mod auth;
mod calibrator;
mod client;
mod client_limits;
mod console;
pub mod error;
pub mod extract;
mod followed;
mod idempotency;
mod metrics;
mod middleware;
pub mod openapi;
mod pages;
mod places;
pub mod pricing;
mod quote_feeds;
mod rate_limit;
mod request_id;
mod router;
pub mod routes;
mod rpc;
mod run;
mod sender;
mod server;
mod sockets;
mod state;
mod stream_end;

pub use run::run;
pub use state::AppState;
