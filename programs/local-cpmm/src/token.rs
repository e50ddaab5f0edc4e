//! Both token programs: their accounts as bytes, their transfer fee, and calls into them.

use crate::{
    addresses::{AUTHORITY_SEED, TOKEN, TOKEN_2022},
    checks::owned_by_token_program,
    error::ExchangeError,
};
use pinocchio::{
    AccountView, Address, ProgramResult,
    cpi::{Seed, Signer, invoke, invoke_signed},
    error::ProgramError,
    instruction::{InstructionAccount, InstructionView},
};

/// Length of a token account without extensions.
pub const ACCOUNT_LEN: usize = 165;
/// Length of a mint without extensions.
pub const MINT_LEN: usize = 82;
/// Length of a multisig, which no token account and no mint has.
const MULTISIG_LEN: usize = 355;
/// What a transfer-fee mint adds to its token accounts: the account type, an extension header, the withheld amount.
const TRANSFER_FEE_ACCOUNT_EXTRA: usize = 1 + 4 + 8;

/// Offset of the account type in an extended mint or token account; extensions start behind it.
const ACCOUNT_TYPE_OFFSET: usize = ACCOUNT_LEN;
const ACCOUNT_TYPE_MINT: u8 = 1;
const ACCOUNT_TYPE_ACCOUNT: u8 = 2;

/// Extensions that a pool's mint may have.
pub mod extension {
    pub const NONE: u16 = 0;
    pub const TRANSFER_FEE_CONFIG: u16 = 1;
    pub const INTEREST_BEARING_CONFIG: u16 = 10;
    pub const METADATA_POINTER: u16 = 18;
    pub const TOKEN_METADATA: u16 = 19;
    pub const SCALED_UI_AMOUNT: u16 = 25;
}

/// What the exchange needs of a token account.
#[derive(Clone, Copy)]
pub struct TokenAccount {
    pub mint: [u8; 32],
    pub owner: [u8; 32],
    pub amount: u64,
}

impl TokenAccount {
    /// # Errors
    /// 3007 or 3012 for another program's account; the token program's own errors for data that is no token account.
    pub fn load(account: &AccountView) -> Result<Self, ProgramError> {
        owned_by_token_program(account)?;
        Self::read(account)
    }

    /// The same for an account whose owner is known.
    ///
    /// # Errors
    /// The token program's own errors for data that is no token account.
    pub fn read(account: &AccountView) -> Result<Self, ProgramError> {
        let data = account.try_borrow()?;
        let data: &[u8] = &data;
        check_length(data, ACCOUNT_LEN, ACCOUNT_TYPE_ACCOUNT)?;
        if byte_at(data, 108)? == 0 {
            return Err(ProgramError::UninitializedAccount);
        }
        Ok(Self {
            mint: *chunk_at(data, 0)?,
            owner: *chunk_at(data, 32)?,
            amount: u64::from_le_bytes(*chunk_at(data, 64)?),
        })
    }
}

/// The decimals of a mint of either token program.
///
/// # Errors
/// 3007 or 3012 for another program's account; the token program's own errors for data that is no mint.
pub fn mint_decimals(account: &AccountView) -> Result<u8, ProgramError> {
    owned_by_token_program(account)?;
    let data = account.try_borrow()?;
    check_length(&data, MINT_LEN, ACCOUNT_TYPE_MINT)?;
    if byte_at(&data, 45)? == 0 {
        return Err(ProgramError::UninitializedAccount);
    }
    byte_at(&data, 44)
}

/// The extensions of a mint, by type, in the order they are stored.
pub struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// Of a mint's account data.
    pub fn of_mint(data: &'a [u8]) -> Self {
        Self(
            data.get(ACCOUNT_TYPE_OFFSET..)
                .and_then(|rest| rest.get(1..))
                .unwrap_or(&[]),
        )
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.0.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        match u16::from_le_bytes(*kind) {
            extension::NONE => None,
            kind => Some((kind, body)),
        }
    }
}

