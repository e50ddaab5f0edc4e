//! What the tests and benchmarks share: a chain in memory with pools on it, what is measured there, and a played chain
//! with everything that can go wrong on the way from it.

pub mod bench;
pub mod decoders;
pub mod faults;
pub mod figures;
pub mod names;
pub mod parity;
pub mod pool;
pub mod rpc;
pub mod svm;
