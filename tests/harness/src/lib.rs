//! Harnesses: the API, the indexer and the market, each started between the test kit's doubles.

pub mod api;
pub mod indexer;
pub mod market;
pub mod services;
#[cfg(feature = "svm")]
pub mod wallet;
