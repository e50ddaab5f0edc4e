//! Field limits of webhooks, for the checks and the API's description alike.

use sluice_config::MAX_SECRET_OVERLAP_HOURS;

/// Longest body of requests that hold a few short fields, bytes.
pub(super) const SMALL_BODY_BYTES: usize = 64 * 1024;

/// Longest callback URL, bytes: what servers and proxies commonly accept.
pub(super) const MAX_URL_BYTES: usize = 2_048;

/// Longest description, characters: a note, not a document.
pub(super) const MAX_DESCRIPTION_CHARS: usize = 500;

/// Most headers of one webhook.
pub(super) const MAX_HEADERS: usize = 20;

/// Most bytes of their names and values: servers commonly accept 8 KiB in all, ours included.
pub(super) const MAX_HEADER_BYTES: usize = 4 * 1024;

/// Shortest time between two heartbeats, seconds: more often says nothing more, and fills the queue.
pub(super) const MIN_HEARTBEAT_SECS: u64 = 10;

/// Longest time between two heartbeats, seconds: a day.
pub(super) const MAX_HEARTBEAT_SECS: u64 = 24 * 60 * 60;

/// Most slots of a backfill, whatever time the chain took for them: at ten calls a second most of an hour of reading.
pub(super) const MAX_BACKFILL_SLOTS: u64 = 27_000;

/// Most slots of a dry run: some minutes of the chain, which show whether a filter is what its owner means.
pub(super) const MAX_DRY_RUN_SLOTS: u64 = 1_000;

/// Longest overlap that a request may ask for, seconds.
pub(super) const MAX_OVERLAP_SECS: u64 = MAX_SECRET_OVERLAP_HOURS as u64 * 3600;
