//! Transactions of the API, built by its own code and executed on the chain in memory.
//!
//! Wallets are in every state that the API can meet.

mod balances;
mod loaded;
mod nonce;
mod units;
