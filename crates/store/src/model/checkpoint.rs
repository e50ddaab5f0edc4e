//! How far the chain was read, and under which filter.

use std::fmt;

use super::models::Revision;

/// How settled something on the chain is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Commitment {
    /// Executed by one validator; may be undone.
    Processed,
    /// Voted for by two thirds of the stake; has never been undone.
    #[default]
    Confirmed,
    /// Cannot be undone.
    Finalized,
}

impl Commitment {
    /// Every commitment, the least settled first.
    pub const ALL: [Self; 3] = [Self::Processed, Self::Confirmed, Self::Finalized];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Confirmed => "confirmed",
            Self::Finalized => "finalized",
        }
    }

    /// The commitment of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.name() == name)
    }
}

impl fmt::Display for Commitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The filter that the stream has proved to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterState {
    /// Webhook revision the filter was made from.
    pub revision: Revision,
    /// First slot whose whole content passed that filter.
    pub since_slot: u64,
}

/// What is known of one change of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterChange {
    /// The webhook revision that the change made.
    pub revision: Revision,
    /// The slot after the confirmed checkpoint at the time of the change: the first of which the one who
    /// asked for it misses nothing. The slots from here to the stream's own proof are replayed. `None`
    /// when no slot had been read yet.
    pub requested_slot: Option<u64>,
    /// The first slot that passed this filter, or a later one, whole; `None` before the proof.
    pub since_slot: Option<u64>,
}

/// A slot of which messages were stored at [`Commitment::Processed`] and whose fate is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSlot {
    /// The slot.
    pub slot: u64,
    /// Its blockhash (base58), once known.
    pub blockhash: Option<String>,
}
