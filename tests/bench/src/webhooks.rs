//! Cost of webhooks: matching, delivery, latency, a hanging endpoint, a start; see `cargo xtask bench webhooks`.

pub mod bare;
pub mod deliveries;
pub mod edits;
pub mod hanging;
pub mod indexer;
pub mod latency;
pub mod matching;
pub mod queue;
pub mod receiver;
pub mod start;
