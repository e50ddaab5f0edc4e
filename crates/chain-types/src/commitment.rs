//! Commitment: level of finality of a slot, and with it of everything that happened in the slot.

use std::fmt;

/// Level of finality, in the order in which a slot reaches them.
///
/// There is no default: what a stream, a webhook or a quote uses when nothing is said differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Commitment {
    /// Executed by one validator; may be undone.
    Processed,
    /// Voted for by two thirds of the stake; has never been undone.
    Confirmed,
    /// Cannot be undone.
    Finalized,
}

impl Commitment {
    /// Every commitment, the lowest first.
    pub const ALL: [Self; 3] = [Self::Processed, Self::Confirmed, Self::Finalized];

    /// Solana's name of it, as RPC calls, streams and webhooks write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Confirmed => "confirmed",
            Self::Finalized => "finalized",
        }
    }

    /// The commitment of this name.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_the_order_is_that_of_finality() {
        for commitment in Commitment::ALL {
            assert_eq!(Commitment::from_name(commitment.name()), Some(commitment));
        }
        assert_eq!(Commitment::from_name("Processed"), None);
        assert!(Commitment::ALL.is_sorted());
    }
}
