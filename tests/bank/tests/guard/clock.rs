//! Expiry and transfer fees as time passes on the bank's own clock.

use cpmm::{TransferFee, TransferFeeConfig};
use sluice_testkit::pool::{PoolSpec, TokenSpec, guarded_swap};
use solana_clock::Clock;
use solana_instruction::Instruction;
use swap_guard_interface::{GuardError, SwapArgs, swap};

use crate::bank::{Bank, START};

const AMOUNT_IN: u64 = 5_000_000;

/// A slot well ahead of where the bank starts.
const LAST: u64 = 500;

fn swap_until(bank: &Bank, expiry_slot: u64) -> Instruction {
    let args = SwapArgs {
        amount_in: AMOUNT_IN,
        minimum_out: 1,
        expiry_slot,
    };
    swap(&bank.accounts, args)
}

#[tokio::test]
async fn a_swap_is_good_up_to_its_expiry_slot_and_not_after() {
    let mut bank = Bank::start(&PoolSpec::plain()).await;
    bank.context.warp_to_slot(LAST).expect("the slot is ahead");
    let swap = swap_until(&bank, LAST);
    bank.send(swap.clone()).await.expect("the last slot");
    bank.context
        .warp_to_slot(LAST + 1)
        .expect("the slot is ahead");
    bank.assert_refused(swap, GuardError::Expired.code()).await;
}

#[tokio::test]
async fn a_transfer_fee_that_starts_with_an_epoch_counts_against_the_minimum_from_then_on() {
    /// What arrives without a fee from these reserves, and with the newer one, of one percent.
    const WITHOUT_FEE: u64 = 9_974_950;
    const WITH_FEE: u64 = 9_875_200;
    let fee = |epoch, basis_points| TransferFee {
        epoch,
        maximum_fee: u64::MAX,
        basis_points,
    };
    let fees = TransferFeeConfig {
        older: fee(0, 0),
        newer: fee(2, 100),
    };
    let setup = PoolSpec::of(
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(2_000_000_000_000, fees),
    );

    let mut before = Bank::start(&setup).await;
    before
        .send(guarded_swap(&before.accounts, AMOUNT_IN, WITHOUT_FEE))
        .await
        .expect("no fee yet");

    let mut after = Bank::start(&setup).await;
    after.context.warp_to_epoch(2).expect("the epoch is ahead");
    let clock = after.context.banks_client.get_sysvar::<Clock>().await;
    assert_eq!(clock.expect("the bank answers").epoch, 2);
    let swap = guarded_swap(&after.accounts, AMOUNT_IN, WITH_FEE + 1);
    after
        .assert_refused(swap, GuardError::SlippageExceeded.code())
        .await;
    after
        .send(guarded_swap(&after.accounts, AMOUNT_IN, WITH_FEE))
        .await
        .expect("the fee is counted");
    assert_eq!(
        after.balances().await,
        [START - AMOUNT_IN, START + WITH_FEE]
    );
}
