//! Amounts spent and received, measured from the bytes of token accounts before and after.

use crate::{constants::*, error::SwapGuardError};
use anchor_lang::{
    address_eq,
    bytemuck::{Pod, Zeroable, from_bytes},
    prelude::*,
};

/// Whose account it must be, and of which mint, for its balance to count as the user's.
pub struct Expected<'a> {
    pub mint: &'a Address,
    pub owner: &'a Address,
}

/// The balance of the output account, once everything that makes it the user's is checked.
///
/// A delegate or a close authority does not make it less the user's. Only the account's owner can appoint them; both
/// token programs dismiss the delegate when the owner changes, and refuse to close an account with tokens in it, or
/// dismiss the close authority too where it holds wrapped SOL. So an account that an attacker prepared and handed over
/// still pays the user, and refusing it would only shut out users who appointed somebody themselves.
///
/// # Errors
/// `UnknownTokenProgram` when it is no token account of the two token programs, `OutputMintMismatch` and
/// `OutputOwnerMismatch` when it is not the expected one.
pub fn checked_output_balance(
    account: &AccountView,
    expected: &Expected,
) -> core::result::Result<u64, SwapGuardError> {
    // Only these two programs can have written such an account, so its mint, owner and amount are true.
    let program = account.owner();
    let is_token_2022 = !address_eq(program, &TOKEN_ID);
    if is_token_2022 && !address_eq(program, &TOKEN_2022_ID) {
        return Err(SwapGuardError::UnknownTokenProgram);
    }
    let data = account
        .try_borrow()
        .map_err(|_| SwapGuardError::UnknownTokenProgram)?;
    output_balance(&data, is_token_2022, expected)
}

/// The balance of the input account, zero when it is too short to have one.
///
/// Owner and mint are the exchange's to check: its transfer moves tokens out of this account under the user's
/// signature, which either token program grants for the user's accounts alone.
pub fn input_balance(account: &AccountView) -> u64 {
    account
        .try_borrow()
        .ok()
        .and_then(|data| Head::of(&data).map(|head| u64::from_le_bytes(head.amount)))
        .unwrap_or(0)
}

/// What arrived, if it is at least `minimum_out`.
///
/// # Errors
/// `SlippageExceeded`, also when the balance fell.
pub fn received_at_least(
    minimum_out: u64,
    before: u64,
    after: u64,
) -> core::result::Result<u64, SwapGuardError> {
    after
        .checked_sub(before)
        .filter(|received| *received >= minimum_out)
        .ok_or(SwapGuardError::SlippageExceeded)
}

/// Refuses a swap that took more out of the input account than was offered.
///
/// # Errors
/// `InputOverspent`.
pub fn spent_at_most(
    amount_in: u64,
    before: u64,
    after: u64,
) -> core::result::Result<(), SwapGuardError> {
    if after.saturating_add(amount_in) < before {
        return Err(SwapGuardError::InputOverspent);
    }
    Ok(())
}

fn output_balance(
    data: &[u8],
    is_token_2022: bool,
    expected: &Expected,
) -> core::result::Result<u64, SwapGuardError> {
    if !is_token_account(data, is_token_2022) {
        return Err(SwapGuardError::UnknownTokenProgram);
    }
    let head = Head::of(data).ok_or(SwapGuardError::UnknownTokenProgram)?;
    if !address_eq(&head.mint, expected.mint) {
        return Err(SwapGuardError::OutputMintMismatch);
    }
    if !address_eq(&head.owner, expected.owner) {
        return Err(SwapGuardError::OutputOwnerMismatch);
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
        assert_eq!(output_balance(&data, false, &EXPECTED), Ok(55));
        assert_eq!(output_balance(&data, true, &EXPECTED), Ok(55));
    }

    #[test]
    fn accepts_an_extended_account_of_token_2022_only() {
        let mut data = token_account(178);
        data[165] = ACCOUNT_TYPE_TOKEN_ACCOUNT;
        assert_eq!(output_balance(&data, true, &EXPECTED), Ok(55));
        assert_eq!(
            output_balance(&data, false, &EXPECTED),
            Err(UnknownTokenProgram)
        );
    }

    #[test]
    fn rejects_mints_and_lengths_that_no_token_account_has() {
        for length in [0, 72, 82, 164, 166] {
            assert_eq!(
                output_balance(&vec![0; length], true, &EXPECTED),
                Err(UnknownTokenProgram),
                "length {length}"
            );
        }
        let mut mint = token_account(274);
        mint[165] = 1;
        assert_eq!(
            output_balance(&mint, true, &EXPECTED),
            Err(UnknownTokenProgram)
        );
    }

    #[test]
    fn rejects_another_mint_and_another_owner_in_any_byte() {
        for byte in 0..32 {
            let mut data = token_account(165);
            data[byte] ^= 1;
            assert_eq!(
                output_balance(&data, false, &EXPECTED),
                Err(OutputMintMismatch)
            );
            let mut data = token_account(165);
            data[32 + byte] ^= 1;
            assert_eq!(
                output_balance(&data, false, &EXPECTED),
                Err(OutputOwnerMismatch)
            );
        }
    }

    #[test]
    fn received_is_the_difference_and_must_reach_the_minimum() {
        assert_eq!(received_at_least(10, 5, 15), Ok(10));
        assert_eq!(received_at_least(10, 5, 14), Err(SlippageExceeded));
        assert_eq!(received_at_least(1, 5, 4), Err(SlippageExceeded));
        assert_eq!(received_at_least(u64::MAX, 0, u64::MAX), Ok(u64::MAX));
    }

    #[test]
    fn spending_is_bounded_by_the_input_amount() {
        assert_eq!(spent_at_most(10, 20, 10), Ok(()));
        assert_eq!(spent_at_most(10, 20, 9), Err(InputOverspent));
        assert_eq!(spent_at_most(0, 20, 21), Ok(()));
    }
}
