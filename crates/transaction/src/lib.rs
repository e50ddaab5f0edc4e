//! From a priced swap to the bytes of an unsigned transaction: instructions, compute units, costs (pure).

mod associated;
pub mod compute_budget;
pub mod compute_table;
pub mod costs;
mod exchange;
pub mod plan;
mod planned_instruction;
pub mod rent;

pub use associated::{Associated, AssociatedAccounts};
pub use exchange::Exchange;
pub use planned_instruction::Step;
