//! Programs that swap through the guard: by its `cpi` feature, and by its committed IDL.

use sha2::{Digest, Sha256};
use sluice_testkit::{
    names::address,
    pool::{PoolSpec, TokenSpec, constant_fee},
    route::Route,
    svm::{Refused, Svm, program},
};
use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID, Swapped, TwoHopAccounts};

use super::forms::{ASKED, Form, OFFERED, START, with};

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
    holder: Pubkey,
    accounts: TwoHopAccounts,
}

impl ProgramSwap {
    /// The caller's derived address holds tokens of two pools, of which the one in the middle has a transfer fee.
    fn set((file, name): (&str, &str)) -> Self {
        let mut svm = Svm::new();
        let caller = address(name);
        svm.load(caller, &program(file));
        let middle = TokenSpec::with_fee(2_000_000_000_000, constant_fee(100));
        let first = PoolSpec::of(TokenSpec::spl(1_000_000_000_000), middle);
        let route = Route::open(&mut svm, "route", &first, &PoolSpec::plain());
        let (holder, _) = Pubkey::find_program_address(&[b"holder"], &caller);
        let accounts = route.accounts(&mut svm, "holder", holder, [START; 3]);
        Self {
            svm,
            caller,
            holder,
            accounts,
        }
    }

    /// The guard's own instruction.
    fn guarded(&self, form: Form, asked: u64, receiver: &Pubkey) -> Instruction {
        form.build(&self.accounts, [OFFERED, asked, 0], receiver)
    }

    /// The guard, then the guard's own accounts and arguments. No account signs, the holder least of all.
    fn held(&self, form: Form, guarded: Instruction) -> Instruction {
        let mut accounts = vec![AccountMeta::new_readonly(PROGRAM_ID, false)];
        accounts.extend(guarded.accounts);
        accounts[HOLDER].is_signer = false;
        let name = match form {
            Form::Swap => "swap_held",
            Form::ExactOut => "swap_exact_out_held",
            Form::TwoHops => "swap_two_hops_held",
            Form::SwapTo => "swap_held_to",
            Form::ExactOutTo => "swap_exact_out_held_to",
            Form::TwoHopsTo => "swap_two_hops_held_to",
        };
        let mut data = Sha256::digest(format!("global:{name}"))[..8].to_vec();
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
        assert_eq!(self.balances(), [START; 3]);
        refused
    }

    /// Input, middle, output.
    fn balances(&self) -> [u64; 3] {
        let TwoHopAccounts { first, second } = &self.accounts;
        [
            first.input_token_account,
            first.output_token_account,
            second.output_token_account,
        ]
        .map(|account| self.svm.balance(account))
    }

    /// What left the input account and what reached that which this form pays.
    fn moved(&self, form: Form) -> [u64; 2] {
        let [input, middle, output] = self.balances();
        let paid = if form.is_two_hops() {
            assert_eq!(middle, START, "the middle account was left alone");
            output
        } else {
            middle
        };
        [START - input, paid - START]
    }
}

#[test]
fn programs_swap_what_they_hold_and_read_what_was_received_or_spent() {
    for caller in CALLERS {
        for form in Form::ALL {
            let mut swap = ProgramSwap::set(caller);
            let guarded = swap.guarded(form, ASKED, &swap.holder);
            let executed = swap
                .svm
                .send(&[swap.held(form, guarded)], &[])
                .unwrap_or_else(|refused| panic!("{caller:?}, {form:?}: {refused:?}"));
            let [spent, received] = swap.moved(form);
            assert!(spent > 0 && received >= ASKED, "{form:?}");
            // The caller answers with what it read, under its own name.
            let answer = if form.is_exact_out() { spent } else { received };
            assert_eq!(
                executed.return_data,
                (swap.caller, answer.to_le_bytes().to_vec()),
                "{form:?}"
            );
            let mut events = executed.events.iter();
            let event = events.find_map(|event| Swapped::decode(event));
            let event = event.expect("logged");
            assert_eq!(event.user, swap.holder);
            assert_eq!([event.spent, event.received], [spent, received]);
        }
    }
}

#[test]
fn programs_pay_a_receiver_and_no_other() {
    let receiver = address("receiver");
    for caller in CALLERS {
        for form in Form::ALL.into_iter().filter(|form| form.has_receiver()) {
            let mut swap = ProgramSwap::set(caller);
            let guarded = swap.guarded(form, ASKED, &receiver);
            let own = guarded.accounts[form.output()].pubkey;
            let refused = swap.refused(swap.held(form, guarded.clone()));
            assert_eq!(
                (refused.raised_by(), refused.code()),
                (PROGRAM_ID, GuardError::OutputOwnerMismatch.code()),
                "{form:?}"
            );
            let mut theirs = swap.svm.account(own);
            theirs.data[32..64].copy_from_slice(receiver.as_ref());
            let account = address("receiver's account");
            swap.svm.set(account, theirs);
            let guarded = with(guarded, form.output(), account);
            swap.svm
                .send(&[swap.held(form, guarded)], &[])
                .unwrap_or_else(|refused| panic!("{caller:?}, {form:?}: {refused:?}"));
            assert!(swap.svm.balance(account) >= START + ASKED, "{form:?}");
            assert_eq!(swap.svm.balance(own), START);
        }
    }
}

#[test]
fn rejects_too_little_for_programs_as_for_wallets() {
    for caller in CALLERS {
        for form in Form::ALL.into_iter().filter(|form| !form.is_exact_out()) {
            let mut swap = ProgramSwap::set(caller);
            let guarded = swap.guarded(form, ASKED, &swap.holder);
            swap.svm
                .send(&[swap.held(form, guarded)], &[])
                .expect("accepted");
            let [_, received] = swap.moved(form);
            let mut swap = ProgramSwap::set(caller);
            let guarded = swap.guarded(form, received + 1, &swap.holder);
            let refused = swap.refused(swap.held(form, guarded));
            assert_eq!(
                (refused.raised_by(), refused.code()),
                (PROGRAM_ID, GuardError::SlippageExceeded.code())
            );
        }
    }
}

#[test]
fn rejects_the_holder_without_its_program() {
    for form in Form::ALL {
        let mut swap = ProgramSwap::set(CALLERS[0]);
        let mut unsigned = swap.guarded(form, ASKED, &swap.holder);
        unsigned.accounts[0].is_signer = false;
        let refused = swap.refused(unsigned);
        assert_eq!(refused.raised_by(), PROGRAM_ID);
        assert_eq!(refused.error, InstructionError::MissingRequiredSignature);
    }
}
