//! Geyser plugin that serves the Yellowstone `geyser.Geyser` gRPC service from inside a validator.
//!
//! It stands for Yellowstone's own plugin, 15.1.2, and treats its subscribers no better than that one does:
//!
//! - A stream joins the live updates at the call, under an empty filter; what passes before the first request is
//!   applied is dropped. Every request replaces the whole filter. Only the newest one that waits is kept, and nothing
//!   acknowledges it: a pong comes from the reader of requests.
//! - `from_slot`, on any request, is answered from frozen blocks alone: content with the last write of each account,
//!   block, block meta, statuses. Of the slot that is open nothing is replayed, and a block that freezes while the
//!   replay is put together comes twice.
//! - The processed stream carries single writes, the others whole frozen blocks with the last write of each account.
//! - A request above the size limit closes the stream without a status. Filters beyond the configured limits, slow
//!   subscribers and slots that are no longer kept end it with the status and the words of the original.
//!
//! In this it is stricter:
//!
//! - What has already happened when a request is applied is never sent under it; the original may still deliver what
//!   waits in its ring.
//! - A block counts as frozen only with all its transactions and entries. A slot that lost a message inside the
//!   validator is not replayed, and ends every stream.
//! - Without configured limits there still are some ([`config::FilterLimits`]), and a request that asks for what this
//!   validator line cannot give (`block_footer`) is refused instead of left without answers.
//!
//! The sample configuration, `config.json5`, limits filters as providers do and spreads replays over time.
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
