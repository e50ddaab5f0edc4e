//! Parity: compares random swaps, predicted and executed; see `cargo xtask parity`.

use std::process::ExitCode;

use clap::Parser;
use sluice_simulations::parity::{Comparable, Verdict, compare};
use sluice_testkit::{
    random_routes::{RandomRoutedReturns, RandomRoutes},
    random_swaps::{RandomExactOutSwaps, RandomReturns, RandomSwaps},
    svm::Svm,
};

/// Most mismatches that are printed in full: one is enough to find a fault, a few show its pattern.
const SHOWN: usize = 5;

/// Random swaps through the exchange's binary, against the arithmetic.
#[derive(Parser)]
struct Arguments {
    /// How many swaps of each kind to compare.
    #[arg(long, default_value_t = 100_000)]
    cases: usize,
    /// Which row of swaps; the same seed gives the same row.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let Arguments { cases, seed } = Arguments::parse();
    let mismatches = [
        compare_all(
            "swaps of an exact input",
            RandomSwaps::from_seed(seed).take(cases),
        ),
        compare_all(
            "swaps for an exact output",
            RandomExactOutSwaps::from_seed(seed).take(cases),
        ),
        compare_all(
            "swaps of the input that an exact output costs",
            RandomReturns::from_seed(seed).take(cases),
        ),
        compare_all(
            "swaps through two pools",
            RandomRoutes::from_seed(seed).take(cases),
        ),
        compare_all(
            "swaps through two pools of the input that an exact output costs",
            RandomRoutedReturns::from_seed(seed).take(cases),
        ),
    ];
    if mismatches.iter().all(|mismatches| *mismatches == 0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Compares swaps of one kind, prints how they ended, and returns how many ended otherwise than predicted.
fn compare_all<S: Comparable>(kind: &str, swaps: impl Iterator<Item = S>) -> usize {
    let mut svm = Svm::new();
    let (mut paid, mut refused, mut mismatches) = (0_usize, 0_usize, 0_usize);
    for (index, swap) in swaps.enumerate() {
        match compare(&swap, &mut svm) {
            Ok(Verdict::Paid) => paid += 1,
            Ok(Verdict::Refused) => refused += 1,
            Err(mismatch) => {
                mismatches += 1;
                if mismatches <= SHOWN {
                    println!("{kind}, number {index}: {mismatch}");
                }
            }
        }
    }
    println!("{kind}: {paid} paid alike, {refused} refused alike, {mismatches} mismatches");
    mismatches
}
