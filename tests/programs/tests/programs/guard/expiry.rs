//! Expiry: the slot after which a swap must not execute any more.

use std::slice;

use solana_instruction::Instruction;
use swap_guard_interface::{GuardError, NO_EXPIRY, SwapArgs, swap};

use super::accepted_swap::{AMOUNT_IN, AcceptedSwap};

/// The slot in which the swaps execute.
const NOW: u64 = 1_000;

fn swap_case() -> AcceptedSwap {
    let mut swap_case = AcceptedSwap::set();
    swap_case.svm.set_slot(NOW);
    swap_case
}

fn swap_until(swap_case: &AcceptedSwap, expiry_slot: u64) -> Instruction {
    let args = SwapArgs {
        amount_in: AMOUNT_IN,
        minimum_out: 1,
        expiry_slot,
    };
    swap(&swap_case.accounts, args)
}

#[test]
fn accepts_in_the_expiry_slot_before_it_and_without_one() {
    for expiry_slot in [NOW, NOW + 1, u64::MAX, NO_EXPIRY] {
        let mut swap_case = swap_case();
        let instruction = swap_until(&swap_case, expiry_slot);
        let sent = swap_case
            .svm
            .send(&[instruction], &[&swap_case.user.keypair]);
        assert!(sent.is_ok(), "expiry {expiry_slot}: {:?}", sent.err());
    }
}

#[test]
fn rejects_after_the_expiry_slot() {
    for expiry_slot in [1, NOW - 1] {
        let mut swap_case = swap_case();
        let instruction = swap_until(&swap_case, expiry_slot);
        swap_case.assert_guard_refuses(instruction, GuardError::Expired);
    }
}

#[test]
fn a_swap_is_good_up_to_its_expiry_slot_and_not_after() {
    const LAST: u64 = NOW + 500;
    let mut swap_case = swap_case();
    let instruction = swap_until(&swap_case, LAST);
    for slot in [NOW, LAST] {
        swap_case.svm.set_slot(slot);
        let sent = swap_case
            .svm
            .send(slice::from_ref(&instruction), &[&swap_case.user.keypair]);
        assert!(sent.is_ok(), "slot {slot}: {:?}", sent.err());
    }
    swap_case.svm.set_slot(LAST + 1);
    swap_case.assert_guard_refuses(instruction, GuardError::Expired);
}

#[test]
fn rejects_an_expired_swap_before_it_calls_anything() {
    /// What an expired swap may cost, compute units: reading fourteen accounts and the clock, and no more.
    const CHEAP: u64 = 1_000;
    let mut swap_case = swap_case();
    let instruction = swap_until(&swap_case, NOW - 1);
    let sent = swap_case
        .svm
        .send(&[instruction], &[&swap_case.user.keypair]);
    let Err(refused) = sent else {
        panic!("accepted after its expiry");
    };
    assert_eq!(refused.code(), GuardError::Expired.code());
    let is_call = |line: &&String| line.ends_with("invoke [2]");
    assert_eq!(refused.logs.iter().find(is_call), None);
    assert!(
        refused.compute_units <= CHEAP,
        "{} compute units",
        refused.compute_units
    );
}
