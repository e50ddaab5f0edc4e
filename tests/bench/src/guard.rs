//! Cost of the guard: compute units, binary size and heap use, measured on the built programs.
//!
//! Every figure is deterministic: it changes with the programs' code and their compiler, and with nothing else.

use cpmm::{Direction, PerToken, instruction::swap_base_input};
use sluice_testkit::{
    figure::Figure,
    pool::{PoolSpec, guarded_swap},
    svm::{Executed, Svm, program},
};
use solana_instruction::Instruction;

/// The most that the guard may add to a swap of SPL tokens with all its checks, event and return data, compute units. A
/// wrapper that costs more would be a reason to go without.
const MAX_OVERHEAD: u64 = 2_600;

/// The same without the event, and without reading the slot where only the event needs it: compute units.
const MAX_SILENT_OVERHEAD: u64 = 2_100;

/// The largest guard binary, bytes: what is deployed is paid for by the byte.
const MAX_GUARD_LEN: u64 = 14 * 1024;

/// Amounts of the measured swap, smallest units.
const AMOUNT_IN: u64 = 1_000_000;

/// Measures the guard.
///
/// # Panics
/// When a program is not built or a swap fails.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let guard = program("swap_guard");
    let direct = execute(&guard, swap_base_input).compute_units;
    let overhead = |guard: &[u8]| execute(guard, guarded_swap).compute_units - direct;
    let length = u64::try_from(guard.len()).expect("programs are small");
    const UNITS: &str = "compute units";
    vec![
        Figure::exact(
            "guarded minus direct swap",
            overhead(&guard),
            UNITS,
            MAX_OVERHEAD,
        ),
        Figure::exact(
            "guarded minus direct swap, without the event",
            overhead(&program("guard_silent")),
            UNITS,
            MAX_SILENT_OVERHEAD,
        ),
        Figure::exact("swap_guard.so", length, "bytes", MAX_GUARD_LEN),
        Figure::exact(
            "heap allocations of a swap",
            heap_allocations(),
            "allocations",
            0,
        ),
    ]
}

/// One swap between SPL tokens, with this program as the guard. The exchange is always the stand-in, because a figure
/// that is compared must not depend on what else is on the machine.
fn execute(
    guard: &[u8],
    build: impl Fn(&cpmm::instruction::SwapAccounts, u64, u64) -> Instruction,
) -> Executed {
    let mut svm = Svm::with_programs(guard, &program("local_cpmm"));
    let pool = svm.open("pool", &PoolSpec::plain());
    let user = svm.fund("user", &pool, PerToken::new(AMOUNT_IN, 0));
    let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
    svm.send(&[build(&accounts, AMOUNT_IN, 1)], &[&user.keypair])
        .expect("the swap goes through")
}

/// Asks the guard that counts: see `programs/bench-guard-heap`.
fn heap_allocations() -> u64 {
    let executed = execute(&program("guard_heap"), guarded_swap);
    let logged = executed.events.last().expect("it logs its counts");
    let (counts, _) = logged.as_chunks::<8>();
    let [before, after] = counts else {
        panic!("{} bytes are not two counts", logged.len());
    };
    let [before, after] = [before, after].map(|count| u64::from_le_bytes(*count));
    assert_eq!(before, 1, "the allocation made on purpose was not counted");
    after - before
}
