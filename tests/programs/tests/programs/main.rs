//! The on-chain programs as built, the transactions of the API, and every decoder, executed in memory.

mod decoders;
mod guard;
mod transactions;
