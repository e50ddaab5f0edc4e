//! Programs that swap through the guard: by its `cpi` feature, and by its committed IDL.

use cpmm::{Direction, PerToken, instruction::SwapAccounts};
use sha2::{Digest, Sha256};
use sluice_testkit::{
    names::address,
    pool::{PoolSpec, guarded_swap},
    svm::{Refused, Svm, program},
};
use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID, Swapped};

const AMOUNT_IN: u64 = 5_000_000;
const START: u64 = 1_000_000_000;
/// What the pool pays for it.
const RECEIVED: u64 = 9_974_950;

/// The programs, each with the name that its address is the hash of.
const CALLERS: [(&str, &str); 2] = [
    ("cpi_caller", "cpi caller"),
    ("anchor_1_caller", "anchor 1 caller"),
];

/// Where the holder stands in the caller's list.
const HOLDER: usize = 1;

struct ProgramSwap {
    svm: Svm,
    caller: Pubkey,
    accounts: SwapAccounts,
}

impl ProgramSwap {
    /// The caller's derived address holds tokens of a pool.
    fn set((file, name): (&str, &str)) -> Self {
        let mut svm = Svm::new();
        let caller = address(name);
        svm.load(caller, &program(file));
        let pool = svm.open("pool", &PoolSpec::plain());
        let (holder, _) = Pubkey::find_program_address(&[b"holder"], &caller);
        let mut account = |side| pool.token_account(&mut svm, "holder", side, holder, START);
        let held = PerToken::new(
            account(Direction::ZeroForOne),
            account(Direction::OneForZero),
        );
        let accounts = SwapAccounts::of_pool(
            pool.address,
            &pool.state,
            Direction::ZeroForOne,
            holder,
            held.token_0,
            held.token_1,
        );
        Self {
            svm,
            caller,
            accounts,
        }
    }

    /// The guard, then the guard's own accounts and arguments. Nobody signs, the holder least of all.
    fn swap_held(&self, minimum_out: u64) -> Instruction {
        let guarded = guarded_swap(&self.accounts, AMOUNT_IN, minimum_out);
        let mut accounts = vec![AccountMeta::new_readonly(PROGRAM_ID, false)];
        accounts.extend(guarded.accounts);
        accounts[HOLDER].is_signer = false;
        let mut data = Sha256::digest(b"global:swap_held")[..8].to_vec();
        data.extend_from_slice(&guarded.data[8..]);
        Instruction {
            program_id: self.caller,
            accounts,
            data,
        }
    }

    /// Sends an instruction that must fail and move nothing.
    fn refused(&mut self, instruction: Instruction) -> Refused {
        let Err(refused) = self.svm.send(&[instruction], &[]) else {
            panic!("the swap was accepted");
        };
        assert_eq!(self.balances(), [START, START]);
        refused
    }

    fn balances(&self) -> [u64; 2] {
        [
            self.svm.balance(self.accounts.input_token_account),
            self.svm.balance(self.accounts.output_token_account),
        ]
    }
}

#[test]
fn programs_swap_what_they_hold_and_read_what_they_received() {
    for caller in CALLERS {
        let mut program_swap = ProgramSwap::set(caller);
        let swap = program_swap.swap_held(RECEIVED);
        let executed = program_swap
            .svm
            .send(&[swap], &[])
            .expect("the guard accepts");
        // The caller answers with what it read, under its own name.
        assert_eq!(
            executed.return_data,
            (program_swap.caller, RECEIVED.to_le_bytes().to_vec())
        );
        assert_eq!(
            program_swap.balances(),
            [START - AMOUNT_IN, START + RECEIVED]
        );
        let mut events = executed.events.iter();
        let event = events.find_map(|event| Swapped::decode(event));
        assert_eq!(event.expect("logged").user, program_swap.accounts.payer);
    }
}

#[test]
fn rejects_too_little_for_programs_as_for_wallets() {
    for caller in CALLERS {
        let mut program_swap = ProgramSwap::set(caller);
        let swap = program_swap.swap_held(RECEIVED + 1);
        let refused = program_swap.refused(swap);
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (PROGRAM_ID, GuardError::SlippageExceeded.code())
        );
    }
}

#[test]
fn rejects_the_holder_without_its_program() {
    let mut program_swap = ProgramSwap::set(CALLERS[0]);
    let mut unsigned = guarded_swap(&program_swap.accounts, AMOUNT_IN, 1);
    unsigned.accounts[0].is_signer = false;
    let refused = program_swap.refused(unsigned);
    assert_eq!(refused.raised_by(), PROGRAM_ID);
    assert_eq!(refused.error, InstructionError::MissingRequiredSignature);
}
