//! What the tests and benchmarks of the on-chain programs share: a chain in memory, pools on it, and what is measured.

pub mod figures;
pub mod names;
pub mod parity;
pub mod pool;
pub mod svm;
