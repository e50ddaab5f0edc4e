//! Error codes of the guard: part of its interface, their numbers never change or are reused.

use anchor_lang::prelude::*;

#[error_code]
#[derive(Debug, PartialEq, Eq)]
pub enum SwapGuardError {
    #[msg("The swap paid less than the stated minimum")]
    SlippageExceeded, // 6000
    #[msg("The exchange program is not Raydium CPMM")]
    WrongExchange, // 6001
    #[msg("The output token account is not of the output mint")]
    OutputMintMismatch, // 6002
    #[msg("The output token account is not owned by the user")]
    OutputOwnerMismatch, // 6003
    #[msg("The output account is not a token account of SPL Token or Token-2022")]
    UnknownTokenProgram, // 6004
    #[msg("The input amount is zero")]
    ZeroAmountIn, // 6005
    #[msg("The minimum output is zero")]
    ZeroMinimumOut, // 6006
    #[msg("Input and output are the same token account")]
    SameTokenAccount, // 6007
    #[msg("The swap took more than the stated input amount")]
    InputOverspent, // 6008
    #[msg("The expiry slot has passed")]
    Expired, // 6009
}
