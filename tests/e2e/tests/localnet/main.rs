//! End-to-end tests on a whole localnet: the real validator, the real programs, the real service.
//!
//! Each starts its own on free ports. The artifacts must have been built; `cargo xtask test` does that.

mod binary;
mod clients;
mod demo;
mod doctor;
mod ending;
mod geyser_plugin;
mod live_pool;
mod lookup_table;
mod losing_parts;
mod net;
mod rust_examples;
mod sending;
mod swaps;
mod truth;
mod two_processes;
