//! What the guard costs on top of the swap it wraps.

use cpmm::{Direction, PerToken, instruction::swap_base_input};
use sluice_tests::svm::{PoolSetup, Svm};

/// The most compute units the guard may add to a swap of SPL tokens, its checks, event and return data included. A
/// wrapper that costs more would be a reason to go without.
const MAX_OVERHEAD: u64 = 2_600;

/// The largest guard binary, bytes: what is deployed is paid for by the byte.
const MAX_GUARD_LEN: usize = 14 * 1024;

#[test]
fn the_guard_adds_little_to_the_swap() {
    let units = |guarded: bool| {
        let mut svm = Svm::new();
        let pool = svm.open("pool", &PoolSetup::plain());
        let user = svm.fund("user", &pool, PerToken::new(1_000_000, 0));
        let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
        let build = if guarded {
            swap_guard_interface::swap
        } else {
            swap_base_input
        };
        svm.send(&[build(&accounts, 1_000_000, 1)], &[&user.keypair])
            .expect("the swap goes through")
            .compute_units
    };
    let (direct, guarded) = (units(false), units(true));
    let overhead = guarded - direct;
    println!("compute units: direct {direct}, guarded {guarded}, overhead {overhead}");
    assert!(overhead <= MAX_OVERHEAD, "{overhead} over {MAX_OVERHEAD}");
}

#[test]
fn the_guard_is_small() {
    let length = sluice_tests::svm::program("swap_guard").len();
    println!("swap_guard.so: {length} bytes");
    assert!(length <= MAX_GUARD_LEN, "{length} over {MAX_GUARD_LEN}");
}
