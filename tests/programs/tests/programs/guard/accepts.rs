//! Swaps that the guard lets through, and the events it emits about them.

use cpmm::{Direction, PerToken};
use sluice_testkit::{
    pool::{PoolSpec, TokenSpec, constant_fee, guarded_swap},
    svm::Svm,
};
use solana_signer::Signer;
use swap_guard_interface::{PROGRAM_ID, Swapped};

const AMOUNT_IN: u64 = 5_000_000;
const START: u64 = 1_000_000_000;

/// Swaps through the guard and checks that return data, event and balances agree.
fn assert_accepted(setup: &PoolSpec, direction: Direction) -> u64 {
    let mut svm = Svm::new();
    let pool = svm.open("pool", setup);
    let user = svm.fund("user", &pool, PerToken::new(START, START));
    let accounts = pool.swap_accounts(&user, direction);

    let executed = svm
        .send(&[guarded_swap(&accounts, AMOUNT_IN, 1)], &[&user.keypair])
        .expect("the guard accepts");

    let received = svm.balance(accounts.output_token_account) - START;
    assert!(received > 0);
    assert_eq!(svm.balance(accounts.input_token_account), START - AMOUNT_IN);
    assert_eq!(
        executed.return_data,
        (PROGRAM_ID, received.to_le_bytes().to_vec())
    );
    let guarded: Vec<_> = executed
        .events
        .iter()
        .filter_map(|event| Swapped::decode(event))
        .collect();
    let expected = Swapped {
        user: user.keypair.pubkey(),
        pool: pool.address,
        spent: AMOUNT_IN,
        received,
    };
    assert_eq!(guarded, [expected]);
    received
}

#[test]
fn accepts_swap_of_spl_tokens_in_both_directions() {
    // Twice as much of token 1: one unit of token 0 buys a little under two, fee taken.
    assert_eq!(
        assert_accepted(&PoolSpec::plain(), Direction::ZeroForOne),
        9_974_950
    );
    assert_eq!(
        assert_accepted(&PoolSpec::plain(), Direction::OneForZero),
        2_493_743
    );
}

#[test]
fn accepts_swap_of_token_2022_tokens_without_extensions() {
    let setup = PoolSpec::of(
        TokenSpec::token_2022(1_000_000_000_000),
        TokenSpec::token_2022(2_000_000_000_000),
    );
    assert_eq!(assert_accepted(&setup, Direction::ZeroForOne), 9_974_950);
}

#[test]
fn accepts_swap_into_a_token_with_transfer_fee_and_counts_what_arrived() {
    let setup = PoolSpec::of(
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(2_000_000_000_000, constant_fee(100)),
    );
    // 9,974,950 leave the vault; 99,750 of them, rounded up, are withheld.
    assert_eq!(assert_accepted(&setup, Direction::ZeroForOne), 9_875_200);
}

#[test]
fn accepts_swap_out_of_a_token_with_transfer_fee() {
    let setup = PoolSpec::of(
        TokenSpec::with_fee(1_000_000_000_000, constant_fee(100)),
        TokenSpec::spl(2_000_000_000_000),
    );
    let received = assert_accepted(&setup, Direction::ZeroForOne);
    assert!(received < 9_974_950, "the withheld input buys nothing");
}

#[test]
fn accepts_a_minimum_of_exactly_what_arrives() {
    let received = assert_accepted(&PoolSpec::plain(), Direction::ZeroForOne);
    let mut svm = Svm::new();
    let pool = svm.open("pool", &PoolSpec::plain());
    let user = svm.fund("user", &pool, PerToken::new(START, 0));
    let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
    svm.send(
        &[guarded_swap(&accounts, AMOUNT_IN, received)],
        &[&user.keypair],
    )
    .expect("the minimum is met to the unit");
    assert_eq!(svm.balance(accounts.output_token_account), received);
}
