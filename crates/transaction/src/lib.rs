//! Transactions: from a priced swap to the bytes of an unsigned transaction, and what it costs (pure).
//!
//! | for | see |
//! |---|---|
//! | what decides a transaction, and its instructions | `plan`, `planned_instruction`, `account_creation` |
//! | the result, and what it costs | `unsigned`, `costs`, `rent` |
//! | compute units and their price | `compute_table`, `compute_units`, `compute_budget`, `exchange` |
//! | the user's associated token accounts | `associated` |

mod account_creation;
mod associated;
pub mod compute_budget;
pub mod compute_table;
pub mod compute_units;
pub mod costs;
mod exchange;
pub mod plan;
mod planned_instruction;
pub mod rent;
mod unsigned;

pub use account_creation::AccountCreation;
pub use associated::{Associated, AssociatedAccounts};
pub use exchange::Exchange;
pub use plan::{SwapTerms, TokenSide, TransactionPlan};
pub use planned_instruction::PlannedInstruction;
pub use unsigned::{SolOutput, UnsignedTransaction};
