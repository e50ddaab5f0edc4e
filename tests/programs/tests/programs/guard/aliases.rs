//! Instructions with one account in two places of the list.

use sluice_testkit::svm::Refused;
use solana_instruction::AccountMeta;
use swap_guard_interface::{GuardError, PROGRAM_ID};

use super::accepted_swap::{AcceptedSwap, position};

/// The framework's code for a writable account that occurs twice.
const DUPLICATE_WRITABLE: u32 = 2040;

const WRITABLE: [usize; 6] = [
    position::POOL,
    position::INPUT_ACCOUNT,
    position::OUTPUT_ACCOUNT,
    position::INPUT_VAULT,
    position::OUTPUT_VAULT,
    position::OBSERVATION,
];

/// The accepted swap with the account of one place in another one too.
fn swap_with_alias(first: usize, second: usize) -> Refused {
    let mut swap_case = AcceptedSwap::set();
    let mut instruction = swap_case.swap();
    let account = instruction.accounts[first].pubkey;
    instruction.accounts[second] = AccountMeta::new(account, false);
    swap_case.refused(instruction)
}

#[test]
fn rejects_every_pair_of_writable_accounts_that_are_one() {
    for (place, &second) in WRITABLE.iter().enumerate() {
        for &first in &WRITABLE[..place] {
            let code = match (first, second) {
                (position::INPUT_ACCOUNT, position::OUTPUT_ACCOUNT) => {
                    GuardError::SameTokenAccount.code()
                }
                _ => DUPLICATE_WRITABLE,
            };
            let refused = swap_with_alias(first, second);
            assert_eq!(
                (refused.raised_by(), refused.code()),
                (PROGRAM_ID, code),
                "account {first} as account {second}: {refused:?}"
            );
        }
    }
}
