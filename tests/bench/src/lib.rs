//! Benchmarks: what the guard, quotes, transactions and webhooks cost, as figures with limits.

#[cfg(feature = "svm")]
pub mod guard;
pub mod http;
pub mod memory;
pub mod resume;
pub mod start;
pub mod strangers;
pub mod updates;
pub mod webhooks;
