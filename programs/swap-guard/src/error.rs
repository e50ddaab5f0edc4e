//! Error codes of the guard: part of its interface, their numbers never change or are reused.

use anchor_lang::{Error, ErrorCode, prelude::*};
use core::num::NonZeroU64;

#[error_code]
#[derive(Debug, PartialEq, Eq)]
pub enum SwapGuardError {
    #[msg("The swap paid less than the stated minimum or exact output")]
    SlippageExceeded, // 6000
    #[msg("The exchange program is not Raydium CPMM")]
    WrongExchange, // 6001
    #[msg("The output token account is not of the output mint")]
    OutputMintMismatch, // 6002
    #[msg("The output token account is not owned by the user or the stated receiver")]
    OutputOwnerMismatch, // 6003
    #[msg("The output account is not a token account of SPL Token or Token-2022")]
    UnknownTokenProgram, // 6004
    #[msg("The input amount or its maximum is zero")]
    ZeroAmountIn, // 6005
    #[msg("The minimum or exact output is zero")]
    ZeroMinimumOut, // 6006
    #[msg("Two of the input, middle and output accounts are the same token account")]
    SameTokenAccount, // 6007
    #[msg("The swap took more than the stated input amount or maximum")]
    InputOverspent, // 6008
    #[msg("The expiry slot has passed")]
    Expired, // 6009
    #[msg("Both hops go through the same pool")]
    SamePool, // 6010
    #[msg("The middle token account is not of the middle mint")]
    MiddleMintMismatch, // 6011
    #[msg("The middle token account is not owned by the user")]
    MiddleOwnerMismatch, // 6012
    #[msg("The middle account is not a token account of SPL Token or Token-2022")]
    MiddleUnknownTokenProgram, // 6013
    #[msg("The second hop took more from the middle account than the first delivered")]
    MiddleOverspent, // 6014
}

/// Why an instruction failed, as the runtime encodes it. A result of nothing or this is one number, zero for success,
/// which is what the program returns in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(NonZeroU64);

/// What a check returns.
pub type Checked<T = ()> = core::result::Result<T, Refused>;

impl Refused {
    /// The code that the program returns.
    #[inline(always)]
    pub const fn code(self) -> u64 {
        self.0.get()
    }

    #[inline(always)]
    const fn encoded(code: u64) -> Self {
        match NonZeroU64::new(code) {
            Some(code) => Self(code),
            None => panic!("every error has a code above zero"),
        }
    }
}

impl From<SwapGuardError> for Refused {
    #[inline(always)]
    fn from(error: SwapGuardError) -> Self {
        Self::from(Error::from(error))
    }
}

impl From<ErrorCode> for Refused {
    #[inline(always)]
    fn from(error: ErrorCode) -> Self {
        Self::from(Error::from(error))
    }
}

impl From<ProgramError> for Refused {
    #[inline(always)]
    fn from(error: ProgramError) -> Self {
        Self::encoded(error.into())
    }
}

impl From<Refused> for ProgramError {
    fn from(refused: Refused) -> Self {
        Self::from(refused.code())
    }
}

/// Fails with an error unless the condition holds.
///
/// # Errors
/// The given one.
#[inline(always)]
pub fn ensure(holds: bool, otherwise: impl Into<Refused>) -> Checked {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
