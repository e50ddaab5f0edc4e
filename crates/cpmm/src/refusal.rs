//! Refusals: the reasons for which the exchange would not execute a swap.

use thiserror::Error;

/// A swap that cannot be quoted because the chain would refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The pool opens later.
    #[error("the pool opens at unix time {open_time}")]
    NotOpenYet {
        /// Unix time, seconds.
        open_time: u64,
    },
    /// The exchange's admin disabled swaps in this pool.
    #[error("swaps are disabled in this pool")]
    SwapDisabled,
    /// Nothing is left of the input once the mint's transfer fee is taken.
    #[error("the amount is zero once the input mint's transfer fee is taken")]
    ZeroInput,
    /// The user would receive nothing.
    #[error("the amount is too small: nothing would be received for it")]
    ZeroOutput,
    /// One side of the pool is empty.
    #[error("the pool has no reserves on one side")]
    ZeroReserves,
    /// The fees take the whole input, or the pool's fee configuration cannot be traded with.
    #[error("the fees leave nothing to trade")]
    ZeroTradingTokens,
    /// A vault holds less than the fees booked against it.
    #[error("a vault holds less than the fees booked against it")]
    InsufficientVault,
    /// A sum leaves the range of 64 bits.
    #[error("an amount leaves the range of 64 bits")]
    Overflow,
    /// The pool's creator-fee mode is unknown to the exchange.
    #[error("the pool's creator-fee mode {mode} is unknown to the exchange")]
    InvalidFeeModel {
        /// Byte found in the pool.
        mode: u8,
    },
    /// A mint carries an extension that may stop or change a transfer.
    #[error("a mint carries token extension {extension}, which may stop or change a transfer")]
    UnsupportedExtension {
        /// Record type of the extension.
        extension: u16,
    },
    /// No amount, once the mint's transfer fee is taken, leaves exactly the one asked for.
    #[error("no amount leaves exactly this one once the mint's transfer fee is taken")]
    TransferFeeMismatch,
    /// More is asked for than the pool holds.
    #[error("the pool does not hold as much as is asked for")]
    InsufficientReserves,
    /// A vault is frozen.
    #[error("a vault of the pool is frozen")]
    FrozenVault,
}

impl Refusal {
    /// The custom program error with which the exchange itself refuses, where it has one. `None` for
    /// refusals that another program raises, or that end in a panic.
    #[must_use]
    pub const fn exchange_code(&self) -> Option<u32> {
        match self {
            Self::NotOpenYet { .. } | Self::SwapDisabled => Some(6000),
            Self::ZeroInput | Self::ZeroOutput => Some(2505),
            Self::ZeroTradingTokens => Some(6006),
            Self::InsufficientVault => Some(6012),
            Self::TransferFeeMismatch => Some(6010),
            Self::InvalidFeeModel { .. } => Some(6013),
            Self::ZeroReserves
            | Self::InsufficientReserves
            | Self::Overflow
            | Self::UnsupportedExtension { .. }
            | Self::FrozenVault => None,
        }
    }
}
