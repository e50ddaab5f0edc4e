//! Error codes of the guard, as custom program errors.

use thiserror::Error;

/// Why the guard refused a swap. The numbers are part of the guard's interface and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u32)]
pub enum GuardError {
    /// The output account gained less than `minimum_out`.
    #[error("the swap delivered less than minimum_out; ask for a fresh quote")]
    SlippageExceeded = 6000,
    /// The account given as the exchange is not the pinned program.
    #[error("the exchange account is not the pinned exchange program")]
    WrongExchange = 6001,
    /// The output account holds another mint.
    #[error("the output token account is not of the output mint")]
    OutputMintMismatch = 6002,
    /// The output account belongs to somebody else.
    #[error("the output token account does not belong to the signer")]
    OutputOwnerMismatch = 6003,
    /// The output account is not owned by one of the two token programs.
    #[error("the output token account is not owned by a token program")]
    UnknownTokenProgram = 6004,
    /// `amount_in` is zero.
    #[error("amount_in is zero")]
    ZeroAmountIn = 6005,
    /// `minimum_out` is zero, which would guard nothing.
    #[error("minimum_out is zero, which would guard nothing")]
    ZeroMinimumOut = 6006,
    /// Input and output account are the same.
    #[error("input and output token account are the same")]
    SameTokenAccount = 6007,
    /// The input account lost more than `amount_in`.
    #[error("the swap took more than amount_in from the input token account")]
    InputOverspent = 6008,
    /// The current slot is past `expiry_slot`.
    #[error("the slot is past expiry_slot; sign a new swap")]
    Expired = 6009,
}

impl GuardError {
    /// Every error, in the order of the codes.
    pub const ALL: [Self; 10] = [
        Self::SlippageExceeded,
        Self::WrongExchange,
        Self::OutputMintMismatch,
        Self::OutputOwnerMismatch,
        Self::UnknownTokenProgram,
        Self::ZeroAmountIn,
        Self::ZeroMinimumOut,
        Self::SameTokenAccount,
        Self::InputOverspent,
        Self::Expired,
    ];

    /// The custom program error.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The error of a code that the guard raised. Codes of other programs overlap, so the caller must
    /// know that the guard itself failed.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|error| error.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_contiguous_from_6000_and_map_back() {
        for (expected, error) in (6000..).zip(GuardError::ALL) {
            assert_eq!(error.code(), expected);
            assert_eq!(GuardError::from_code(expected), Some(error));
        }
        assert_eq!(GuardError::from_code(6010), None);
    }
}
