//! Swaps that the guard refuses, each with its own code, and nothing moved.

use cpmm::{Direction, PerToken, ids, instruction::SwapAccounts};
use sluice_tests::svm::{Pool, PoolSetup, Refused, Svm, User, address};
use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID, swap};

const AMOUNT_IN: u64 = 5_000_000;
const START: u64 = 1_000_000_000;

/// Where an account stands in the guard's list.
mod position {
    pub const USER: usize = 0;
    pub const EXCHANGE: usize = 1;
    pub const POOL: usize = 4;
    pub const OUTPUT_ACCOUNT: usize = 6;
}

/// A chain on which the swap of `accounts` would be accepted.
struct Scene {
    svm: Svm,
    pool: Pool,
    user: User,
    accounts: SwapAccounts,
}

impl Scene {
    fn set() -> Self {
        let mut svm = Svm::new();
        let pool = svm.open("pool", &PoolSetup::plain());
        let user = svm.fund("user", &pool, PerToken::new(START, START));
        let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
        Self {
            svm,
            pool,
            user,
            accounts,
        }
    }

    /// Sends the instruction behind one that succeeds, and checks that it alone failed and that no account changed.
    fn refused(&mut self, instruction: Instruction) -> Refused {
        let mut watched: Vec<Pubkey> = instruction
            .accounts
            .iter()
            .map(|meta| meta.pubkey)
            .collect();
        watched.extend([self.user.accounts.token_0, self.user.accounts.token_1]);
        let state = |svm: &Svm| {
            watched
                .iter()
                .map(|key| svm.account(*key))
                .collect::<Vec<_>>()
        };
        let before = state(&self.svm);
        let harmless = swap(&self.accounts, AMOUNT_IN, 1);
        let sent = self
            .svm
            .send(&[harmless, instruction], &[&self.user.keypair]);
        let Err(refused) = sent else {
            panic!("the guard accepted");
        };
        assert_eq!(refused.instruction, 1, "{refused:?}");
        assert_eq!(state(&self.svm), before, "something moved");
        refused
    }

    fn assert_guard_refuses(&mut self, instruction: Instruction, error: GuardError) {
        let refused = self.refused(instruction);
        assert_eq!(refused.raised_by(), PROGRAM_ID, "{refused:?}");
        assert_eq!(
            GuardError::from_code(refused.code()),
            Some(error),
            "{refused:?}"
        );
    }

    fn swap(&self) -> Instruction {
        swap(&self.accounts, AMOUNT_IN, 1)
    }

    /// The accepted swap with another output account.
    fn swap_into(&self, output: Pubkey) -> Instruction {
        let accounts = SwapAccounts {
            output_token_account: output,
            ..self.accounts.clone()
        };
        swap(&accounts, AMOUNT_IN, 1)
    }

    /// A copy of the user's output account at another address, its data changed by `change`.
    fn forged_output(&mut self, owner: Pubkey, change: impl FnOnce(&mut Vec<u8>)) -> Pubkey {
        let mut data = self.svm.account(self.accounts.output_token_account).data;
        change(&mut data);
        let forged = address("forged output account");
        self.svm.place(forged, owner, data);
        forged
    }
}

#[test]
fn rejects_zero_amount_in() {
    let mut scene = Scene::set();
    let instruction = swap(&scene.accounts, 0, 1);
    scene.assert_guard_refuses(instruction, GuardError::ZeroAmountIn);
}

#[test]
fn rejects_zero_minimum_out() {
    let mut scene = Scene::set();
    let instruction = swap(&scene.accounts, AMOUNT_IN, 0);
    scene.assert_guard_refuses(instruction, GuardError::ZeroMinimumOut);
}

#[test]
fn rejects_another_program_as_the_exchange() {
    let mut scene = Scene::set();
    for program in [ids::SPL_TOKEN, PROGRAM_ID, address("no program")] {
        let mut instruction = scene.swap();
        instruction.accounts[position::EXCHANGE] = AccountMeta::new_readonly(program, false);
        scene.assert_guard_refuses(instruction, GuardError::WrongExchange);
    }
}

#[test]
fn rejects_the_input_account_as_output_account() {
    let mut scene = Scene::set();
    let instruction = scene.swap_into(scene.accounts.input_token_account);
    scene.assert_guard_refuses(instruction, GuardError::SameTokenAccount);
}

#[test]
fn rejects_an_output_account_of_another_mint() {
    let mut scene = Scene::set();
    let input_mint = scene.accounts.input_mint;
    let forged = scene.forged_output(ids::SPL_TOKEN, |data| {
        data[..32].copy_from_slice(input_mint.as_ref());
    });
    let instruction = scene.swap_into(forged);
    scene.assert_guard_refuses(instruction, GuardError::OutputMintMismatch);
}

#[test]
fn rejects_an_output_account_of_somebody_else() {
    let mut scene = Scene::set();
    let pool = scene.pool.clone();
    let attacker = scene.svm.fund("attacker", &pool, PerToken::new(0, 0));
    let instruction = scene.swap_into(attacker.accounts.token_1);
    scene.assert_guard_refuses(instruction, GuardError::OutputOwnerMismatch);
}

#[test]
fn rejects_an_output_account_of_a_fake_token_program() {
    let mut scene = Scene::set();
    for owner in [
        address("fake token program"),
        ids::PROGRAM_ID,
        Pubkey::default(),
    ] {
        let forged = scene.forged_output(owner, |_| ());
        let instruction = scene.swap_into(forged);
        scene.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    }
}

