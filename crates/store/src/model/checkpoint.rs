//! Unconfirmed slots: emitted at processed, and neither confirmed nor retracted.

/// A slot of which messages were emitted at processed, and which is neither confirmed nor
/// retracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnconfirmedSlot {
    /// The slot.
    pub slot: u64,
    /// Its blockhash (base58), once known.
    pub blockhash: Option<String>,
}
