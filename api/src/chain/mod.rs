//! The cluster as the API needs it: a few RPC reads, and the assembly of transactions.

pub mod assemble;
pub mod compute_budget;
pub mod compute_table;
pub mod costs;
pub mod rent;
mod rpc;
mod step;

pub use rpc::{HeldAccount, LatestBlockhash, Rpc, UserAccounts};
pub use step::Step;
