//! `/v1/quote`: quotes.

pub mod get;
mod response;
mod wire;

pub use get::get;
pub use wire::{
    Amounts, Bound, DEFAULT_SLIPPAGE, Quote, SwapModeName, parse_platform_rate, parse_slippage,
};
