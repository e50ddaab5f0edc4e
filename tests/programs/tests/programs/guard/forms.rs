//! The six instructions on two chains at once: with the guard, and with its reference behind Anchor's dispatcher.
//!
//! Whatever a test here sends must end alike on both: accounts, result, code, return data and events.

use cpmm::{Mint, TokenAccount, TokenAccountKind, ids};
use sluice_testkit::{
    names::address,
    pool::{PoolSpec, TokenSpec},
    route::{Route, Trader},
    svm::{Executed, Refused, Svm, exchange, guard, program},
};
use solana_account::Account;
use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::{
    ExactOutArgs, PROGRAM_ID, SwapArgs, TwoHopAccounts, swap, swap_exact_out, swap_exact_out_to,
    swap_to, swap_two_hops, swap_two_hops_to,
};

/// What the trader has of each token beforehand, smallest units.
pub const START: u64 = 1_000_000_000;
/// What is offered, or the most of it.
pub const OFFERED: u64 = 5_000_000;
/// What is asked for.
pub const ASKED: u64 = 1_000_000;
/// The slot in which everything executes.
pub const NOW: u64 = 1_000;

/// One of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Swap,
    ExactOut,
    TwoHops,
    SwapTo,
    ExactOutTo,
    TwoHopsTo,
}

impl Form {
    pub const ALL: [Self; 6] = [
        Self::Swap,
        Self::ExactOut,
        Self::TwoHops,
        Self::SwapTo,
        Self::ExactOutTo,
        Self::TwoHopsTo,
    ];

    pub fn is_two_hops(self) -> bool {
        matches!(self, Self::TwoHops | Self::TwoHopsTo)
    }

    pub fn is_exact_out(self) -> bool {
        matches!(self, Self::ExactOut | Self::ExactOutTo)
    }

    pub fn has_receiver(self) -> bool {
        matches!(self, Self::SwapTo | Self::ExactOutTo | Self::TwoHopsTo)
    }

    /// Where the output account stands in the list.
    pub fn output(self) -> usize {
        if self.is_two_hops() { 7 } else { 6 }
    }

    /// Where the pool that pays the output stands in the list.
    pub fn last_pool(self) -> usize {
        if self.is_two_hops() { 12 } else { 4 }
    }

    /// The instruction with these amounts, into an account of `receiver` where the form states one.
    pub fn build(
        self,
        accounts: &TwoHopAccounts,
        [spent, received, expiry_slot]: [u64; 3],
        receiver: &Pubkey,
    ) -> Instruction {
        let exact_in = SwapArgs {
            amount_in: spent,
            minimum_out: received,
            expiry_slot,
        };
        let exact_out = ExactOutArgs {
            maximum_in: spent,
            amount_out: received,
            expiry_slot,
        };
        let first = &accounts.first;
        match self {
            Self::Swap => swap(first, exact_in),
            Self::ExactOut => swap_exact_out(first, exact_out),
            Self::TwoHops => swap_two_hops(accounts, exact_in),
            Self::SwapTo => swap_to(first, exact_in, receiver),
            Self::ExactOutTo => swap_exact_out_to(first, exact_out, receiver),
            Self::TwoHopsTo => swap_two_hops_to(accounts, exact_in, receiver),
        }
    }
}

/// Two chains with the same accounts.
pub struct Twins {
    guard: Svm,
    reference: Svm,
    pub route: Route,
    pub trader: Trader,
}

/// How a transaction ended.
#[derive(Debug, PartialEq)]
pub struct Ended {
    /// The error and who raised it, as text; nothing for a success.
    pub refused: Option<String>,
    pub return_data: (Pubkey, Vec<u8>),
    pub events: Vec<Vec<u8>>,
}

impl Twins {
    pub fn set() -> Self {
        Self::of(&PoolSpec::plain(), &PoolSpec::plain())
    }

    pub fn of(first: &PoolSpec, second: &PoolSpec) -> Self {
        Self::with_exchange(&exchange(), first, second)
    }

    /// On chains with this program as the exchange.
    pub fn with_exchange(exchange: &[u8], first: &PoolSpec, second: &PoolSpec) -> Self {
        let programs = [guard(), program("guard_reference")];
        let [mut guard, mut reference] = programs.map(|guard| {
            let mut svm = Svm::with_programs(&guard, exchange);
            svm.set_slot(NOW);
            svm
        });
        let set = |svm: &mut Svm| {
            let route = Route::open(svm, "route", first, second);
            let trader = route.fund(svm, "trader", [START, START, START]);
            (route, trader)
        };
        set(&mut reference);
        let (route, trader) = set(&mut guard);
        Self {
            guard,
            reference,
            route,
            trader,
        }
    }

