//! The transactions of the API, built by its own code and executed on the chain in memory, for wallets in every state.

mod balances;
mod units;
