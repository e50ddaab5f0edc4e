//! What quotes cost, measured: see `cargo xtask bench quote`.

pub mod http;
pub mod load;
pub mod memory;
pub mod node;
pub mod start;
pub mod synthetic;
pub mod updates;

pub use sluice_testkit::figure::{self, Figure, Limit};
use sluice_testkit::recorded;
