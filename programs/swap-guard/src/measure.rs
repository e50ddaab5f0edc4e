//! Amounts spent and received, measured from the bytes of token accounts before and after.

use crate::{
    constants::*,
    error::{Checked, Refused, SwapGuardError},
    runtime::with_data,
};
use anchor_lang::{
    address_eq,
    bytemuck::{Pod, Zeroable, from_bytes},
    prelude::*,
};

/// Whose account it must be, and of which mint, for its balance to count.
pub struct Expected<'a> {
    pub mint: &'a Address,
    pub owner: &'a Address,
}

/// With which error an account is refused.
pub struct Refusals {
    /// It is no token account of the two token programs.
    program: SwapGuardError,
    mint: SwapGuardError,
    owner: SwapGuardError,
}

/// Refusals of the account that is paid in the end.
pub const OUTPUT: Refusals = Refusals {
    program: SwapGuardError::UnknownTokenProgram,
    mint: SwapGuardError::OutputMintMismatch,
    owner: SwapGuardError::OutputOwnerMismatch,
};

/// Refusals of the account between two hops.
pub const MIDDLE: Refusals = Refusals {
    program: SwapGuardError::MiddleUnknownTokenProgram,
    mint: SwapGuardError::MiddleMintMismatch,
    owner: SwapGuardError::MiddleOwnerMismatch,
};

/// The balance of an account, once everything that makes it the expected one's is checked.
///
/// A delegate or a close authority does not make it less the owner's. Only the account's owner can appoint them; both
/// token programs dismiss the delegate when the owner changes, and refuse to close an account with tokens in it, or
/// dismiss the close authority too where it holds wrapped SOL. So an account that an attacker prepared and handed over
/// still pays its owner, and refusing it would only shut out users who appointed somebody themselves.
///
/// # Errors
/// The given ones.
#[inline(always)]
pub fn checked_balance(
    account: &AccountView,
    expected: &Expected,
    refusals: &Refusals,
) -> Checked<u64> {
    check(account, expected, refusals)?;
    Ok(balance(account).ok_or(refusals.program)?)
}

/// The check of [`checked_balance`], once in the binary. It returns a number in a register, as no balance could be.
#[inline(never)]
fn check(account: &AccountView, expected: &Expected, refusals: &Refusals) -> Checked {
    // Only these two programs can have written such an account, so its mint, owner and amount are true.
    let program = account.owner();
    let is_token_2022 = !address_eq(program, &TOKEN_ID);
    if is_token_2022 && !address_eq(program, &TOKEN_2022_ID) {
        return Err(refusals.program.into());
    }
    with_data(account, |data| {
        check_data(data, is_token_2022, expected, refusals)
    })
}

/// The balance of an account whose owner and mint are checked elsewhere, zero when it is too short to have one.
///
/// Of the input account they are the exchange's to check: its transfer moves tokens out of this account under the user's
/// signature, which either token program grants for the user's accounts alone. The middle account is checked before the
/// first hop and after the second one, and read by this between them.
#[inline(always)]
pub fn unchecked_balance(account: &AccountView) -> u64 {
    balance(account).unwrap_or(0)
}

#[inline(always)]
fn balance(account: &AccountView) -> Option<u64> {
    with_data(account, amount_of)
}

#[inline(always)]
fn amount_of(data: &[u8]) -> Option<u64> {
    Head::of(data).map(|head| u64::from_le_bytes(head.amount))
}

/// What arrived, if it is at least `minimum`.
///
/// # Errors
/// `SlippageExceeded`, also when the balance fell.
#[inline(always)]
pub fn received_at_least(minimum: u64, before: u64, after: u64) -> Checked<u64> {
    after
        .checked_sub(before)
        .filter(|received| *received >= minimum)
        .ok_or(Refused::from(SwapGuardError::SlippageExceeded))
}

/// What left the input account, if it is at most `maximum`. Nothing did where the balance grew.
///
/// # Errors
/// `InputOverspent`.
#[inline(always)]
pub fn spent_at_most(maximum: u64, before: u64, after: u64) -> Checked<u64> {
    let spent = before.saturating_sub(after);
    if spent > maximum {
        return Err(SwapGuardError::InputOverspent.into());
    }
    Ok(spent)
}

/// What the first hop delivered to the middle account.
///
/// # Errors
/// `MiddleOverspent` when the balance fell, `SlippageExceeded` when nothing came.
#[inline(always)]
pub fn delivered(before: u64, after: u64) -> Checked<u64> {
    match after.checked_sub(before) {
        None => Err(SwapGuardError::MiddleOverspent.into()),
        Some(0) => Err(SwapGuardError::SlippageExceeded.into()),
        Some(delivered) => Ok(delivered),
    }
}

/// Refuses two hops after which the middle account holds less than before: what it held is no part of the swap.
///
/// # Errors
/// `MiddleOverspent`.
#[inline(always)]
pub fn middle_kept(before: u64, after: u64) -> Checked {
    if after < before {
        return Err(SwapGuardError::MiddleOverspent.into());
    }
    Ok(())
}

#[inline(always)]
fn check_data(
    data: &[u8],
    is_token_2022: bool,
    expected: &Expected,
    refusals: &Refusals,
) -> Checked {
    if !is_token_account(data, is_token_2022) {
        return Err(refusals.program.into());
    }
    let head = Head::of(data).ok_or(refusals.program)?;
    if !address_eq(&head.mint, expected.mint) {
        return Err(refusals.mint.into());
    }
    if !address_eq(&head.owner, expected.owner) {
        return Err(refusals.owner.into());
    }
    Ok(())
}

/// Distinguishes a token account from the other accounts that the token programs own (mints, multisigs).
///
/// An account that is not initialised, or a multisig of the one length that Token-2022 reserves for it, passes here
/// and fails in the exchange, which unpacks this account itself.
fn is_token_account(data: &[u8], is_token_2022: bool) -> bool {
    if data.len() == TOKEN_ACCOUNT_LEN {
        return true;
    }
    is_token_2022 && data.get(ACCOUNT_TYPE_OFFSET) == Some(&ACCOUNT_TYPE_TOKEN_ACCOUNT)
}

/// What a token account of either program starts with.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "anchor_lang::bytemuck")]
struct Head {
    mint: Address,
    owner: Address,
    /// u64 little-endian, smallest units.
    amount: [u8; 8],
}

impl Head {
    fn of(data: &[u8]) -> Option<&Self> {
        data.get(..size_of::<Self>()).map(from_bytes)
    }
}

#[cfg(test)]
mod tests;
