//! Localnet: the real validator, programs and Geyser plugin, a market of pools, a wallet, and Sluice.
//!
//! Used by the `sluice-localnet` binary, which runs the main job once (`--demo`) or stays for a person to play with, and
//! by the tests that need a real chain.
//!
//! Everything that runs here is what runs in production, except two parts. The exchange's program is the stand-in of
//! `programs/local-cpmm` unless `CPMM_SO` names the real one. The validator streams by this repository's own Geyser
//! plugin unless `GEYSER_SO` names another, and `GEYSER_CONFIG` a template of its configuration.

pub mod artifacts;
pub mod chain;
pub mod demo;
pub mod genesis;
pub mod interactive;
pub mod net;
pub mod opening;
pub mod plugin_config;
pub mod ports;
pub mod process;
pub mod receiver;
pub mod rest;
pub mod scene;
pub mod service;
mod spinning_thread;
pub mod validator;
pub mod workdir;

pub use artifacts::Artifacts;
pub use net::{Localnet, NetOptions};
pub use scene::Scene;
pub use validator::SlotLength;
