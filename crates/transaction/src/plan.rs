//! Transaction plan: all that decides a swap's transaction, and its instructions (pure).
//!
//! Without a cluster, so that every combination can be tested.

use cpmm::{TokenAccount, ids, instruction::SwapAccounts};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::CompileError;
use solana_pubkey::Pubkey;
use solana_system_interface::instruction::transfer;
use spl_token_interface::instruction::{close_account, sync_native};
use swap_guard_interface::{NO_EXPIRY, SwapArgs};

use crate::{
    account_creation::{AccountCreation, CreationMethod, SPL_TOKEN_IS_ONE},
    compute_budget::{priority_fee, unit_price},
    compute_table::{self as table, TokenShape},
    costs::Costs,
    exchange::Exchange,
    planned_instruction::{PlannedInstruction, manifest},
    rent::Rent,
    unsigned::{self, SolOutput, UnsignedTransaction},
};

/// One of the user's two token accounts.
#[derive(Clone, Copy, Debug)]
pub struct TokenSide {
    /// What its token is like.
    pub token: TokenShape,
    /// Bump of the associated address.
    pub bump: u8,
    /// The account as it is now; `None` when it is yet to be created.
    pub account: Option<TokenAccount>,
}

/// What a swap is signed for.
#[derive(Clone, Copy, Debug)]
pub struct SwapTerms {
    /// What goes in, smallest units.
    pub amount_in: u64,
    /// The least that may come out, smallest units.
    pub minimum_out: u64,
    /// Last slot in which the swap may execute, if it has one of its own. A transaction ends with its blockhash in any
    /// case, about a minute after it was built.
    pub expiry_slot: Option<u64>,
}

/// The guarded swap as every endpoint offers it.
#[must_use]
pub fn guarded_swap(accounts: &SwapAccounts, terms: SwapTerms) -> Instruction {
    let args = SwapArgs {
        amount_in: terms.amount_in,
        minimum_out: terms.minimum_out,
        expiry_slot: terms.expiry_slot.unwrap_or(NO_EXPIRY),
    };
    swap_guard_interface::swap(accounts, args)
}

/// Everything that decides what a swap's transaction contains.
#[derive(Clone, Debug)]
pub struct TransactionPlan {
    /// Accounts of the guarded swap; its token accounts are the user's associated ones, or the one that the user named
    /// for the output.
    pub accounts: SwapAccounts,
    /// What is signed for.
    pub terms: SwapTerms,
    /// The account that pays.
    pub input: TokenSide,
    /// The account that receives.
    pub output: TokenSide,
    /// Whether the user named the account that receives. What arrives there stays as it is.
    pub named_destination: bool,
    /// Whether native SOL is wrapped and unwrapped around the swap.
    pub wrap_and_unwrap_sol: bool,
    /// Ceiling of the priority fee, lamports.
    pub priority_fee: u64,
    /// Whether the transaction has the legacy format instead of version 0.
    pub legacy: bool,
    /// What the chain asks to keep an account.
    pub rent: Rent,
    /// The program at the exchange's address.
    pub exchange: Exchange,
}

/// The account that receives SOL which is to be unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unwrapping {
    /// The associated account, which is not there yet: created before, closed after.
    Associated,
    /// An account of this transaction alone, because the associated one was there before. Closing that one would take
    /// what else it holds along; and `unwrapLamports`, which takes an amount, needs it when the transaction is
    /// signed, while what the swap pays is known only when it has run.
    Temporary,
}

impl TransactionPlan {
    /// The unsigned transaction, paid for by the user.
    ///
    /// # Errors
    /// When the accounts do not fit a message, which 24 accounts always do.
    pub fn transaction(&self, blockhash: Hash) -> Result<UnsignedTransaction, CompileError> {
        let creations = self.account_creations(blockhash);
        let swap = self.instructions(&creations);
        let budget = table::BUILTIN.saturating_mul(2);
        let unit_limit = swap
            .iter()
            .map(|planned| planned.units)
            .fold(budget, u32::saturating_add);
        let unit_price = unit_price(self.priority_fee, unit_limit);
        let mut instructions = vec![
            PlannedInstruction::new(
                manifest::UNIT_PRICE,
                ComputeBudgetInstruction::set_compute_unit_price(unit_price),
                table::BUILTIN,
            ),
            PlannedInstruction::new(
                manifest::UNIT_LIMIT,
                ComputeBudgetInstruction::set_compute_unit_limit(unit_limit),
                table::BUILTIN,
            ),
        ];
        instructions.extend(swap);
        Ok(UnsignedTransaction {
            bytes: unsigned::compile(&self.accounts.payer, &instructions, self.legacy, blockhash)?,
            instructions,
            unit_limit,
            unit_price,
            costs: Costs::new(
                priority_fee(unit_price, unit_limit),
                creations,
                self.missing_input(),
                self.rent.exempt(0),
            ),
            sol_output: self.sol_output(),
        })
    }

