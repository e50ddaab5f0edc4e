//! Swaps that the guard refuses for its arguments and accounts, each with its own code.

use cpmm::{PerToken, PoolState, ids, instruction::SwapAccounts};
use sluice_testkit::{
    names::address,
    pool::{PoolSpec, guarded_swap},
};
use solana_instruction::{AccountMeta, error::InstructionError};
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID};

use super::accepted_swap::{AMOUNT_IN, AcceptedSwap, position};

#[test]
fn rejects_zero_amount_in() {
    let mut swap_case = AcceptedSwap::set();
    let instruction = guarded_swap(&swap_case.accounts, 0, 1);
    swap_case.assert_guard_refuses(instruction, GuardError::ZeroAmountIn);
}

#[test]
fn rejects_zero_minimum_out() {
    let mut swap_case = AcceptedSwap::set();
    let instruction = guarded_swap(&swap_case.accounts, AMOUNT_IN, 0);
    swap_case.assert_guard_refuses(instruction, GuardError::ZeroMinimumOut);
}

#[test]
fn rejects_another_program_as_the_exchange() {
    let mut swap_case = AcceptedSwap::set();
    for program in [ids::SPL_TOKEN, PROGRAM_ID, address("no program")] {
        let mut instruction = swap_case.swap();
        instruction.accounts[position::EXCHANGE] = AccountMeta::new_readonly(program, false);
        swap_case.assert_guard_refuses(instruction, GuardError::WrongExchange);
    }
}

#[test]
fn rejects_the_input_account_as_output_account() {
    let mut swap_case = AcceptedSwap::set();
    let instruction = swap_case.swap_into(swap_case.accounts.input_token_account);
    swap_case.assert_guard_refuses(instruction, GuardError::SameTokenAccount);
}

#[test]
fn rejects_an_output_account_of_another_mint() {
    let mut swap_case = AcceptedSwap::set();
    let input_mint = swap_case.accounts.input_mint;
    let forged = swap_case.forged_output(ids::SPL_TOKEN, |data| {
        data[..32].copy_from_slice(input_mint.as_ref());
    });
    let instruction = swap_case.swap_into(forged);
    swap_case.assert_guard_refuses(instruction, GuardError::OutputMintMismatch);
}

#[test]
fn rejects_an_output_account_of_somebody_else() {
    let mut swap_case = AcceptedSwap::set();
    let pool = swap_case.pool.clone();
    let attacker = swap_case.svm.fund("attacker", &pool, PerToken::new(0, 0));
    let instruction = swap_case.swap_into(attacker.accounts.token_1);
    swap_case.assert_guard_refuses(instruction, GuardError::OutputOwnerMismatch);
}

#[test]
fn rejects_an_output_account_of_a_fake_token_program() {
    let mut swap_case = AcceptedSwap::set();
    for owner in [
        address("fake token program"),
        ids::PROGRAM_ID,
        Pubkey::default(),
    ] {
        let forged = swap_case.forged_output(owner, |_| ());
        let instruction = swap_case.swap_into(forged);
        swap_case.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    }
}

#[test]
fn rejects_an_account_of_a_token_program_that_is_no_token_account() {
    let mut swap_case = AcceptedSwap::set();
    let instruction = swap_case.swap_into(swap_case.accounts.input_mint);
    swap_case.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    // Too long for SPL Token, and for Token-2022 of another account type.
    for owner in [ids::SPL_TOKEN, ids::TOKEN_2022] {
        let forged = swap_case.forged_output(owner, |data| data.extend([1, 0, 0, 0, 0]));
        let instruction = swap_case.swap_into(forged);
        swap_case.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    }
}

#[test]
fn rejects_a_user_who_did_not_sign() {
    let mut swap_case = AcceptedSwap::set();
    let mut instruction = swap_case.swap();
    let stranger = address("stranger");
    instruction.accounts[position::USER] = AccountMeta::new_readonly(stranger, false);
    let refused = swap_case.refused(instruction);
    assert_eq!(refused.error, InstructionError::MissingRequiredSignature);
    assert_eq!(refused.raised_by(), PROGRAM_ID);
}

