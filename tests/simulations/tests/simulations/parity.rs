//! Short run of random swaps, predicted by the arithmetic and executed by the exchange's binary.

use sluice_simulations::parity::{Verdict, compare};
use sluice_testkit::{
    random_swaps::{RandomExactOutSwaps, RandomSwaps, Swap},
    svm::Svm,
};

/// How many swaps are compared.
const CASES: usize = 3_000;

/// Any number; always the same, so that a failure can be looked at again.
const SEED: u64 = 1;

fn assert_parity(swaps: impl Iterator<Item = Swap>) {
    let mut svm = Svm::new();
    let mut paid = 0;
    for (index, swap) in swaps.take(CASES).enumerate() {
        match compare(&swap, &mut svm) {
            Ok(Verdict::Paid) => paid += 1,
            Ok(Verdict::Refused) => {}
            Err(mismatch) => panic!("swap {index} of seed {SEED}: {mismatch}"),
        }
    }
    // A generator that only makes refusals would compare nothing of value.
    assert!(paid > CASES / 3, "only {paid} of {CASES} swaps were paid");
}

#[test]
fn a_quote_equals_what_the_chain_pays_or_both_refuse_alike() {
    assert_parity(RandomSwaps::from_seed(SEED));
}

#[test]
fn a_quote_of_an_exact_output_equals_what_the_chain_takes_or_both_refuse_alike() {
    assert_parity(RandomExactOutSwaps::from_seed(SEED));
}
