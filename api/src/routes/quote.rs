//! `/v1/quote`: quotes, one or a stream of them.

pub mod get;
mod response;
pub mod stream;
mod wire;

pub use get::get;
pub use wire::{
    Amounts, Bound, DEFAULT_SLIPPAGE, Quote, SwapModeName, parse_platform_rate, parse_slippage,
};
