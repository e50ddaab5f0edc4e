//! Minimums just out of reach, and amounts at the ends of their range.

use cpmm::{TransferFee, TransferFeeConfig, ids};
use sluice_testkit::{
    pool::{PoolSpec, TokenSpec, constant_fee, guarded_swap},
    svm::{EPOCH, UNIX_TIMESTAMP},
};
use swap_guard_interface::{GuardError, PROGRAM_ID};

use super::accepted_swap::{AMOUNT_IN, AcceptedSwap, START};

/// Refuses one unit more than the pool pays, then accepts the very amount from the same reserves.
fn assert_minimum_is_exact(mut swap_case: AcceptedSwap, received: u64) {
    for minimum_out in [received + 1, u64::MAX] {
        let too_much = guarded_swap(&swap_case.accounts, AMOUNT_IN, minimum_out);
        let sent = swap_case.svm.send(&[too_much], &[&swap_case.user.keypair]);
        let Err(refused) = sent else {
            panic!("accepted less than {minimum_out}");
        };
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (PROGRAM_ID, GuardError::SlippageExceeded.code())
        );
        for account in [
            swap_case.user.accounts.token_0,
            swap_case.user.accounts.token_1,
        ] {
            assert_eq!(swap_case.svm.balance(account), START);
        }
    }
    let exact = guarded_swap(&swap_case.accounts, AMOUNT_IN, received);
    let executed = swap_case
        .svm
        .send(&[exact], &[&swap_case.user.keypair])
        .expect("the very amount is accepted");
    assert_eq!(executed.return_data.1, received.to_le_bytes());
    let balances = [
        swap_case.accounts.input_token_account,
        swap_case.accounts.output_token_account,
    ];
    assert_eq!(
        balances.map(|account| swap_case.svm.balance(account)),
        [START - AMOUNT_IN, START + received]
    );
}

#[test]
fn rejects_a_minimum_of_one_unit_more_than_the_swap_pays() {
    assert_minimum_is_exact(AcceptedSwap::set(), 9_974_950);
}

#[test]
fn rejects_when_the_transfer_fee_pushes_what_arrives_under_the_minimum() {
    let setup = PoolSpec::of(
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(2_000_000_000_000, constant_fee(100)),
    );
    // 9,974,950 leave the vault, as without a fee; 99,750 of them are withheld, and only the rest counts.
    assert_minimum_is_exact(AcceptedSwap::of(&setup), 9_875_200);
}

#[test]
fn a_transfer_fee_that_starts_with_an_epoch_counts_against_the_minimum_from_then_on() {
    const STARTS: u64 = EPOCH;
    let fee = |epoch, basis_points| TransferFee {
        epoch,
        maximum_fee: u64::MAX,
        basis_points,
    };
    let fees = TransferFeeConfig {
        older: fee(0, 0),
        newer: fee(STARTS, 100),
    };
    let setup = PoolSpec::of(
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(2_000_000_000_000, fees),
    );
    for (epoch, received) in [
        (STARTS - 1, 9_974_950),
        (STARTS, 9_875_200),
        (STARTS + 1, 9_875_200),
    ] {
        let mut swap_case = AcceptedSwap::of(&setup);
        swap_case.svm.set_time(epoch, UNIX_TIMESTAMP);
        assert_minimum_is_exact(swap_case, received);
    }
}

#[test]
fn rejects_an_amount_that_the_trade_fee_eats_up() {
    /// Anchor's code for a number that had to be greater: nothing would be paid out.
    const REQUIRE_GT_VIOLATED: u32 = 2505;
    let mut swap_case = AcceptedSwap::set();
    let instruction = guarded_swap(&swap_case.accounts, 1, 1);
    swap_case.assert_refused(instruction, ids::PROGRAM_ID, REQUIRE_GT_VIOLATED);
}

#[test]
fn rejects_an_amount_that_no_account_holds() {
    /// The token programs' code for insufficient funds.
    const INSUFFICIENT_FUNDS: u32 = 1;
    let mut swap_case = AcceptedSwap::set();
    let instruction = guarded_swap(&swap_case.accounts, u64::MAX, 1);
    swap_case.assert_refused(instruction, ids::SPL_TOKEN, INSUFFICIENT_FUNDS);
}
