//! Guard before an exchange that lies: it measures, so no lie about amounts passes.

use cpmm::{Direction, PerToken, ids, instruction::SwapAccounts};
use sluice_testkit::{
    names::{address, keypair},
    pool::{PoolSpec, guarded_swap},
    svm::{Refused, Svm, program},
};
use solana_instruction::error::InstructionError;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::{GuardError, PROGRAM_ID};

const AMOUNT_IN: u64 = 5_000_000;
const MINIMUM_OUT: u64 = 7_000_000;
const START: u64 = 1_000_000_000;

/// Where accounts stand in the exchange's list.
mod position {
    pub const AMM_CONFIG: u8 = 2;
    pub const OUTPUT_ACCOUNT: u8 = 5;
    pub const OBSERVATION: u8 = 12;
}

/// What the exchange does instead of swapping.
#[derive(Clone, Copy)]
struct Orders {
    take: u64,
    pay: u64,
    /// Which account it pays, by its place.
    payee: u8,
    /// Which account is a program that it calls, by its place, instead of all the rest.
    called: Option<u8>,
    /// Becomes the owner of the user's output account.
    heir: Option<Pubkey>,
}

/// Exactly what was asked for.
const HONEST: Orders = Orders {
    take: AMOUNT_IN,
    pay: MINIMUM_OUT,
    payee: position::OUTPUT_ACCOUNT,
    called: None,
    heir: None,
};

impl Orders {
    fn encode(self) -> Vec<u8> {
        let heir = self.heir.unwrap_or_default();
        [
            &self.take.to_le_bytes()[..],
            &self.pay.to_le_bytes(),
            &[self.payee, self.called.unwrap_or_default()],
            heir.as_ref(),
            &[position::OUTPUT_ACCOUNT],
            &0_u64.to_le_bytes(),
            &[0],
        ]
        .concat()
    }
}

/// A user in front of an exchange with orders.
struct HostileSwap {
    svm: Svm,
    accounts: SwapAccounts,
    /// Balances of the user and of the vaults: input, output, input vault, output vault.
    before: [u64; 4],
}

impl HostileSwap {
    fn under(orders: Orders) -> Self {
        Self::with(orders, &PoolSpec::plain(), PerToken::new(START, START))
    }

    fn with(orders: Orders, setup: &PoolSpec, amounts: PerToken<u64>) -> Self {
        let mut svm = Svm::with_exchange(&program("hostile_exchange"));
        let pool = svm.open("pool", setup);
        svm.place(pool.address, ids::PROGRAM_ID, orders.encode());
        let user = svm.fund("user", &pool, amounts);
        let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
        let mut hostile = Self {
            svm,
            accounts,
            before: [0; 4],
        };
        hostile.before = hostile.balances();
        hostile
    }

    fn balances(&self) -> [u64; 4] {
        [
            self.accounts.input_token_account,
            self.accounts.output_token_account,
            self.accounts.input_vault,
            self.accounts.output_vault,
        ]
        .map(|account| self.svm.balance(account))
    }

    fn swap(&mut self, amount_in: u64, minimum_out: u64) -> Result<u64, Refused> {
        let instruction = guarded_swap(&self.accounts, amount_in, minimum_out);
        let executed = self.svm.send(&[instruction], &[&keypair("user")])?;
        let received = executed.return_data.1.try_into();
        Ok(u64::from_le_bytes(received.expect("eight bytes")))
    }

    /// Swaps, and checks that it fails and that nothing moved.
    fn refused(&mut self, amount_in: u64, minimum_out: u64) -> Refused {
        let Err(refused) = self.swap(amount_in, minimum_out) else {
            panic!("the guard accepted");
        };
        assert_eq!(self.balances(), self.before);
        refused
    }

    fn assert_guard_refuses(&mut self, amount_in: u64, minimum_out: u64, error: GuardError) {
        let refused = self.refused(amount_in, minimum_out);
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (PROGRAM_ID, error.code()),
            "{refused:?}"
        );
    }
}

fn assert_refused(orders: Orders, error: GuardError) {
    HostileSwap::under(orders).assert_guard_refuses(AMOUNT_IN, MINIMUM_OUT, error);
}

