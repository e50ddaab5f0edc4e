//! Every form before an exchange that lies: bounds are measured on input, middle and output.

use cpmm::ids;
use sluice_testkit::{names::address, pool::PoolSpec, svm::program};
use solana_instruction::error::InstructionError;
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID};

use super::forms::{ASKED, Form, OFFERED, START, Twins, with};

/// What the first of two hostile hops delivers.
const DELIVERED: u64 = 2_000_000;

/// What a hostile pool does instead of swapping.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    pub take: u64,
    pub pay: u64,
    /// Which account it pays, by its place in the exchange's list.
    pub payee: u8,
    /// Which account is a program that it calls instead, by its place; 0 for none.
    pub called: u8,
    /// Becomes the owner of an account of the user.
    pub heir: Option<Pubkey>,
    /// Which one, by its place.
    pub inherited: u8,
    /// Moved back out of the account that it pays.
    pub drain: u64,
    /// Which account the exchange's authority may spend from afterwards, by its place; 0 for none.
    pub approved: u8,
}

pub const CONFIG: u8 = 2;
pub const INPUT: u8 = 4;
pub const OUTPUT: u8 = 5;
pub const TOKEN_PROGRAM: u8 = 8;
const OBSERVATION: u8 = 12;

pub const fn honest(take: u64, pay: u64) -> Orders {
    Orders {
        take,
        pay,
        payee: OUTPUT,
        called: 0,
        heir: None,
        inherited: OUTPUT,
        drain: 0,
        approved: 0,
    }
}

impl Orders {
    pub fn encode(self) -> Vec<u8> {
        [
            &self.take.to_le_bytes()[..],
            &self.pay.to_le_bytes(),
            &[self.payee, self.called],
            self.heir.unwrap_or_default().as_ref(),
            &[self.inherited],
            &self.drain.to_le_bytes(),
            &[self.approved],
        ]
        .concat()
    }
}

/// Two hostile pools that do exactly what is asked for.
const FIRST: Orders = honest(OFFERED, DELIVERED);
const SECOND: Orders = honest(DELIVERED, ASKED);

fn set(orders: [Orders; 2]) -> Twins {
    let hostile = program("hostile_exchange");
    let mut twins = Twins::with_exchange(&hostile, &PoolSpec::plain(), &PoolSpec::plain());
    let pools = [twins.route.first.address, twins.route.second.address];
    for (pool, orders) in pools.into_iter().zip(orders) {
        twins.place(pool, ids::PROGRAM_ID, &orders.encode());
    }
    twins
}

/// One hop, or the last of two.
fn of(form: Form, orders: Orders) -> [Orders; 2] {
    if form.is_two_hops() {
        let take = orders.take - OFFERED + DELIVERED;
        [FIRST, Orders { take, ..orders }]
    } else {
        [orders, SECOND]
    }
}

fn assert_refused(form: Form, orders: [Orders; 2], error: GuardError) {
    let mut twins = set(orders);
    let instruction = twins.accepted(form);
    twins.assert_refused(instruction, PROGRAM_ID, error.code());
}

fn assert_accepted(form: Form, orders: [Orders; 2]) {
    let mut twins = set(orders);
    let instruction = twins.accepted(form);
    twins
        .send(&[instruction])
        .unwrap_or_else(|refused| panic!("{form:?}: {refused:?}"));
}

/// Exactly what a single hop is asked for.
const HONEST: Orders = honest(OFFERED, ASKED);

#[test]
fn what_the_last_hop_pays_is_measured() {
    for form in Form::ALL {
        assert_accepted(form, of(form, HONEST));
        let less = Orders {
            pay: ASKED - 1,
            ..HONEST
        };
        assert_refused(form, of(form, less), GuardError::SlippageExceeded);
        let none = Orders { pay: 0, ..HONEST };
        assert_refused(form, of(form, none), GuardError::SlippageExceeded);
        let mut twins = set(of(
            form,
            Orders {
                payee: OBSERVATION,
                ..HONEST
            },
        ));
        let output = twins.accepted(form).accounts[form.output()].pubkey;
        let elsewhere = twins.forged(output, None, |_| ());
        let instruction = with(twins.accepted(form), observation_of(form), elsewhere);
        twins.assert_refused(instruction, PROGRAM_ID, GuardError::SlippageExceeded.code());
        assert_eq!(twins.balance(elsewhere), START);
    }
}

#[test]
fn an_output_account_that_falls_was_not_paid() {
    for form in Form::ALL {
        let falls = Orders {
            pay: 0,
            drain: ASKED,
            ..HONEST
        };
        assert_refused(form, of(form, falls), GuardError::SlippageExceeded);
    }
}

#[test]
fn what_the_first_hop_takes_is_measured() {
    for form in Form::ALL {
        let more = |orders: Orders| Orders {
            take: OFFERED + 1,
            ..orders
        };
        let orders = if form.is_two_hops() {
            [more(FIRST), SECOND]
        } else {
            [more(HONEST), SECOND]
        };
        assert_refused(form, orders, GuardError::InputOverspent);
        let none = |orders: Orders| Orders { take: 0, ..orders };
        let orders = if form.is_two_hops() {
            [none(FIRST), SECOND]
        } else {
            [none(HONEST), SECOND]
        };
        assert_accepted(form, orders);
    }
}