#[test]
fn rejects_data_that_is_no_swap() {
    let mut swap_case = AcceptedSwap::set();
    for length in [0, 7, 8, 24, 31] {
        let mut instruction = swap_case.swap();
        instruction.data.truncate(length);
        let refused = swap_case.refused(instruction);
        assert_eq!(
            refused.error,
            InstructionError::InvalidInstructionData,
            "{length} bytes"
        );
    }
}

#[test]
#[expect(
    deprecated,
    reason = "the framework answers with the old name of `MissingAccount`"
)]
fn rejects_a_missing_account() {
    let mut swap_case = AcceptedSwap::set();
    let mut instruction = swap_case.swap();
    instruction.accounts.pop();
    assert_eq!(
        swap_case.refused(instruction).error,
        InstructionError::NotEnoughAccountKeys
    );
}

#[test]
fn rejects_a_frozen_output_account() {
    /// The token programs' code for a frozen account.
    const ACCOUNT_FROZEN: u32 = 17;
    /// Where a token account says that it is frozen, and how.
    const STATE: (usize, u8) = (108, 2);
    let mut swap_case = AcceptedSwap::set();
    let frozen = swap_case.forged_output(ids::SPL_TOKEN, |data| data[STATE.0] = STATE.1);
    let instruction = swap_case.swap_into(frozen);
    swap_case.assert_refused(instruction, ids::SPL_TOKEN, ACCOUNT_FROZEN);
}

#[test]
fn the_exchange_rejects_the_accounts_that_the_guard_leaves_to_it() {
    let mut swap_case = AcceptedSwap::set();
    let other = swap_case.svm.open("other pool", &PoolSpec::plain()).state;
    let wrong = address("wrong");
    let good = swap_case.accounts.clone();
    let with = |change: fn(&mut SwapAccounts, &PoolState, Pubkey)| {
        let mut accounts = good.clone();
        change(&mut accounts, &other, wrong);
        accounts
    };
    let cases = [
        (2012, with(|a, other, _| a.amm_config = other.amm_config)),
        (
            2012,
            with(|a, other, _| a.observation_state = other.observation),
        ),
        (2012, with(|a, other, _| a.input_mint = other.mints.token_0)),
        (
            2003,
            with(|a, other, _| a.input_vault = other.vaults.token_0),
        ),
        (
            2003,
            with(|a, other, _| a.output_vault = other.vaults.token_1),
        ),
        (3008, with(|a, _, wrong| a.input_token_program = wrong)),
        (3008, with(|a, _, wrong| a.output_token_program = wrong)),
        (
            3002,
            with(|a, _, _| std::mem::swap(&mut a.pool_state, &mut a.observation_state)),
        ),
    ];
    for (code, accounts) in cases {
        let refused = swap_case.refused(guarded_swap(&accounts, AMOUNT_IN, 1));
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (ids::PROGRAM_ID, code),
            "{accounts:?}"
        );
    }
}

#[test]
fn the_exchange_rejects_a_wrong_authority() {
    let mut swap_case = AcceptedSwap::set();
    let mut instruction = swap_case.swap();
    instruction.accounts[2] = AccountMeta::new_readonly(address("wrong"), false);
    let refused = swap_case.refused(instruction);
    assert_eq!(
        (refused.raised_by(), refused.code()),
        (ids::PROGRAM_ID, 2006)
    );
}

#[test]
fn rejects_readonly_accounts_that_the_exchange_writes() {
    let mut swap_case = AcceptedSwap::set();
    for index in [position::POOL, position::OUTPUT_ACCOUNT] {
        let mut instruction = swap_case.swap();
        instruction.accounts[index].is_writable = false;
        // Alone in its transaction: another instruction's writable mark would hold for this one too.
        let sent = swap_case
            .svm
            .send(&[instruction], &[&swap_case.user.keypair]);
        let Err(refused) = sent else {
            panic!("accepted a read-only account");
        };
        assert_eq!((refused.raised_by(), refused.code()), (PROGRAM_ID, 2000));
    }
}
