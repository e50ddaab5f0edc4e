//! Types of the chain that the stream, the market, the store and the services share (pure).
//!
//! They know no exchange, no wire format and no storage format: a crate that has one of those converts
//! at its own boundary.

mod commitment;
mod raw_account;
mod slot;
mod slot_status;

pub use commitment::Commitment;
pub use raw_account::RawAccount;
pub use slot::Slot;
pub use slot_status::SlotStatus;