#[test]
fn an_account_that_is_given_away_does_not_count() {
    let heir = Some(address("heir"));
    for form in Form::ALL {
        let orders = Orders { heir, ..HONEST };
        assert_refused(form, of(form, orders), GuardError::OutputOwnerMismatch);
    }
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        // The first hop gives the middle account away, and the second leaves it alone.
        let first = Orders { heir, ..FIRST };
        let second = Orders { take: 0, ..SECOND };
        assert_refused(form, [first, second], GuardError::MiddleOwnerMismatch);
        // The second hop does, having taken its due.
        let second = Orders {
            heir,
            inherited: INPUT,
            ..SECOND
        };
        assert_refused(form, [FIRST, second], GuardError::MiddleOwnerMismatch);
    }
}

#[test]
fn a_receivers_account_cannot_be_given_away_without_his_signature() {
    /// The token programs' code for the signature of somebody without a say.
    const OWNER_MISMATCH: u32 = 4;
    let receiver = address("receiver");
    for form in [Form::SwapTo, Form::ExactOutTo, Form::TwoHopsTo] {
        let heir = Some(address("heir"));
        let mut twins = set(of(form, Orders { heir, ..HONEST }));
        let own = twins.accepted(form).accounts[form.output()].pubkey;
        let theirs = twins.forged(own, None, |data| {
            data[32..64].copy_from_slice(receiver.as_ref());
        });
        let instruction = form.build(&twins.trader.accounts, [OFFERED, ASKED, 0], &receiver);
        let instruction = with(instruction, form.output(), theirs);
        twins.assert_refused(instruction, ids::SPL_TOKEN, OWNER_MISMATCH);
    }
}

#[test]
fn what_the_middle_account_held_stays_in_it() {
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        let nothing = Orders { pay: 0, ..FIRST };
        assert_refused(form, [nothing, SECOND], GuardError::SlippageExceeded);
        let lowers = Orders {
            pay: 0,
            drain: 1,
            ..FIRST
        };
        assert_refused(form, [lowers, SECOND], GuardError::MiddleOverspent);
        let more = Orders {
            take: DELIVERED + 1,
            ..SECOND
        };
        assert_refused(form, [FIRST, more], GuardError::MiddleOverspent);
        let less = Orders {
            take: DELIVERED - 1,
            ..SECOND
        };
        assert_accepted(form, [FIRST, less]);
    }
}

#[test]
fn no_program_calls_back() {
    for form in Form::ALL {
        let orders = Orders {
            called: CONFIG,
            ..HONEST
        };
        let mut twins = set(of(form, orders));
        let at = if form.is_two_hops() { 11 } else { 3 };
        let instruction = with(twins.accepted(form), at, PROGRAM_ID);
        let refused = twins.refused(instruction);
        assert_eq!(refused.error, InstructionError::ReentrancyNotAllowed);
        assert_eq!(refused.raised_by(), ids::PROGRAM_ID);
    }
    // Nor out of the first of two hops.
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        let first = Orders {
            called: CONFIG,
            ..FIRST
        };
        let mut twins = set([first, SECOND]);
        let instruction = with(twins.accepted(form), 3, PROGRAM_ID);
        let refused = twins.refused(instruction);
        assert_eq!(refused.error, InstructionError::ReentrancyNotAllowed);
    }
}

/// The observations' place in the guard's list, of the only hop or of the last.
fn observation_of(form: Form) -> usize {
    if form.is_two_hops() { 15 } else { 13 }
}

/// What the guard does not prevent: the exchange has the user's signature, and the guard compares balances of the input
/// account, and balance, owner and mint of output and middle alone.
#[test]
fn an_exchange_that_pays_to_the_unit_can_take_an_input_account_for_itself() {
    let heir = address("heir");
    for form in Form::ALL {
        let takes = |orders: Orders| Orders {
            heir: Some(heir),
            inherited: INPUT,
            ..orders
        };
        let orders = if form.is_two_hops() {
            [takes(FIRST), SECOND]
        } else {
            [takes(HONEST), SECOND]
        };
        let mut twins = set(orders);
        let instruction = twins.accepted(form);
        twins
            .send(&[instruction])
            .expect("nothing that is compared");
        let [input, ..] = twins.own();
        let data = twins.account(input).data;
        assert_eq!(data[32..64], *heir.as_ref(), "{form:?}");
        assert_eq!(twins.balance(input), START - OFFERED, "{form:?}");
    }
}

#[test]
fn an_exchange_that_pays_to_the_unit_can_make_itself_a_delegate() {
    for form in Form::ALL {
        for approved in [INPUT, OUTPUT] {
            let mut twins = set(of(form, Orders { approved, ..HONEST }));
            let instruction = twins.accepted(form);
            twins
                .send(&[instruction])
                .expect("nothing that is compared");
            let [input, middle, output] = twins.own();
            let account = match (approved, form.is_two_hops()) {
                (INPUT, false) => input,
                (INPUT, true) | (OUTPUT, false) => middle,
                _ => output,
            };
            // The delegate of a token account, behind the tag of an optional value.
            let data = twins.account(account).data;
            assert_eq!(data[72], 1, "{form:?}");
            assert_eq!(data[76..108], *ids::AUTHORITY.as_ref(), "{form:?}");
        }
    }
}

#[test]
fn an_exchange_can_take_another_account_of_the_user_that_a_builder_put_among_its_own() {
    let heir = address("heir");
    for form in Form::ALL {
        let orders = Orders {
            heir: Some(heir),
            inherited: OBSERVATION,
            ..HONEST
        };
        let mut twins = set(of(form, orders));
        let input = twins.own()[0];
        let savings = twins.forged(input, None, |_| ());
        let instruction = with(twins.accepted(form), observation_of(form), savings);
        twins
            .send(&[instruction])
            .expect("nothing that is compared");
        let data = twins.account(savings).data;
        assert_eq!(data[32..64], *heir.as_ref(), "{form:?}");
    }
}
