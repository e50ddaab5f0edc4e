//! Output accounts with delegates or close authorities, present or past.
//!
//! The guard lets them through. A delegate of the user's account was appointed by its owner, and both token
//! programs dismiss the delegate when the owner changes; a close authority outlives that, but cannot close an account
//! with tokens in it. So an account that was prepared and then handed over delivers the tokens to the user all the same,
//! and a user who appointed a delegate is not kept from swapping. These tests carry the attack out to its end.

use cpmm::{Direction, TokenAccount, TokenAccountKind, TokenProgram};
use sluice_testkit::{
    names::{address, keypair},
    pool::{PoolSpec, TokenSpec},
};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use spl_token_interface::instruction::{
    AuthorityType, approve, close_account, set_authority, transfer,
};

use super::accepted_swap::{AcceptedSwap, START};

/// What the accepted swap of a case pays.
const RECEIVED: u64 = 9_974_950;

/// The token programs' codes for the signature of somebody without a say, and for closing an account with tokens in it.
const OWNER_MISMATCH: u32 = 4;
const HAS_BALANCE: u32 = 11;

/// The interface crate builds for SPL Token alone; Token-2022 understands the same instructions.
const SPL: Pubkey = cpmm::ids::SPL_TOKEN;

fn swap_case(program: TokenProgram) -> AcceptedSwap {
    let token = |vault| TokenSpec {
        program,
        transfer_fee: None,
        vault,
    };
    AcceptedSwap::of(&PoolSpec::of(
        token(1_000_000_000_000),
        token(2_000_000_000_000),
    ))
}

/// Sends the instructions to this token program.
fn send(
    swap_case: &mut AcceptedSwap,
    program: TokenProgram,
    instructions: Vec<Instruction>,
    signer: &Keypair,
) -> Result<(), (Pubkey, u32)> {
    let redirected: Vec<_> = instructions
        .into_iter()
        .map(|built| Instruction {
            program_id: program.id(),
            ..built
        })
        .collect();
    let sent = swap_case.svm.send(&redirected, &[signer]);
    sent.map(drop)
        .map_err(|refused| (refused.raised_by(), refused.code()))
}

/// Makes `friend` delegate and close authority of the account.
fn appoint(account: &Pubkey, friend: &Pubkey, owner: &Pubkey) -> Vec<Instruction> {
    let close = AuthorityType::CloseAccount;
    [
        approve(&SPL, account, friend, owner, &[], u64::MAX),
        set_authority(&SPL, account, Some(friend), close, owner, &[]),
    ]
    .map(|built| built.expect("the arguments are valid"))
    .to_vec()
}

/// Appoints the attacker over their own account, and then makes it the user's.
fn hand_over(
    swap_case: &mut AcceptedSwap,
    program: TokenProgram,
    account: &Pubkey,
    attacker: &Keypair,
) {
    let owner = attacker.pubkey();
    let user = swap_case.user.keypair.pubkey();
    let kind = AuthorityType::AccountOwner;
    let mut steps = appoint(account, &owner, &owner);
    steps.push(
        set_authority(&SPL, account, Some(&user), kind, &owner, &[])
            .expect("the arguments are valid"),
    );
    send(swap_case, program, steps, attacker)
        .expect("the attacker may do this with their own account");
}

#[test]
fn an_account_prepared_by_an_attacker_gives_them_nothing() {
    for program in [TokenProgram::Spl, TokenProgram::Token2022] {
        let mut swap_case = swap_case(program);
        let attacker = keypair("attacker");
        let pool = swap_case.pool.clone();
        let (side, owner) = (Direction::OneForZero, attacker.pubkey());
        let account = pool.token_account(&mut swap_case.svm, "prepared", side, owner, 0);
        hand_over(&mut swap_case, program, &account, &attacker);

        let instruction = swap_case.swap_into(account);
        swap_case
            .svm
            .send(&[instruction], &[&swap_case.user.keypair])
            .expect("the account is the user's");

        let loot = swap_case.accounts.output_vault;
        let thefts = [
            (
                OWNER_MISMATCH,
                transfer(&SPL, &account, &loot, &owner, &[], 1),
            ),
            (
                HAS_BALANCE,
                close_account(&SPL, &account, &owner, &owner, &[]),
            ),
        ];
        for (code, theft) in thefts {
            let theft = vec![theft.expect("the arguments are valid")];
            assert_eq!(
                send(&mut swap_case, program, theft, &attacker),
                Err((program.id(), code))
            );
        }
        assert_eq!(swap_case.svm.balance(account), RECEIVED);
    }
}

/// The one kind of account that a close authority could empty.
#[test]
fn handing_over_wrapped_sol_dismisses_the_close_authority() {
    /// Where a token account says whether it has a close authority.
    const CLOSE_AUTHORITY: std::ops::Range<usize> = 129..133;
    for program in [TokenProgram::Spl, TokenProgram::Token2022] {
        let mut swap_case = swap_case(program);
        let attacker = keypair("attacker");
        let account = address("prepared");
        let wrapped = TokenAccount {
            mint: cpmm::ids::WRAPPED_SOL,
            owner: attacker.pubkey(),
            amount: 0,
            frozen: false,
        };
        let kind = TokenAccountKind::Native { reserve: 2_039_280 };
        swap_case
            .svm
            .place(account, program.id(), wrapped.encode(kind));
        hand_over(&mut swap_case, program, &account, &attacker);
        let data = swap_case.svm.account(account).data;
        assert_eq!(data[CLOSE_AUTHORITY], [0; 4]);
    }
}

#[test]
fn accepts_an_account_whose_owner_appointed_a_delegate_and_a_close_authority() {
    for program in [TokenProgram::Spl, TokenProgram::Token2022] {
        let mut swap_case = swap_case(program);
        let user = keypair("user");
        let friend = keypair("friend").pubkey();
        let account = swap_case.accounts.output_token_account;
        let steps = appoint(&account, &friend, &user.pubkey());
        send(&mut swap_case, program, steps, &user).expect("the account is the user's");
        let instruction = swap_case.swap();
        swap_case
            .svm
            .send(&[instruction], &[&user])
            .expect("the account is still the user's");
        assert_eq!(swap_case.svm.balance(account), START + RECEIVED);
    }
}
