//! Three thousand swaps that the official exchange executed, with their whole input state, done again.

use cpmm::{
    Direction, PerToken,
    fixtures::{ExecutedSwap, Outcome, executed_swaps},
    instruction::swap_base_input,
};
use sluice_tests::svm::{PoolSetup, Svm};

fn execute(svm: &mut Svm, case: &ExecutedSwap) -> Outcome {
    let clock = case.clock();
    svm.set_time(clock.epoch, clock.unix_timestamp);
    let pool = svm.open("vector", &PoolSetup::like(case.snapshot()));
    let direction = case.direction();
    let amounts = match direction {
        Direction::ZeroForOne => PerToken::new(case.amount_in, 0),
        Direction::OneForZero => PerToken::new(0, case.amount_in),
    };
    let user = svm.fund("trader", &pool, amounts);
    let accounts = pool.swap_accounts(&user, direction);
    let swap = swap_base_input(&accounts, case.amount_in, case.minimum_amount_out);
    if let Err(refused) = svm.send(&[swap], &[&user.keypair]) {
        return Outcome::ErrorCode(refused.code());
    }
    let state = svm.pool_state(pool.address);
    Outcome::Ok {
        received: svm.balance(accounts.output_token_account),
        input_vault: svm.balance(accounts.input_vault),
        output_vault: svm.balance(accounts.output_vault),
        protocol_fees: state.protocol_fees,
        fund_fees: state.fund_fees,
        creator_fees: state.creator_fees,
    }
}

#[test]
fn the_exchange_does_what_the_official_program_did() {
    let cases = executed_swaps();
    assert_eq!(cases.len(), 3_000);
    let mut svm = Svm::new();
    for (index, case) in cases.iter().enumerate() {
        assert_eq!(execute(&mut svm, case), case.result, "case {index}");
    }
}
