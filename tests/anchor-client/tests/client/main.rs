//! The built guard called by Anchor 1's client, which knows it from the committed IDL alone.

mod requests;

use cpmm::instruction::SwapAccounts;
use sluice_testkit::{
    names::address,
    pool::PoolSpec,
    route::{Route, Trader},
    svm::{Executed, Svm},
};
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;
use swap_guard_interface::{
    ExactOutArgs, SwapArgs, TwoHopAccounts, swap, swap_exact_out, swap_exact_out_to, swap_to,
    swap_two_hops, swap_two_hops_to,
};

use requests::{newer, requests, swapped};

/// What the trader has of each token beforehand.
const START: u64 = 1_000_000_000;

const EXACT_IN: SwapArgs = SwapArgs {
    amount_in: 5_000_000,
    minimum_out: 1_000_000,
    expiry_slot: u64::MAX,
};

const EXACT_OUT: ExactOutArgs = ExactOutArgs {
    maximum_in: 5_000_000,
    amount_out: 1_000_000,
    expiry_slot: u64::MAX,
};

/// A chain on which every form is accepted.
fn chain() -> (Svm, Trader) {
    let mut svm = Svm::new();
    let plain = PoolSpec::plain();
    let trader = Route::open(&mut svm, "route", &plain, &plain).fund(&mut svm, "user", [START; 3]);
    (svm, trader)
}

/// The six instructions as the guard's interface builds them, those with a receiver paying `receiver`.
fn built_by_the_interface(accounts: &TwoHopAccounts, receiver: &Pubkey) -> [Instruction; 6] {
    let one = &accounts.first;
    [
        swap(one, EXACT_IN),
        swap_to(one, EXACT_IN, receiver),
        swap_exact_out(one, EXACT_OUT),
        swap_exact_out_to(one, EXACT_OUT, receiver),
        swap_two_hops(accounts, EXACT_IN),
        swap_two_hops_to(accounts, EXACT_IN, receiver),
    ]
}

/// The only event of the guard among what a transaction logged.
fn event(executed: &Executed) -> requests::Swapped {
    let mut events = executed.events.iter().filter_map(|event| swapped(event));
    let event = events.next().expect("the guard logs its event");
    assert!(events.next().is_none(), "two events of one swap");
    event
}

#[test]
fn an_anchor_1_client_builds_every_form_as_the_interface_does() {
    let (_, Trader { accounts, .. }) = chain();
    let receiver = address("receiver");
    assert_eq!(
        requests(&accounts, receiver),
        built_by_the_interface(&accounts, &receiver)
    );
}

/// All six one after the other, on one chain.
#[test]
fn an_anchor_1_client_swaps_in_every_form_and_reads_the_event() {
    let (mut svm, Trader { keypair, accounts }) = chain();
    let TwoHopAccounts { first, second } = &accounts;
    let me = first.payer;
    let last_hops = [first, first, first, first, second, second];
    for (instruction, last_hop) in requests(&accounts, me).into_iter().zip(last_hops) {
        let SwapAccounts {
            output_token_account: output,
            pool_state: pool,
            ..
        } = *last_hop;
        let balances = |svm: &Svm| [first.input_token_account, output].map(|key| svm.balance(key));
        let [input_before, output_before] = balances(&svm);
        let executed = svm
            .send(&[instruction], &[&keypair])
            .expect("the guard accepts");
        let [input_now, output_now] = balances(&svm);

        let event = event(&executed);
        assert_eq!([event.user, event.pool].map(newer), [me, pool]);
        assert_eq!(
            [event.spent, event.received],
            [input_before - input_now, output_now - output_before]
        );
        assert!(event.received > 0);
    }
}
