//! The cluster as the API needs it: a few RPC reads, and the assembly of transactions.

pub mod assemble;
mod associated;
pub mod compute_budget;
pub mod compute_table;
pub mod costs;
mod exchange;
pub mod rent;
mod rpc;
mod step;

pub use associated::{Associated, AssociatedAccounts};
pub use exchange::Exchange;
pub use rpc::{HeldAccount, LatestBlockhash, Rpc, UserAccounts};
pub use step::Step;
