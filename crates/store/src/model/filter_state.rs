//! Revisions of what is matched, and the slots from which their filters are in force.

/// Counts the webhook writes that changed what must be matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// The filter that the stream was shown to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterState {
    /// Webhook revision the filter was made from.
    pub revision: Revision,
    /// First slot that passed that filter whole.
    pub in_force_slot: u64,
}

/// One change of the filter, and the slots from which it was asked for and in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterChange {
    /// The webhook revision that the change made.
    pub revision: Revision,
    /// The slot after the confirmed checkpoint at the time of the change: the first from which the owner
    /// misses nothing. The slots from here to the one in force are replayed. `None` when no slot had been
    /// read yet.
    pub requested_slot: Option<u64>,
    /// The first slot that passed this filter, or a later one, whole; `None` until it is in force.
    pub in_force_slot: Option<u64>,
}
