//! Short run of random swaps, predicted by the arithmetic and executed by the exchange's binary.

use sluice_simulations::parity::{Verdict, compare};
use sluice_testkit::{random_swaps::RandomSwaps, svm::Svm};

/// How many swaps are compared.
const CASES: usize = 3_000;

/// Any number; always the same, so that a failure can be looked at again.
const SEED: u64 = 1;

#[test]
fn a_quote_equals_what_the_chain_pays_or_both_refuse_alike() {
    let mut svm = Svm::new();
    let mut paid = 0;
    for (index, swap) in RandomSwaps::from_seed(SEED).take(CASES).enumerate() {
        match compare(&swap, &mut svm) {
            Ok(Verdict::Paid) => paid += 1,
            Ok(Verdict::Refused) => {}
            Err(mismatch) => panic!("swap {index} of seed {SEED}: {mismatch}"),
        }
    }
    // A generator that only makes refusals would compare nothing of value.
    assert!(paid > CASES / 3, "only {paid} of {CASES} swaps were paid");
}
