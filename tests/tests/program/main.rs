//! The on-chain programs, as built: the guard and the exchange behind it, executed in LiteSVM.
//!
//! Every test runs on the stand-in exchange, and with `CPMM_SO` set on any other binary of the exchange.

mod accepts;
mod compute_units;
mod executed_vectors;
mod hostile_exchange;
mod initialize;
mod mainnet_vectors;
mod rejects;