    /// Places an account on both.
    pub fn place(&mut self, address: Pubkey, owner: Pubkey, data: &[u8]) {
        for svm in [&mut self.guard, &mut self.reference] {
            svm.place(address, owner, data.to_vec());
        }
    }

    /// Places an account with these lamports on both.
    fn place_with(&mut self, address: Pubkey, owner: Pubkey, data: &[u8], lamports: u64) {
        for svm in [&mut self.guard, &mut self.reference] {
            let account = Account {
                lamports,
                owner,
                data: data.to_vec(),
                ..Account::default()
            };
            svm.set(address, account);
        }
    }

    /// Makes what the trader owns be again as at first, and the pools too.
    pub fn reset(&mut self, first: &PoolSpec, second: &PoolSpec) {
        for svm in [&mut self.guard, &mut self.reference] {
            let route = Route::open(svm, "route", first, second);
            route.fund(svm, "trader", [START, START, START]);
        }
    }

    pub fn balance(&self, account: Pubkey) -> u64 {
        self.guard.balance(account)
    }

    pub fn account(&self, account: Pubkey) -> Account {
        self.guard.account(account)
    }

    /// Input, middle and output account of the trader in two hops.
    pub fn own(&self) -> [Pubkey; 3] {
        let TwoHopAccounts { first, second } = &self.trader.accounts;
        [
            first.input_token_account,
            first.output_token_account,
            second.output_token_account,
        ]
    }

    /// The accepted instruction of this form.
    pub fn accepted(&self, form: Form) -> Instruction {
        let terms = [OFFERED, ASKED, NOW];
        form.build(&self.trader.accounts, terms, &self.trader.keypair.pubkey())
    }

    /// Sends the instructions to both, and returns how the guard's ended.
    pub fn send(&mut self, instructions: &[Instruction]) -> Result<Executed, Refused> {
        let named: Vec<Pubkey> = instructions
            .iter()
            .flat_map(|instruction| &instruction.accounts)
            .map(|meta| meta.pubkey)
            .collect();
        let is_signed = instructions
            .iter()
            .flat_map(|instruction| &instruction.accounts)
            .any(|meta| meta.is_signer && meta.pubkey == self.trader.keypair.pubkey());
        let keypair = &self.trader.keypair;
        let signers = if is_signed { vec![keypair] } else { vec![] };
        let ours = self.guard.send(instructions, &signers);
        let theirs = self.reference.send(instructions, &signers);
        assert_eq!(ended(&ours), ended(&theirs), "{instructions:?}");
        for account in named {
            let ours = self.guard.account(account);
            assert_eq!(ours, self.reference.account(account), "{account}");
        }
        ours
    }

    /// Sends an instruction that must fail and move nothing.
    pub fn refused(&mut self, instruction: Instruction) -> Refused {
        let named: Vec<_> = instruction
            .accounts
            .iter()
            .map(|meta| meta.pubkey)
            .collect();
        let state = |svm: &Svm| -> Vec<Account> {
            let own = named.iter().map(|account| svm.account(*account));
            own.collect()
        };
        let before = state(&self.guard);
        let sent = self.send(std::slice::from_ref(&instruction));
        let Err(refused) = sent else {
            panic!("accepted {instruction:?}");
        };
        assert_eq!(state(&self.guard), before, "something moved");
        refused
    }

    /// Sends an instruction that must fail with this code, raised by this program.
    pub fn assert_refused(&mut self, instruction: Instruction, by: Pubkey, code: u32) {
        let refused = self.refused(instruction);
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (by, code),
            "{refused:?}"
        );
    }

    /// A copy of one of the trader's accounts at another address, of `owner`'s program, changed by `change`.
    pub fn forged(
        &mut self,
        account: Pubkey,
        owner: Option<Pubkey>,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Pubkey {
        let Account {
            mut data,
            owner: program,
            ..
        } = self.guard.account(account);
        change(&mut data);
        let forged = address("forged account");
        self.place(forged, owner.unwrap_or(program), &data);
        forged
    }
}

fn ended(sent: &Result<Executed, Refused>) -> Ended {
    match sent {
        Ok(executed) => Ended {
            refused: None,
            return_data: executed.return_data.clone(),
            events: executed.events.clone(),
        },
        Err(refused) => Ended {
            refused: Some(format!(
                "{} {:?} by {}",
                refused.instruction,
                refused.error,
                refused.raised_by()
            )),
            return_data: (Pubkey::default(), Vec::new()),
            events: Vec::new(),
        },
    }
}

/// The instruction with another account in one place.
pub fn with(mut instruction: Instruction, at: usize, account: Pubkey) -> Instruction {
    instruction.accounts[at].pubkey = account;
    instruction
}

/// The instruction with one account read-only.
pub fn readonly(mut instruction: Instruction, at: usize) -> Instruction {
    instruction.accounts[at].is_writable = false;
    instruction
}