#[test]
fn rejects_an_account_of_a_token_program_that_is_no_token_account() {
    let mut scene = Scene::set();
    let instruction = scene.swap_into(scene.accounts.input_mint);
    scene.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    // Too long for SPL Token, and for Token-2022 of another account type.
    for owner in [ids::SPL_TOKEN, ids::TOKEN_2022] {
        let forged = scene.forged_output(owner, |data| data.extend([1, 0, 0, 0, 0]));
        let instruction = scene.swap_into(forged);
        scene.assert_guard_refuses(instruction, GuardError::UnknownTokenProgram);
    }
}

#[test]
fn rejects_a_vault_as_output_account() {
    let mut scene = Scene::set();
    let instruction = scene.swap_into(scene.accounts.output_vault);
    // The framework's code for a writable account that occurs twice.
    assert_eq!(scene.refused(instruction).code(), 2040);
}

#[test]
fn rejects_a_user_who_did_not_sign() {
    let mut scene = Scene::set();
    let mut instruction = scene.swap();
    let stranger = address("stranger");
    instruction.accounts[position::USER] = AccountMeta::new_readonly(stranger, false);
    let refused = scene.refused(instruction);
    assert_eq!(refused.error, InstructionError::MissingRequiredSignature);
    assert_eq!(refused.raised_by(), PROGRAM_ID);
}

#[test]
fn rejects_data_that_is_no_swap() {
    let mut scene = Scene::set();
    for length in [0, 7, 8, 23] {
        let mut instruction = scene.swap();
        instruction.data.truncate(length);
        let refused = scene.refused(instruction);
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
    let mut scene = Scene::set();
    let mut instruction = scene.swap();
    instruction.accounts.pop();
    assert_eq!(
        scene.refused(instruction).error,
        InstructionError::NotEnoughAccountKeys
    );
}

#[test]
fn rejects_a_minimum_of_one_more_than_the_swap_pays() {
    let mut scene = Scene::set();
    // In a second scene, so that both trade against the same reserves.
    let mut again = Scene::set();
    scene
        .svm
        .send(&[scene.swap()], &[&scene.user.keypair])
        .expect("the swap is accepted");
    let received = scene.svm.balance(scene.accounts.output_token_account) - START;
    let sent = again.svm.send(
        &[swap(&again.accounts, AMOUNT_IN, received + 1)],
        &[&again.user.keypair],
    );
    let Err(refused) = sent else {
        panic!("accepted with less than the minimum");
    };
    assert_eq!(
        (refused.raised_by(), refused.code()),
        (PROGRAM_ID, GuardError::SlippageExceeded.code())
    );
    again
        .svm
        .send(
            &[swap(&again.accounts, AMOUNT_IN, received)],
            &[&again.user.keypair],
        )
        .expect("the very amount is accepted");
}

#[test]
fn the_exchange_rejects_the_accounts_that_the_guard_leaves_to_it() {
    let mut scene = Scene::set();
    let other = scene.svm.open("other pool", &PoolSetup::plain()).state;
    let wrong = address("wrong");
    let good = &scene.accounts;
    let cases = [
        (
            2012,
            SwapAccounts {
                amm_config: other.amm_config,
                ..good.clone()
            },
        ),
        (
            2012,
            SwapAccounts {
                observation_state: other.observation,
                ..good.clone()
            },
        ),
        (
            2012,
            SwapAccounts {
                input_mint: other.mints.token_0,
                ..good.clone()
            },
        ),
        (
            2003,
            SwapAccounts {
                input_vault: other.vaults.token_0,
                ..good.clone()
            },
        ),
        (
            2003,
            SwapAccounts {
                output_vault: other.vaults.token_1,
                ..good.clone()
            },
        ),
        (
            3008,
            SwapAccounts {
                input_token_program: wrong,
                ..good.clone()
            },
        ),
        (
            3008,
            SwapAccounts {
                output_token_program: wrong,
                ..good.clone()
            },
        ),
        (
            3002,
            SwapAccounts {
                pool_state: good.observation_state,
                observation_state: good.pool_state,
                ..good.clone()
            },
        ),
    ];
    for (code, accounts) in cases {
        let refused = scene.refused(swap(&accounts, AMOUNT_IN, 1));
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (ids::PROGRAM_ID, code),
            "{accounts:?}"
        );
    }
}

#[test]
fn the_exchange_rejects_a_wrong_authority() {
    let mut scene = Scene::set();
    let mut instruction = scene.swap();
    instruction.accounts[2] = AccountMeta::new_readonly(address("wrong"), false);
    let refused = scene.refused(instruction);
    assert_eq!(
        (refused.raised_by(), refused.code()),
        (ids::PROGRAM_ID, 2006)
    );
}

#[test]
fn rejects_readonly_accounts_that_the_exchange_writes() {
    let mut scene = Scene::set();
    for index in [position::POOL, position::OUTPUT_ACCOUNT] {
        let mut instruction = scene.swap();
        instruction.accounts[index].is_writable = false;
        // Alone in its transaction: another instruction's writable mark would hold for this one too.
        let sent = scene.svm.send(&[instruction], &[&scene.user.keypair]);
        let Err(refused) = sent else {
            panic!("accepted a read-only account");
        };
        assert_eq!((refused.raised_by(), refused.code()), (PROGRAM_ID, 2000));
    }
}
