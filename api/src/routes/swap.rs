//! `/v1/swap`: transactions and instructions of guarded swaps.

pub mod check;
mod executable;
mod holdings;
pub mod instruction;
mod request;
mod response;
mod simulated;
pub mod transaction;

pub use instruction::instruction;
pub use transaction::transaction;
