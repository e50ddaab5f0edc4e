//! `/v1/swap`: transactions and instructions of guarded swaps.

mod executable;
pub mod instruction;
mod request;
mod response;
pub mod transaction;
mod user;

pub use instruction::instruction;
pub use transaction::transaction;
