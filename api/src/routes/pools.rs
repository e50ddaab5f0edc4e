//! `/v1/pools`: the pools of the exchange as of a slot.

pub mod get;
pub mod list;
mod page;
mod price;
mod wire;
