//! `/v1/quote`.

mod get;
mod quote;
mod response;

pub use get::get;
pub use quote::{DEFAULT_SLIPPAGE, Quote, parse_slippage};
