//! Error codes of the guard, as custom program errors.

use thiserror::Error;

/// Why the guard refused a swap. The numbers are part of the guard's interface and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u32)]
pub enum GuardError {
    /// The output account gained less than `minimum_out` or `amount_out`.
    #[error("the swap delivered less than minimum_out or amount_out; ask for a fresh quote")]
    SlippageExceeded = 6000,
    /// The account given as the exchange is not the pinned program.
    #[error("the exchange account is not the pinned exchange program")]
    WrongExchange = 6001,
    /// The output account holds another mint.
    #[error("the output token account is not of the output mint")]
    OutputMintMismatch = 6002,
    /// The output account belongs to neither the signer nor, where one is stated, the receiver.
    #[error("the output token account does not belong to the signer or the stated receiver")]
    OutputOwnerMismatch = 6003,
    /// The output account is not owned by one of the two token programs.
    #[error("the output token account is not owned by a token program")]
    UnknownTokenProgram = 6004,
    /// `amount_in` or `maximum_in` is zero.
    #[error("amount_in or maximum_in is zero")]
    ZeroAmountIn = 6005,
    /// `minimum_out` or `amount_out` is zero, which would guard nothing.
    #[error("minimum_out or amount_out is zero, which would guard nothing")]
    ZeroMinimumOut = 6006,
    /// Two of the input, middle and output accounts are the same.
    #[error("two of the input, middle and output token accounts are the same")]
    SameTokenAccount = 6007,
    /// The input account lost more than `amount_in` or `maximum_in`.
    #[error("the swap took more than amount_in or maximum_in from the input token account")]
    InputOverspent = 6008,
    /// The current slot is past `expiry_slot`.
    #[error("the slot is past expiry_slot; sign a new swap")]
    Expired = 6009,
    /// Both hops go through the same pool.
    #[error("both hops go through the same pool")]
    SamePool = 6010,
    /// The middle account holds another mint.
    #[error("the middle token account is not of the middle mint")]
    MiddleMintMismatch = 6011,
    /// The middle account belongs to somebody else.
    #[error("the middle token account does not belong to the signer")]
    MiddleOwnerMismatch = 6012,
    /// The middle account is not owned by one of the two token programs.
    #[error("the middle token account is not owned by a token program")]
    MiddleUnknownTokenProgram = 6013,
    /// The middle account ended below its start.
    #[error("the second hop took more from the middle token account than the first delivered")]
    MiddleOverspent = 6014,
}

impl GuardError {
    /// Every error, in the order of the codes.
    pub const ALL: [Self; 15] = [
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
        Self::SamePool,
        Self::MiddleMintMismatch,
        Self::MiddleOwnerMismatch,
        Self::MiddleUnknownTokenProgram,
        Self::MiddleOverspent,
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
        assert_eq!(GuardError::from_code(6015), None);
    }
}