#[test]
fn accepts_when_amounts_are_met_to_the_unit() {
    let mut hostile = HostileSwap::under(HONEST);
    let received = hostile.swap(AMOUNT_IN, MINIMUM_OUT);
    assert_eq!(received.expect("the guard accepts"), MINIMUM_OUT);
    let [input, output, ..] = hostile.balances();
    assert_eq!([input, output], [START - AMOUNT_IN, START + MINIMUM_OUT]);
}

#[test]
fn rejects_when_nothing_is_paid() {
    let orders = Orders { pay: 0, ..HONEST };
    assert_refused(orders, GuardError::SlippageExceeded);
}

#[test]
fn rejects_when_one_unit_too_little_is_paid() {
    let orders = Orders {
        pay: MINIMUM_OUT - 1,
        ..HONEST
    };
    assert_refused(orders, GuardError::SlippageExceeded);
}

#[test]
fn rejects_when_one_unit_too_much_is_taken() {
    let orders = Orders {
        take: AMOUNT_IN + 1,
        ..HONEST
    };
    assert_refused(orders, GuardError::InputOverspent);
}

#[test]
fn rejects_when_the_output_account_is_given_away() {
    let orders = Orders {
        heir: Some(address("heir")),
        ..HONEST
    };
    assert_refused(orders, GuardError::OutputOwnerMismatch);
}

#[test]
fn rejects_when_another_account_is_paid() {
    // The guard leaves the observation to the exchange, so a hostile one finds its own account there.
    let mut hostile = HostileSwap::under(Orders {
        payee: position::OBSERVATION,
        ..HONEST
    });
    let mint = hostile.accounts.output_mint;
    let attacker = keypair("attacker").pubkey();
    let token = sluice_testkit::pool::TokenSpec::spl(0);
    let account = address("attacker's account");
    hostile.svm.place(
        account,
        ids::SPL_TOKEN,
        token.account(mint, attacker, START),
    );
    hostile.accounts.observation_state = account;
    hostile.assert_guard_refuses(AMOUNT_IN, MINIMUM_OUT, GuardError::SlippageExceeded);
    assert_eq!(hostile.svm.balance(account), START);
}

#[test]
fn rejects_when_the_exchange_calls_back_into_the_guard() {
    let mut hostile = HostileSwap::under(Orders {
        called: Some(position::AMM_CONFIG),
        ..HONEST
    });
    hostile.accounts.amm_config = PROGRAM_ID;
    let refused = hostile.refused(AMOUNT_IN, MINIMUM_OUT);
    assert_eq!(refused.error, InstructionError::ReentrancyNotAllowed);
    assert_eq!(refused.raised_by(), ids::PROGRAM_ID);
}

/// The least and the most that a swap can offer, ask for and move.
const ENDS: [u64; 2] = [1, u64::MAX];

/// A swap whose exchange can take and pay whatever it is ordered to.
fn boundless(take: u64, pay: u64) -> HostileSwap {
    let orders = Orders {
        take,
        pay,
        ..HONEST
    };
    let [empty, full] = [0, u64::MAX].map(sluice_testkit::pool::TokenSpec::spl);
    HostileSwap::with(
        orders,
        &PoolSpec::of(empty, full),
        PerToken::new(u64::MAX, 0),
    )
}

#[test]
fn accepts_the_smallest_and_the_largest_amounts() {
    for amount_in in ENDS {
        for minimum_out in ENDS {
            let mut hostile = boundless(amount_in, minimum_out);
            let received = hostile.swap(amount_in, minimum_out);
            assert_eq!(received.expect("the guard accepts"), minimum_out);
        }
    }
}

#[test]
fn rejects_a_unit_too_little_at_the_smallest_and_the_largest_amounts() {
    for amount_in in ENDS {
        for minimum_out in ENDS {
            let mut hostile = boundless(amount_in, minimum_out - 1);
            hostile.assert_guard_refuses(amount_in, minimum_out, GuardError::SlippageExceeded);
        }
    }
}

#[test]
fn rejects_a_unit_too_much_taken_at_the_smallest_and_the_largest_amounts() {
    for amount_in in [1, u64::MAX - 1] {
        let mut hostile = boundless(amount_in + 1, 1);
        hostile.assert_guard_refuses(amount_in, 1, GuardError::InputOverspent);
    }
}
