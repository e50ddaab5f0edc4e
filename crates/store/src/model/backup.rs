//! Contents of a backup, in numbers.

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Webhooks.
    pub webhooks: u64,
    /// Messages.
    pub messages: u64,
    /// Those that were not delivered yet and are still to be.
    pub pending: u64,
    /// The checkpoint at confirmed, from which the indexer goes on after a restore; `None` before the first.
    pub confirmed: Option<u64>,
}