    /// The instructions after those of the compute budget, in their order: creation of absent token accounts, wrapping,
    /// the guarded swap, unwrapping.
    fn instructions(&self, creations: &[AccountCreation]) -> Vec<PlannedInstruction> {
        let mut accounts = self.accounts.clone();
        let user = &self.accounts.payer;
        let (temporary, associated): (Vec<_>, Vec<_>) = creations
            .iter()
            .partition(|creation| creation.is_temporary());
        let mut instructions = Vec::new();
        for creation in associated {
            instructions.extend(creation.instructions(user));
        }
        instructions.extend(self.wrap());
        for creation in temporary {
            instructions.extend(creation.instructions(user));
            accounts.output_token_account = creation.account;
        }
        let units = table::guarded_swap(
            self.exchange,
            self.input.token,
            self.output.token,
            self.terms.expiry_slot.is_some(),
        );
        let swap = guarded_swap(&accounts, self.terms);
        instructions.push(PlannedInstruction::new(manifest::SWAP, swap, units));
        instructions.extend(self.close_accounts(&accounts));
        instructions
    }

    fn sol_output(&self) -> Option<SolOutput> {
        if !self.wrap_and_unwrap_sol || self.accounts.output_mint != ids::WRAPPED_SOL {
            return None;
        }
        Some(if self.named_destination {
            SolOutput::LeftWrapped
        } else {
            SolOutput::Unwrapped
        })
    }

    fn unwrapping(&self) -> Option<Unwrapping> {
        (self.sol_output()? == SolOutput::Unwrapped).then_some(match self.output.account {
            None => Unwrapping::Associated,
            Some(_) => Unwrapping::Temporary,
        })
    }

    fn wraps_input(&self) -> bool {
        self.wrap_and_unwrap_sol && self.accounts.input_mint == ids::WRAPPED_SOL
    }

    fn closes_input(&self) -> bool {
        self.wraps_input() && self.input.account.is_none()
    }

    fn closes_output(&self) -> bool {
        self.unwrapping().is_some()
    }

    /// What must be wrapped beyond what is wrapped already, lamports.
    fn missing_input(&self) -> u64 {
        if !self.wraps_input() {
            return 0;
        }
        let held = self.input.account.map_or(0, |account| account.amount);
        self.terms.amount_in.saturating_sub(held)
    }

    fn creates_output(&self) -> bool {
        self.output.account.is_none() && !self.named_destination
    }

    /// The token accounts that the transaction creates: the absent associated ones, then a temporary one.
    fn account_creations(&self, blockhash: Hash) -> Vec<AccountCreation> {
        let accounts = &self.accounts;
        let associated = |side: TokenSide, account, mint, token_program, closed| AccountCreation {
            account,
            mint,
            rent: self.rent.exempt(side.token.kind.account_len()),
            closed,
            method: CreationMethod::Associated {
                token: side.token,
                token_program,
                bump: side.bump,
            },
        };
        let mut creations = Vec::new();
        if self.input.account.is_none() {
            creations.push(associated(
                self.input,
                accounts.input_token_account,
                accounts.input_mint,
                accounts.input_token_program,
                self.closes_input(),
            ));
        }
        if self.creates_output() {
            creations.push(associated(
                self.output,
                accounts.output_token_account,
                accounts.output_mint,
                accounts.output_token_program,
                self.closes_output(),
            ));
        }
        if self.unwrapping() == Some(Unwrapping::Temporary) {
            creations.push(AccountCreation::temporary(
                &accounts.payer,
                blockhash,
                self.rent,
            ));
        }
        creations
    }

    /// Only what is missing is wrapped; a balance that is wrapped already is used first.
    fn wrap(&self) -> Vec<PlannedInstruction> {
        let missing = self.missing_input();
        if missing == 0 {
            return Vec::new();
        }
        let account = &self.accounts.input_token_account;
        let sync = sync_native(&ids::SPL_TOKEN, account).expect(SPL_TOKEN_IS_ONE);
        vec![
            PlannedInstruction::new(
                manifest::WRAP,
                transfer(&self.accounts.payer, account, missing),
                table::BUILTIN,
            ),
            PlannedInstruction::new(manifest::SYNC, sync, table::SYNC_NATIVE),
        ]
    }

    fn close_accounts(&self, accounts: &SwapAccounts) -> Vec<PlannedInstruction> {
        let owner = &accounts.payer;
        let close = |account: &Pubkey| {
            let instruction =
                close_account(&ids::SPL_TOKEN, account, owner, owner, &[]).expect(SPL_TOKEN_IS_ONE);
            PlannedInstruction::new(manifest::UNWRAP, instruction, table::CLOSE_ACCOUNT)
        };
        let closed = [
            (self.closes_input(), &accounts.input_token_account),
            (self.closes_output(), &accounts.output_token_account),
        ];
        closed
            .into_iter()
            .filter(|(closes, _)| *closes)
            .map(|(_, account)| close(account))
            .collect()
    }
}

#[cfg(test)]
mod tests;