/// What a Token-2022 mint withholds when `amount` is transferred in `epoch`; zero for every other mint.
///
/// # Errors
/// `InvalidAccountData` when the mint's fee schedule is cut short.
#[inline(always)]
pub fn transfer_fee(mint: &AccountView, amount: u64, epoch: u64) -> Result<u64, ProgramError> {
    Ok(FeeSchedule::of(mint, epoch)?.map_or(0, |schedule| schedule.fee(amount)))
}

/// What must be transferred on top of `net` in `epoch` so that `net` arrives.
///
/// # Errors
/// `InvalidInput` for nothing, `TransferFeeCalculateNotMatch` where the fee of the sum is another one,
/// `ArithmeticOverflow` where the real program panics, `InvalidAccountData` when the mint's fee schedule is cut short.
pub fn inverse_transfer_fee(mint: &AccountView, net: u64, epoch: u64) -> Result<u64, ProgramError> {
    if mint.owned_by(&TOKEN) {
        return Ok(0);
    }
    if net == 0 {
        return Err(ExchangeError::InvalidInput.into());
    }
    let Some(schedule) = FeeSchedule::of(mint, epoch)? else {
        return Ok(0);
    };
    if schedule.basis_points == WHOLE {
        return Ok(schedule.maximum);
    }
    let gross = schedule
        .before_fee(net)
        .ok_or(ProgramError::ArithmeticOverflow)?;
    let fee = schedule.fee(gross);
    let sum = net
        .checked_add(fee)
        .ok_or(ProgramError::ArithmeticOverflow)?;
    if schedule.fee(sum) != fee {
        return Err(ExchangeError::TransferFeeCalculateNotMatch.into());
    }
    Ok(fee)
}

/// Basis points of the whole.
const WHOLE: u16 = 10_000;

/// The fee schedule of a mint that is in force.
struct FeeSchedule {
    maximum: u64,
    basis_points: u16,
}

impl FeeSchedule {
    /// None for a mint without transfer fees.
    #[inline(always)]
    fn of(mint: &AccountView, epoch: u64) -> Result<Option<Self>, ProgramError> {
        if mint.owned_by(&TOKEN) {
            return Ok(None);
        }
        let data = mint.try_borrow()?;
        let config =
            Extensions::of_mint(&data).find(|(kind, _)| *kind == extension::TRANSFER_FEE_CONFIG);
        let Some((_, config)) = config else {
            return Ok(None);
        };
        // Older schedule at 72, newer at 90, each: epoch, maximum fee, basis points.
        let newer_from = u64::from_le_bytes(*chunk_at(config, 90)?);
        let (maximum_at, rate_at) = if epoch >= newer_from {
            (98, 106)
        } else {
            (80, 88)
        };
        Ok(Some(Self {
            maximum: u64::from_le_bytes(*chunk_at(config, maximum_at)?),
            basis_points: u16::from_le_bytes(*chunk_at(config, rate_at)?),
        }))
    }

    /// Rounded up and capped.
    #[inline(always)]
    fn fee(&self, amount: u64) -> u64 {
        let fee = u128::from(amount)
            .saturating_mul(u128::from(self.basis_points))
            .div_ceil(u128::from(WHOLE));
        u64::try_from(fee).map_or(self.maximum, |fee| fee.min(self.maximum))
    }

    /// What Token-2022 takes for the amount that leaves `net`, for a rate below the whole.
    fn before_fee(&self, net: u64) -> Option<u64> {
        let kept = WHOLE.checked_sub(self.basis_points)?;
        let gross = u128::from(net)
            .checked_mul(u128::from(WHOLE))?
            .div_ceil(u128::from(kept));
        let raised = gross.checked_sub(u128::from(net))?;
        if raised >= u128::from(self.maximum) {
            net.checked_add(self.maximum)
        } else {
            u64::try_from(gross).ok()
        }
    }
}

