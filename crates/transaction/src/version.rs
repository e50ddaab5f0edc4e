//! Transaction version: the wire format, how long it may be, and where its compute budget stands (pure).

/// The most bytes of a transaction of the legacy format or version 0 that the network carries: what an IPv6 packet of 1,280
/// leaves.
pub(crate) const PACKET_LIMIT: usize = 1_232;

/// The wire format of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionVersion {
    /// The format without a version.
    Legacy,
    /// Version 0.
    #[default]
    V0,
    /// Version 1, SIMD-0385: limits and priority fee are part of the message, and it may be longer. Only some clusters
    /// take it.
    V1,
}

impl TransactionVersion {
    /// Every version.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::V0, Self::V1];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::V0 => "0",
            Self::V1 => "1",
        }
    }

    /// The most bytes of a transaction that the network carries.
    #[must_use]
    pub const fn size_limit(self) -> usize {
        match self {
            Self::Legacy | Self::V0 => PACKET_LIMIT,
            Self::V1 => solana_message::v1::MAX_TRANSACTION_SIZE,
        }
    }

    /// Whether instructions set the compute budget. Otherwise the message's own fields do, and such instructions change
    /// nothing.
    pub(crate) const fn has_budget_instructions(self) -> bool {
        match self {
            Self::Legacy | Self::V0 => true,
            Self::V1 => false,
        }
    }
}
