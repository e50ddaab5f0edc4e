//! From a priced swap to the bytes of an unsigned transaction: instructions, compute units, costs (pure).

pub mod assemble;
mod associated;
pub mod compute_budget;
pub mod compute_table;
pub mod costs;
mod exchange;
pub mod rent;
mod step;

pub use associated::{Associated, AssociatedAccounts};
pub use exchange::Exchange;
pub use step::Step;
