//! Measured amounts: accounts that count, and the differences of their balances.

use super::*;
use SwapGuardError::*;

const MINT: Address = Address::new_from_array([7; 32]);
const USER: Address = Address::new_from_array([8; 32]);
const EXPECTED: Expected = Expected {
    mint: &MINT,
    owner: &USER,
};

fn balance_of(
    data: &[u8],
    is_token_2022: bool,
    expected: &Expected,
    refusals: &Refusals,
) -> Checked<u64> {
    check_data(data, is_token_2022, expected, refusals)?;
    Ok(amount_of(data).expect("longer than a head"))
}

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
