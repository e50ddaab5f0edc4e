//! Swap that the guard accepts, for tests that change one thing about it.

use cpmm::{Direction, PerToken, instruction::SwapAccounts};
use sluice_testkit::{
    names::address,
    pool::{Pool, PoolSpec, User, guarded_swap},
    svm::{Refused, Svm},
};
use solana_account::Account;
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID};

/// What the accepted swap offers.
pub const AMOUNT_IN: u64 = 5_000_000;
/// What the user has of each token beforehand.
pub const START: u64 = 1_000_000_000;

/// Where an account stands in the guard's list.
pub mod position {
    pub const USER: usize = 0;
    pub const EXCHANGE: usize = 1;
    pub const POOL: usize = 4;
    pub const INPUT_ACCOUNT: usize = 5;
    pub const OUTPUT_ACCOUNT: usize = 6;
    pub const INPUT_VAULT: usize = 7;
    pub const OUTPUT_VAULT: usize = 8;
    pub const OBSERVATION: usize = 13;
}

/// A chain on which the swap of `accounts` would be accepted.
pub struct AcceptedSwap {
    pub svm: Svm,
    pub pool: Pool,
    pub user: User,
    pub accounts: SwapAccounts,
}

impl AcceptedSwap {
    /// On a pool of two SPL tokens.
    pub fn set() -> Self {
        Self::of(&PoolSpec::plain())
    }

    /// On this pool.
    pub fn of(setup: &PoolSpec) -> Self {
        let mut svm = Svm::new();
        let pool = svm.open("pool", setup);
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
    pub fn refused(&mut self, instruction: Instruction) -> Refused {
        let names: Vec<_> = instruction
            .accounts
            .iter()
            .map(|meta| meta.pubkey)
            .collect();
        let before = self.state(&names);
        let harmless = guarded_swap(&self.accounts, AMOUNT_IN, 1);
        let sent = self
            .svm
            .send(&[harmless, instruction], &[&self.user.keypair]);
        let Err(refused) = sent else {
            panic!("the guard accepted");
        };
        assert_eq!(refused.instruction, 1, "{refused:?}");
        assert_eq!(self.state(&names), before, "something moved");
        refused
    }

    /// Sends the instruction and checks that it failed with this code, raised by this program.
    pub fn assert_refused(&mut self, instruction: Instruction, by: Pubkey, code: u32) {
        let refused = self.refused(instruction);
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (by, code),
            "{refused:?}"
        );
    }

    /// The accounts of these names, and the user's own.
    fn state(&self, names: &[Pubkey]) -> Vec<Account> {
        let own = [self.user.accounts.token_0, self.user.accounts.token_1];
        let all = names.iter().copied().chain(own);
        all.map(|key| self.svm.account(key)).collect()
    }

    /// Sends the instruction and checks that the guard itself refuses it, for this reason.
    pub fn assert_guard_refuses(&mut self, instruction: Instruction, error: GuardError) {
        self.assert_refused(instruction, PROGRAM_ID, error.code());
    }

    /// The accepted swap.
    pub fn swap(&self) -> Instruction {
        guarded_swap(&self.accounts, AMOUNT_IN, 1)
    }

    /// The accepted swap with another output account.
    pub fn swap_into(&self, output: Pubkey) -> Instruction {
        let accounts = SwapAccounts {
            output_token_account: output,
            ..self.accounts.clone()
        };
        guarded_swap(&accounts, AMOUNT_IN, 1)
    }

    /// A copy of the user's output account at another address, its data changed by `change`.
    pub fn forged_output(&mut self, owner: Pubkey, change: impl FnOnce(&mut Vec<u8>)) -> Pubkey {
        let mut data = self.svm.account(self.accounts.output_token_account).data;
        change(&mut data);
        let forged = address("forged output account");
        self.svm.place(forged, owner, data);
        forged
    }
}
