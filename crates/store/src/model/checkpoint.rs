//! Levels of commitment, and slots that are emitted but not confirmed.

use std::fmt;

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

/// A slot of which messages were emitted at [`Commitment::Processed`], and which is neither confirmed nor
/// retracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnconfirmedSlot {
    /// The slot.
    pub slot: u64,
    /// Its blockhash (base58), once known.
    pub blockhash: Option<String>,
}
