//! The cluster as the API needs it: a few RPC reads, and the assembly of transactions.

pub mod assemble;
pub mod compute_budget;
mod rpc;

pub use rpc::{LatestBlockhash, Rpc};
