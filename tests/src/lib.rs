//! What the tests and benchmarks share: a chain in memory with pools on it, the API on a stage, what is measured there,
//! and a played chain with everything that can go wrong on the way from it.

pub mod bench;
pub mod chaos;
pub mod faults;
#[cfg(feature = "svm")]
pub mod figures;
#[cfg(feature = "svm")]
pub mod parity;
pub mod webhook_bench;

pub use sluice_harness::api as stage;
#[cfg(feature = "svm")]
pub use sluice_harness::wallet;
#[cfg(feature = "svm")]
pub use sluice_testkit::svm;
pub use sluice_testkit::{decoders, load, names, pool, rpc};
