//! What quotes cost, measured: see `cargo xtask bench quote`.

pub mod figure;
pub mod http;
pub mod load;
pub mod memory;
pub mod node;
mod recorded;
pub mod start;
pub mod synthetic;
pub mod updates;

pub use figure::{Figure, Limit};