#[test]
fn every_form_pays_what_it_says_and_reports_both_amounts() {
    let fee = sluice_testkit::pool::constant_fee(100);
    for middle in [
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(1_000_000_000_000, fee),
    ] {
        let first = PoolSpec::of(TokenSpec::token_2022(1_000_000_000_000), middle);
        for form in Form::ALL {
            let mut twins = Twins::of(&first, &PoolSpec::plain());
            let instruction = twins.accepted(form);
            let output = instruction.accounts[form.output()].pubkey;
            let pool = instruction.accounts[form.last_pool()].pubkey;
            let executed = twins.send(&[instruction]).expect("accepted");
            let [input, middle, _] = twins.own();
            let spent = START - twins.balance(input);
            let received = twins.balance(output) - START;
            let answer = if form.is_exact_out() { spent } else { received };
            assert_eq!(
                executed.return_data,
                (PROGRAM_ID, answer.to_le_bytes().to_vec()),
                "{form:?}"
            );
            let decode = |event: &Vec<u8>| swap_guard_interface::Swapped::decode(event);
            let events: Vec<_> = executed.events.iter().filter_map(decode).collect();
            let expected = swap_guard_interface::Swapped {
                user: twins.trader.keypair.pubkey(),
                pool,
                spent,
                received,
            };
            assert_eq!(events, [expected], "{form:?}");
            if form.is_exact_out() {
                assert_eq!(received, ASKED, "{form:?}");
            } else {
                assert_eq!(spent, OFFERED, "{form:?}");
            }
            if form.is_two_hops() {
                assert_eq!(twins.balance(middle), START, "dust in the middle");
            }
        }
    }
}

#[test]
#[expect(
    deprecated,
    reason = "the framework answers with the old name of `MissingAccount`"
)]
fn no_account_may_be_missing() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let mut instruction = twins.accepted(form);
        while instruction.accounts.pop().is_some() {
            let refused = twins.refused(instruction.clone());
            assert_eq!(refused.error, InstructionError::NotEnoughAccountKeys);
        }
    }
}

/// Wrapped SOL between two tokens, as most routes have it: its account keeps its rent and what it held.
#[test]
fn two_hops_pass_through_wrapped_sol() {
    const RESERVE: u64 = 2_039_280;
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        let mut twins = Twins::set();
        let me = twins.trader.keypair.pubkey();
        twins.place(
            ids::WRAPPED_SOL,
            ids::SPL_TOKEN,
            &Mint::plain(9, 0).encode(&Pubkey::default()),
        );
        let Route { first, second } = &mut twins.route;
        first.state.mints.token_1 = ids::WRAPPED_SOL;
        second.state.mints.token_0 = ids::WRAPPED_SOL;
        let states = [&first, &second].map(|pool| (pool.address, pool.state.encode()));
        let wrapped = [
            (
                first.state.vaults.token_1,
                ids::AUTHORITY,
                2_000_000_000_000,
            ),
            (
                second.state.vaults.token_0,
                ids::AUTHORITY,
                1_000_000_000_000,
            ),
            (twins.own()[1], me, START),
        ];
        for (pool, state) in states {
            twins.place(pool, ids::PROGRAM_ID, &state);
        }
        for (account, owner, amount) in wrapped {
            let mint = ids::WRAPPED_SOL;
            let data = TokenAccount {
                mint,
                owner,
                amount,
                frozen: false,
            };
            let data = data.encode(TokenAccountKind::Native { reserve: RESERVE });
            twins.place_with(account, ids::SPL_TOKEN, &data, RESERVE + amount);
        }
        let instruction = with(twins.accepted(form), 20, ids::WRAPPED_SOL);
        let [input, middle, output] = twins.own();
        twins.send(&[instruction]).expect("accepted");
        assert_eq!(twins.balance(input), START - OFFERED);
        assert!(twins.balance(output) >= START + ASKED);
        assert_eq!(twins.balance(middle), START);
        assert_eq!(twins.account(middle).lamports, RESERVE + START);
    }
}

#[test]
fn further_accounts_change_nothing() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let mut instruction = twins.accepted(form);
        let again = instruction.accounts[4].clone();
        let stranger = AccountMeta::new_readonly(address("stranger"), false);
        instruction.accounts.extend([again, stranger]);
        twins.send(&[instruction]).expect("accepted");
    }
}

#[test]
fn a_guard_at_another_address_serves_nothing() {
    let elsewhere = address("elsewhere");
    let mut twins = Twins::set();
    twins.guard.load(elsewhere, &guard());
    twins.reference.load(elsewhere, &program("guard_reference"));
    for form in Form::ALL {
        let mut instruction = twins.accepted(form);
        instruction.program_id = elsewhere;
        let refused = twins.refused(instruction);
        assert_eq!(refused.error, InstructionError::IncorrectProgramId);
    }
}
