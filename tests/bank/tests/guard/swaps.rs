//! Swaps on the bank: accepted and refused as on the chain in memory.

use sluice_testkit::pool::{PoolSpec, TokenSpec, guarded_swap};
use swap_guard_interface::{GuardError, PROGRAM_ID};

use crate::bank::{Bank, START};

const AMOUNT_IN: u64 = 5_000_000;
/// What the pool pays for it.
const RECEIVED: u64 = 9_974_950;

#[tokio::test]
async fn accepts_a_swap_that_pays_the_minimum_to_the_unit() {
    let mut bank = Bank::start(&PoolSpec::plain()).await;
    let swapped = bank
        .send(guarded_swap(&bank.accounts, AMOUNT_IN, RECEIVED))
        .await
        .expect("the guard accepts");
    assert_eq!(
        swapped.return_data,
        (PROGRAM_ID, RECEIVED.to_le_bytes().to_vec())
    );
    assert_eq!(bank.balances().await, [START - AMOUNT_IN, START + RECEIVED]);
}

#[tokio::test]
async fn accepts_a_swap_of_token_2022_tokens() {
    let setup = PoolSpec::of(
        TokenSpec::token_2022(1_000_000_000_000),
        TokenSpec::token_2022(2_000_000_000_000),
    );
    let mut bank = Bank::start(&setup).await;
    bank.send(guarded_swap(&bank.accounts, AMOUNT_IN, RECEIVED))
        .await
        .expect("the guard accepts");
    assert_eq!(bank.balances().await, [START - AMOUNT_IN, START + RECEIVED]);
}

#[tokio::test]
async fn rejects_a_minimum_of_one_unit_more_than_the_swap_pays() {
    let mut bank = Bank::start(&PoolSpec::plain()).await;
    let swap = guarded_swap(&bank.accounts, AMOUNT_IN, RECEIVED + 1);
    bank.assert_refused(swap, GuardError::SlippageExceeded.code())
        .await;
}

#[tokio::test]
async fn rejects_the_input_account_as_output_account() {
    let mut bank = Bank::start(&PoolSpec::plain()).await;
    bank.accounts.output_token_account = bank.accounts.input_token_account;
    let swap = guarded_swap(&bank.accounts, AMOUNT_IN, 1);
    bank.assert_refused(swap, GuardError::SameTokenAccount.code())
        .await;
}
