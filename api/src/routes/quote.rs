//! `/v1/quote`: quotes.

pub mod get;
mod response;
mod wire;

pub use get::get;
pub use wire::{DEFAULT_SLIPPAGE, Quote, parse_slippage};
