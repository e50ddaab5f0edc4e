//! The built guard and the exchange behind it, executed in LiteSVM.
//!
//! Every test runs on the stand-in exchange, and with `CPMM_SO` set on any other binary of the exchange.

mod accepted_swap;
mod accepts;
mod aliases;
mod amounts;
mod anchor_client;
mod authorities;
mod cpi_caller;
mod devnet;
mod executed_vectors;
mod expiry;
mod form_hostility;
mod form_properties;
mod form_refusals;
mod forms;
mod hostile_exchange;
mod initialize;
mod interface;
mod mainnet_vectors;
mod properties;
mod random_lists;
mod rejects;
