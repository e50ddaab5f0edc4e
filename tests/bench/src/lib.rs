//! Benchmarks: what the guard, quotes, transactions and webhooks cost, as figures with limits.

pub mod crowd;
#[cfg(feature = "svm")]
pub mod guard;
pub mod http;
pub mod instructions;
pub mod memory;
pub mod quote_streams;
pub mod resume;
pub mod servers;
pub mod start;
pub mod strangers;
mod trading_chain;
pub mod updates;
pub mod webhooks;
