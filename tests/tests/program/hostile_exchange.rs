//! The guard before an exchange that lies: it measures, so no lie about amounts passes.

use cpmm::{Direction, PerToken, ids, instruction::SwapAccounts};
use sluice_tests::svm::{PoolSetup, Refused, Svm, User, address, program};
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID, swap};

const AMOUNT_IN: u64 = 5_000_000;
const MINIMUM_OUT: u64 = 7_000_000;
const START: u64 = 1_000_000_000;

/// What the exchange does instead of swapping.
#[derive(Clone, Copy)]
struct Orders {
    take: u64,
    pay: u64,
    /// Becomes the owner of the user's output account.
    heir: Option<Pubkey>,
}

impl Orders {
    fn encode(self) -> Vec<u8> {
        let heir = self.heir.unwrap_or_default();
        [
            &self.take.to_le_bytes()[..],
            &self.pay.to_le_bytes(),
            heir.as_ref(),
        ]
        .concat()
    }
}

/// Swaps through the guard on an exchange with these orders, and gives the balances after: input, output.
fn swap_under(orders: Orders) -> (Result<Vec<u8>, Refused>, [u64; 2]) {
    let mut svm = Svm::with_exchange(&program("hostile_exchange"));
    let pool = svm.open("pool", &PoolSetup::plain());
    svm.place(pool.address, ids::PROGRAM_ID, orders.encode());
    let user: User = svm.fund("user", &pool, PerToken::new(START, START));
    let accounts: SwapAccounts = pool.swap_accounts(&user, Direction::ZeroForOne);
    let sent = svm.send(&[swap(&accounts, AMOUNT_IN, MINIMUM_OUT)], &[&user.keypair]);
    let balances = [accounts.input_token_account, accounts.output_token_account]
        .map(|account| svm.balance(account));
    (sent.map(|executed| executed.return_data.1), balances)
}

fn assert_refused(orders: Orders, error: GuardError) {
    let (sent, balances) = swap_under(orders);
    let Err(refused) = sent else {
        panic!("the guard accepted");
    };
    assert_eq!(refused.raised_by(), PROGRAM_ID, "{refused:?}");
    assert_eq!(
        GuardError::from_code(refused.code()),
        Some(error),
        "{refused:?}"
    );
    assert_eq!(balances, [START, START]);
}

#[test]
fn accepts_when_amounts_are_met_to_the_unit() {
    let orders = Orders {
        take: AMOUNT_IN,
        pay: MINIMUM_OUT,
        heir: None,
    };
    let (sent, balances) = swap_under(orders);
    let received = sent.expect("the guard accepts");
    assert_eq!(received, MINIMUM_OUT.to_le_bytes());
    assert_eq!(balances, [START - AMOUNT_IN, START + MINIMUM_OUT]);
}

#[test]
fn rejects_when_nothing_is_paid() {
    let orders = Orders {
        take: AMOUNT_IN,
        pay: 0,
        heir: None,
    };
    assert_refused(orders, GuardError::SlippageExceeded);
}

#[test]
fn rejects_when_one_unit_too_little_is_paid() {
    let orders = Orders {
        take: AMOUNT_IN,
        pay: MINIMUM_OUT - 1,
        heir: None,
    };
    assert_refused(orders, GuardError::SlippageExceeded);
}

#[test]
fn rejects_when_one_unit_too_much_is_taken() {
    let orders = Orders {
        take: AMOUNT_IN + 1,
        pay: MINIMUM_OUT,
        heir: None,
    };
    assert_refused(orders, GuardError::InputOverspent);
}

#[test]
fn rejects_when_the_output_account_is_given_away() {
    let orders = Orders {
        take: AMOUNT_IN,
        pay: MINIMUM_OUT,
        heir: Some(address("heir")),
    };
    assert_refused(orders, GuardError::OutputOwnerMismatch);
}
