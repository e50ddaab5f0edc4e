//! Three thousand swaps of the official exchange, executed again from their whole input state.

use cpmm::fixtures::{Outcome, executed_swaps};
use sluice_testkit::{random_swaps::Swap, svm::Svm};

#[test]
fn the_exchange_does_what_the_official_program_did() {
    let swaps = executed_swaps();
    assert_eq!(swaps.len(), 3_000);
    let mut svm = Svm::new();
    for (index, swap) in swaps.iter().enumerate() {
        let outcome = Swap::from(swap)
            .execute(&mut svm)
            .map(|traded| traded.outcome)
            .unwrap_or_else(|refused| Outcome::ErrorCode(refused.code()));
        assert_eq!(outcome, swap.result, "swap {index}");
    }
}
