//! Geyser plugin that serves the Yellowstone `geyser.Geyser` gRPC service from inside a validator.
//!
//! The path of a message:
//!
//! 1. [`plugin`]: the validator calls back on its own threads. The callback converts what it borrows
//!    ([`convert`]) and puts it into a bounded queue ([`intake`]). It never waits and never unwinds.
//! 2. [`hub`]: one task takes messages from the queue, runs them through the slot state machine
//!    ([`slots`]) and broadcasts what each commitment level may now see.
//! 3. [`client`]: one task per subscriber matches broadcast events with its filter ([`filter`]) and
//!    fills a bounded queue that the gRPC transport drains.
//!
//! Nothing is ever skipped silently. A full queue ends the streams it concerns with the status that
//! Yellowstone servers give, and slots that lost a message are never sealed by a block meta.

pub mod blocks;
pub mod client;
pub mod config;
pub mod convert;
pub mod filter;
pub mod hub;
pub mod intake;
pub mod message;
pub mod plugin;
pub mod server;
pub mod service;
pub mod shutdown;
pub mod slots;

use agave_geyser_plugin_interface::geyser_plugin_interface::GeyserPlugin;

/// Creates the plugin; the validator looks this symbol up by name and takes ownership of the box.
///
/// # Safety
///
/// The caller must have been built by the same compiler and against the same interface version as
/// this library, because the returned pointer carries a Rust trait object.
#[expect(
    unsafe_code,
    improper_ctypes_definitions,
    reason = "the interface defines this symbol, its safety and that it returns a Rust trait object"
)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _create_plugin() -> *mut dyn GeyserPlugin {
    Box::into_raw(Box::new(plugin::SluicePlugin::default()))
}
