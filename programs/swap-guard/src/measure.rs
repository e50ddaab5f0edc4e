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
#[inline(never)]
pub fn checked_balance(
    account: &AccountView,
    expected: &Expected,
    refusals: &Refusals,
) -> Checked<u64> {
    // Only these two programs can have written such an account, so its mint, owner and amount are true.
    let program = account.owner();
    let is_token_2022 = !address_eq(program, &TOKEN_ID);
    if is_token_2022 && !address_eq(program, &TOKEN_2022_ID) {
        return Err(refusals.program.into());
    }
    with_data(account, |data| {
        balance_of(data, is_token_2022, expected, refusals)
    })
}

/// The balance of an account whose owner and mint are checked elsewhere, zero when it is too short to have one.
///
/// Of the input account they are the exchange's to check: its transfer moves tokens out of this account under the user's
/// signature, which either token program grants for the user's accounts alone. The middle account is checked before the
/// first hop and after the second one, and read by this between them.
#[inline(always)]
pub fn unchecked_balance(account: &AccountView) -> u64 {
    with_data(account, |data| {
        Head::of(data).map_or(0, |head| u64::from_le_bytes(head.amount))
    })
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
fn balance_of(
    data: &[u8],
    is_token_2022: bool,
    expected: &Expected,
    refusals: &Refusals,
) -> Checked<u64> {
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
    Ok(u64::from_le_bytes(head.amount))
}

/// Tells a token account from the other accounts that the token programs own (mints, multisigs).
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
mod tests {
    use super::*;
    use SwapGuardError::*;

    const MINT: Address = Address::new_from_array([7; 32]);
    const USER: Address = Address::new_from_array([8; 32]);
    const EXPECTED: Expected = Expected {
        mint: &MINT,
        owner: &USER,
    };

    fn token_account(length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        data[..32].copy_from_slice(MINT.as_array());
        data[32..64].copy_from_slice(USER.as_array());
        data[64..72].copy_from_slice(&55_u64.to_le_bytes());
        data
    }

    #[test]
    fn accepts_a_plain_token_account_of_either_program() {
        let data = token_account(165);
        assert_eq!(balance_of(&data, false, &EXPECTED, &OUTPUT), Ok(55));
        assert_eq!(balance_of(&data, true, &EXPECTED, &OUTPUT), Ok(55));
    }

    #[test]
    fn accepts_an_extended_account_of_token_2022_only() {
        let mut data = token_account(178);
        data[165] = ACCOUNT_TYPE_TOKEN_ACCOUNT;
        assert_eq!(balance_of(&data, true, &EXPECTED, &OUTPUT), Ok(55));
        assert_eq!(
            balance_of(&data, false, &EXPECTED, &OUTPUT),
            Err(UnknownTokenProgram.into())
        );
    }

    #[test]
    fn rejects_mints_and_lengths_that_no_token_account_has() {
        for length in [0, 72, 82, 164, 166] {
            assert_eq!(
                balance_of(&vec![0; length], true, &EXPECTED, &OUTPUT),
                Err(UnknownTokenProgram.into()),
                "length {length}"
            );
        }
        let mut mint = token_account(274);
        mint[165] = 1;
        assert_eq!(
            balance_of(&mint, true, &EXPECTED, &OUTPUT),
            Err(UnknownTokenProgram.into())
        );
    }

    #[test]
    fn rejects_another_mint_and_another_owner_in_any_byte() {
        for byte in 0..32 {
            let mut data = token_account(165);
            data[byte] ^= 1;
            assert_eq!(
                balance_of(&data, false, &EXPECTED, &OUTPUT),
                Err(OutputMintMismatch.into())
            );
            let mut data = token_account(165);
            data[32 + byte] ^= 1;
            assert_eq!(
                balance_of(&data, false, &EXPECTED, &OUTPUT),
                Err(OutputOwnerMismatch.into())
            );
        }
    }

    #[test]
    fn received_is_the_difference_and_must_reach_the_minimum() {
        assert_eq!(received_at_least(10, 5, 15), Ok(10));
        assert_eq!(received_at_least(10, 5, 14), Err(SlippageExceeded.into()));
        assert_eq!(received_at_least(1, 5, 4), Err(SlippageExceeded.into()));
        assert_eq!(received_at_least(u64::MAX, 0, u64::MAX), Ok(u64::MAX));
    }

    #[test]
    fn spending_is_bounded_by_the_maximum() {
        assert_eq!(spent_at_most(10, 20, 10), Ok(10));
        assert_eq!(spent_at_most(10, 20, 9), Err(InputOverspent.into()));
        assert_eq!(spent_at_most(0, 20, 21), Ok(0));
        assert_eq!(spent_at_most(u64::MAX, u64::MAX, 0), Ok(u64::MAX));
    }

    #[test]
    fn the_middle_account_never_ends_below_its_start() {
        assert_eq!(delivered(5, 6), Ok(1));
        assert_eq!(delivered(5, 5), Err(SlippageExceeded.into()));
        assert_eq!(delivered(5, 4), Err(MiddleOverspent.into()));
        assert_eq!(middle_kept(5, 5), Ok(()));
        assert_eq!(middle_kept(5, 6), Ok(()));
        assert_eq!(middle_kept(5, 4), Err(MiddleOverspent.into()));
    }

    #[test]
    fn the_middle_account_is_refused_with_codes_of_its_own() {
        let refused = |data: &[u8]| balance_of(data, false, &EXPECTED, &MIDDLE).unwrap_err();
        assert_eq!(refused(&[]), MiddleUnknownTokenProgram.into());
        let mut data = token_account(165);
        data[32] ^= 1;
        assert_eq!(refused(&data), MiddleOwnerMismatch.into());
        data[0] ^= 1;
        assert_eq!(refused(&data), MiddleMintMismatch.into());
    }
}
