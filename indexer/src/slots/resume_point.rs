//! Resume point: where a connection to the stream begins, and what was known before (pure data).

use std::collections::BTreeMap;

use super::Gap;

/// Where a connection begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumePoint {
    /// The checkpoint at confirmed: everything up to this slot is stored. Dead banks before it may be streamed
    /// again, so no slot up to it is emitted at processed before the confirmed chain reaches it.
    pub confirmed_checkpoint: Option<u64>,
    /// The checkpoint at finalized.
    pub finalized_checkpoint: Option<u64>,
    /// The first slot that is requested, and the first of which everything is streamed; `None` for a connection that
    /// begins with whatever comes next.
    pub from_slot: Option<u64>,
    /// Slots that the server is known not to have.
    pub gap: Option<Gap>,
    /// Whether all slots after the checkpoint are requested.
    pub complete: bool,
    /// Whether any webhook asks for finalized events: otherwise they are dropped once confirmed.
    pub finality_wanted: bool,
    /// Slots emitted at processed and not confirmed yet, with the hash of the block that was emitted, where known.
    pub unconfirmed: BTreeMap<u64, Option<String>>,
}
