//! `/v1/swap`.

mod executable;
pub mod instruction;
mod request;
mod response;
pub mod transaction;
mod user;

pub use instruction::instruction;
pub use transaction::transaction;
