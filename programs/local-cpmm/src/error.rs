//! Error numbers of the exchange: its own from 6000, and those its framework reports for it.

use pinocchio::error::ProgramError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ExchangeError {
    /// No instruction has this discriminator.
    InstructionFallbackNotFound = 101,
    /// The arguments are shorter than the instruction needs.
    InstructionDidNotDeserialize = 102,
    /// An account that is written is not writable.
    ConstraintMut = 2000,
    /// A vault is not the pool's, or the mints are not in order.
    ConstraintRaw = 2003,
    /// An address does not derive from its seeds.
    ConstraintSeeds = 2006,
    /// The config, a mint, the observation or the fee receiver is not the one named.
    ConstraintAddress = 2012,
    /// A token account is of another mint.
    ConstraintTokenMint = 2014,
    /// A token account is owned by someone else.
    ConstraintTokenOwner = 2015,
    /// A mint belongs to the other token program.
    ConstraintMintTokenProgram = 2022,
    /// A pool at an address of its own choosing did not sign.
    RequireEqViolated = 2501,
    /// The net input or the amount received is zero.
    RequireGtViolated = 2505,
    /// The product of the reserves fell.
    RequireGteViolated = 2506,
    /// The account is too short for a discriminator.
    AccountDiscriminatorNotFound = 3001,
    /// The account is of another kind.
    AccountDiscriminatorMismatch = 3002,
    /// The account is too short for its kind.
    AccountDidNotDeserialize = 3003,
    /// Fewer accounts than the instruction needs.
    AccountNotEnoughKeys = 3005,
    /// The account belongs to another program.
    AccountOwnedByWrongProgram = 3007,
    /// Not the program expected here.
    InvalidProgramId = 3008,
    /// The signature is missing.
    AccountNotSigner = 3010,
    /// The account does not exist.
    AccountNotInitialized = 3012,
    /// Not the sysvar expected here.
    AccountSysvarMismatch = 3015,
    /// The program was loaded at another address than it is written for.
    DeclaredProgramIdMismatch = 4100,
    /// Not open yet, or switched off.
    NotApproved = 6000,
    /// A vault is empty after the first deposit.
    EmptySupply = 6002,
    /// The transfer fee on top of nothing is asked for.
    InvalidInput = 6003,
    /// The amount received is below the minimum, or the input above the maximum.
    ExceededSlippage = 6005,
    /// The fees leave nothing to trade, or cannot be split.
    ZeroTradingTokens = 6006,
    /// A mint with an extension that pools do not take.
    NotSupportMint = 6007,
    /// The same vault twice.
    InvalidVault = 6008,
    /// The first deposit is worth less than the LP tokens that are locked for ever.
    InitLpAmountTooLess = 6009,
    /// No amount leaves exactly this one once the mint's transfer fee is taken.
    TransferFeeCalculateNotMatch = 6010,
    /// A sum of accrued fees, or the oracle's accumulation, overflowed.
    MathOverflow = 6011,
    /// A vault holds less than the fees accrued in it.
    InsufficientVault = 6012,
    /// The pool's side of the creator fee has an unknown value.
    InvalidFeeModel = 6013,
}

impl From<ExchangeError> for ProgramError {
    fn from(error: ExchangeError) -> Self {
        Self::Custom(error as u32)
    }
}
