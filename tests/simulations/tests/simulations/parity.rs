//! Short run of random swaps, predicted by the arithmetic and executed by the exchange's binary.

use sluice_simulations::parity::{Comparable, Verdict, compare};
use sluice_testkit::{
    random_routes::{RandomRoutedReturns, RandomRoutes},
    random_swaps::{RandomExactOutSwaps, RandomReturns, RandomSwaps},
    svm::Svm,
};

/// How many swaps of each of the five kinds are compared: 20,000 together.
const CASES: usize = 4_000;

/// Any number; always the same, so that a failure can be looked at again.
const SEED: u64 = 1;

/// Compares, and returns how many were paid.
fn paid_alike<S: Comparable>(swaps: impl Iterator<Item = S>) -> usize {
    let mut svm = Svm::new();
    let mut paid = 0;
    for (index, swap) in swaps.take(CASES).enumerate() {
        match compare(&swap, &mut svm) {
            Ok(Verdict::Paid) => paid += 1,
            Ok(Verdict::Refused) => {}
            Err(mismatch) => panic!("swap {index} of seed {SEED}: {mismatch}"),
        }
    }
    paid
}

/// A generator that only makes refusals would compare nothing of value.
fn assert_parity<S: Comparable>(swaps: impl Iterator<Item = S>, least_paid: usize) {
    let paid = paid_alike(swaps);
    assert!(paid > least_paid, "only {paid} of {CASES} swaps were paid");
}

#[test]
fn a_quote_equals_what_the_chain_pays_or_both_refuse_alike() {
    assert_parity(RandomSwaps::from_seed(SEED), CASES / 3);
}

#[test]
fn a_quote_of_an_exact_output_equals_what_the_chain_takes_or_both_refuse_alike() {
    assert_parity(RandomExactOutSwaps::from_seed(SEED), CASES / 3);
}

#[test]
fn what_an_exact_output_costs_buys_it_as_an_exact_input_too() {
    assert_eq!(paid_alike(RandomReturns::from_seed(SEED)), CASES);
}

#[test]
fn a_quote_of_two_hops_equals_what_the_chain_pays_or_both_refuse_alike() {
    assert_parity(RandomRoutes::from_seed(SEED), CASES / 2);
}

#[test]
fn what_an_exact_output_costs_through_two_pools_buys_it() {
    assert_eq!(paid_alike(RandomRoutedReturns::from_seed(SEED)), CASES);
}