/// Length of a vault for this mint.
///
/// # Errors
/// When the mint cannot be read.
pub fn vault_len(mint: &AccountView) -> Result<usize, ProgramError> {
    if !mint.owned_by(&TOKEN_2022) {
        return Ok(ACCOUNT_LEN);
    }
    let data = mint.try_borrow()?;
    let has_fee =
        Extensions::of_mint(&data).any(|(kind, _)| kind == extension::TRANSFER_FEE_CONFIG);
    Ok(if has_fee {
        ACCOUNT_LEN.saturating_add(TRANSFER_FEE_ACCOUNT_EXTRA)
    } else {
        ACCOUNT_LEN
    })
}

/// One `TransferChecked`.
pub struct Transfer<'a> {
    pub token_program: &'a AccountView,
    pub from: &'a AccountView,
    pub mint: &'a AccountView,
    pub to: &'a AccountView,
    pub authority: &'a AccountView,
    pub amount: u64,
    pub decimals: u8,
}

impl Transfer<'_> {
    /// Moves tokens that the transaction's signer may spend. Zero moves nothing, as in the exchange.
    pub fn invoke(&self) -> ProgramResult {
        self.invoke_with(&[])
    }

    /// Moves tokens out of a vault, signed by the exchange's authority.
    pub fn invoke_as_authority(&self, bump: u8) -> ProgramResult {
        let bump = [bump];
        let seeds = [Seed::from(AUTHORITY_SEED), Seed::from(&bump)];
        self.invoke_with(&[Signer::from(&seeds)])
    }

    fn invoke_with(&self, signers: &[Signer]) -> ProgramResult {
        if self.amount == 0 {
            return Ok(());
        }
        let mut data = [0; 10];
        data[0] = 12;
        data[1..9].copy_from_slice(&self.amount.to_le_bytes());
        data[9] = self.decimals;
        invoke_signed(
            &InstructionView {
                program_id: self.token_program.address(),
                data: &data,
                accounts: &[
                    InstructionAccount::writable(self.from.address()),
                    InstructionAccount::readonly(self.mint.address()),
                    InstructionAccount::writable(self.to.address()),
                    InstructionAccount::readonly_signer(self.authority.address()),
                ],
            },
            &[self.from, self.mint, self.to, self.authority],
            signers,
        )
    }
}

/// Makes a fresh account the token account of `owner`.
///
/// # Errors
/// The token program's own.
pub fn initialize_account(
    token_program: &AccountView,
    account: &AccountView,
    mint: &AccountView,
    owner: &Address,
) -> ProgramResult {
    let mut data = [0; 33];
    data[0] = 18;
    data[1..].copy_from_slice(owner.as_array());
    invoke(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[
                InstructionAccount::writable(account.address()),
                InstructionAccount::readonly(mint.address()),
            ],
        },
        &[account, mint],
    )
}

/// Makes a fresh account a mint without freeze authority.
///
/// # Errors
/// The token program's own.
pub fn initialize_mint(
    token_program: &AccountView,
    mint: &AccountView,
    decimals: u8,
    mint_authority: &Address,
) -> ProgramResult {
    let mut data = [0; 35];
    data[0] = 20;
    data[1] = decimals;
    data[2..34].copy_from_slice(mint_authority.as_array());
    invoke(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[InstructionAccount::writable(mint.address())],
        },
        &[mint],
    )
}

fn check_length(data: &[u8], base: usize, account_type: u8) -> Result<(), ProgramError> {
    let plain = data.len() == base;
    let extended =
        data.len() != MULTISIG_LEN && data.get(ACCOUNT_TYPE_OFFSET) == Some(&account_type);
    if plain || extended {
        Ok(())
    } else {
        Err(ProgramError::InvalidAccountData)
    }
}

fn byte_at(data: &[u8], offset: usize) -> Result<u8, ProgramError> {
    data.get(offset)
        .copied()
        .ok_or(ProgramError::InvalidAccountData)
}

fn chunk_at<const N: usize>(data: &[u8], offset: usize) -> Result<&[u8; N], ProgramError> {
    data.get(offset..)
        .and_then(<[u8]>::first_chunk)
        .ok_or(ProgramError::InvalidAccountData)
}
