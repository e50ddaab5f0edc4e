//! `/v1/swap`.

mod executable;
pub mod instruction;
mod request;
mod response;
pub mod transaction;
mod user;

pub use instruction::instruction;
pub use transaction::transaction;

/// Most bytes of a body that are read: a quote is under 1 KiB, and nothing larger is meant.
const BODY_LIMIT: usize = 16 * 1024;
