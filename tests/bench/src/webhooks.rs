//! Cost of webhooks: matching, delivery, fan-out, batches, long messages, latency, edits, hanging and slow endpoints, a start; see `cargo xtask bench webhooks`.

pub mod bare;
pub mod batching;
pub mod deliveries;
pub mod edits;
pub mod fan_out;
pub mod hanging;
pub mod indexer;
pub mod large;
pub mod latency;
pub mod matching;
mod pool_swap;
pub mod queue;
pub mod receiver;
pub mod slow;
pub mod start;
