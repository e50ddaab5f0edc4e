//! From a priced swap to instructions and an unsigned transaction: pure, so that every combination
//! can be tested without a cluster.

use cpmm::{TokenAccount, ids, instruction::SwapAccounts};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{CompileError, VersionedMessage, v0};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;
use spl_associated_token_account_interface::instruction::{
    create_associated_token_account, create_associated_token_account_idempotent,
};
use spl_token_interface::instruction::{close_account, sync_native};
use swap_guard_interface::{NO_EXPIRY, SwapArgs};

use super::compute_budget::{Work, unit_price};

/// The last slot of the swaps that the API builds: none of its own. A transaction ends with its blockhash, about a
/// minute after it was built, and a caller who wants less sets the last eight bytes of the instruction's data.
const EXPIRY_SLOT: u64 = NO_EXPIRY;

/// The guarded swap as every endpoint offers it. Amounts are smallest units.
#[must_use]
pub fn guarded_swap(accounts: &SwapAccounts, amount_in: u64, minimum_out: u64) -> Instruction {
    let args = SwapArgs {
        amount_in,
        minimum_out,
        expiry_slot: EXPIRY_SLOT,
    };
    swap_guard_interface::swap(accounts, args)
}

/// Everything that decides what a swap's transaction contains.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Accounts of the guarded swap; its token accounts are the user's associated ones.
    pub accounts: SwapAccounts,
    /// What goes in, smallest units.
    pub amount_in: u64,
    /// The least that may come out, smallest units.
    pub minimum_out: u64,
    /// The input token account as it is now.
    pub input: Option<TokenAccount>,
    /// The output token account as it is now.
    pub output: Option<TokenAccount>,
    /// Whether native SOL is wrapped and unwrapped around the swap.
    pub wrap_and_unwrap_sol: bool,
    /// Ceiling of the priority fee, lamports.
    pub priority_fee: u64,
}

/// What happens to the SOL that a swap pays out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolOutput {
    /// The wrapped SOL account is created and closed in the transaction: native SOL arrives.
    Unwrapped,
    /// The wrapped SOL account was there before, so it stays, and the SOL stays wrapped in it.
    LeftWrapped,
}

/// An unsigned transaction, and what it costs to run.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// Wire bytes, with an empty place for the user's signature.
    pub bytes: Vec<u8>,
    /// Compute unit limit.
    pub unit_limit: u32,
    /// Price of a compute unit, micro-lamports.
    pub unit_price: u64,
    /// What happens to SOL that comes out; `None` when none does or wrapping is not asked for.
    pub sol_output: Option<SolOutput>,
}

impl Plan {
    /// Compute units that the swap with its surroundings may use.
    #[must_use]
    pub fn unit_limit(&self) -> u32 {
        let creates =
            u32::from(self.input.is_none()).saturating_add(u32::from(self.output.is_none()));
        Work {
            creates,
            wraps: u32::from(self.wraps_input()).saturating_add(u32::from(self.closes_output())),
            ..Work::swap_only(&self.accounts)
        }
        .unit_limit()
    }

    /// The instructions in their order: unit price, unit limit, creation of absent token accounts,
    /// wrapping, the guarded swap, unwrapping.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction> {
        let unit_limit = self.unit_limit();
        let mut instructions = vec![
            ComputeBudgetInstruction::set_compute_unit_price(unit_price(
                self.priority_fee,
                unit_limit,
            )),
            ComputeBudgetInstruction::set_compute_unit_limit(unit_limit),
        ];
        instructions.extend(self.create_accounts());
        instructions.extend(self.wrap());
        instructions.push(guarded_swap(
            &self.accounts,
            self.amount_in,
            self.minimum_out,
        ));
        instructions.extend(self.unwrap());
        instructions
    }

    /// The unsigned version-0 transaction, paid for by the user.
    ///
    /// # Errors
    /// When the accounts do not fit a message, which 19 accounts always do.
    pub fn transaction(&self, blockhash: Hash) -> Result<Assembled, CompileError> {
        let unit_limit = self.unit_limit();
        let message =
            v0::Message::try_compile(&self.accounts.payer, &self.instructions(), &[], blockhash)?;
        let signatures =
            vec![Signature::default(); usize::from(message.header.num_required_signatures)];
        let transaction = VersionedTransaction {
            signatures,
            message: VersionedMessage::V0(message),
        };
        Ok(Assembled {
            bytes: serialize(&transaction),
            unit_limit,
            unit_price: unit_price(self.priority_fee, unit_limit),
            sol_output: self.sol_output(),
        })
    }

    fn sol_output(&self) -> Option<SolOutput> {
        if !self.wrap_and_unwrap_sol || self.accounts.output_mint != ids::WRAPPED_SOL {
            return None;
        }
        Some(if self.output.is_none() {
            SolOutput::Unwrapped
        } else {
            SolOutput::LeftWrapped
        })
    }

    fn wraps_input(&self) -> bool {
        self.wrap_and_unwrap_sol && self.accounts.input_mint == ids::WRAPPED_SOL
    }

    fn closes_input(&self) -> bool {
        self.wraps_input() && self.input.is_none()
    }

    fn closes_output(&self) -> bool {
        self.sol_output() == Some(SolOutput::Unwrapped)
    }

    fn create_accounts(&self) -> Vec<Instruction> {
        let accounts = &self.accounts;
        let sides = [
            (
                self.input.is_none(),
                self.closes_input(),
                &accounts.input_mint,
                &accounts.input_token_program,
            ),
            (
                self.output.is_none(),
                self.closes_output(),
                &accounts.output_mint,
                &accounts.output_token_program,
            ),
        ];
        sides
            .into_iter()
            .filter(|(absent, ..)| *absent)
            .map(|(_, closed_later, mint, program)| {
                // An account that this transaction closes must be one that it creates: if somebody
                // creates and fills it meanwhile, the transaction fails instead of emptying it.
                let create = if closed_later {
                    create_associated_token_account
                } else {
                    create_associated_token_account_idempotent
                };
                create(&accounts.payer, &accounts.payer, mint, program)
            })
            .collect()
    }

    /// Only what is missing is wrapped; a balance that is wrapped already is used first.
    fn wrap(&self) -> Vec<Instruction> {
        let held = self.input.map_or(0, |account| account.amount);
        let missing = self.amount_in.saturating_sub(held);
        if !self.wraps_input() || missing == 0 {
            return Vec::new();
        }
        let account = &self.accounts.input_token_account;
        let mut instructions = vec![transfer(&self.accounts.payer, account, missing)];
        instructions.extend(sync_native(&ids::SPL_TOKEN, account));
        instructions
    }

    fn unwrap(&self) -> Vec<Instruction> {
        let accounts = &self.accounts;
        let close = |account: &Pubkey| {
            close_account(
                &ids::SPL_TOKEN,
                account,
                &accounts.payer,
                &accounts.payer,
                &[],
            )
        };
        let mut instructions = Vec::new();
        if self.closes_input() {
            instructions.extend(close(&accounts.input_token_account));
        }
        if self.closes_output() {
            instructions.extend(close(&accounts.output_token_account));
        }
        instructions
    }
}

fn serialize(transaction: &VersionedTransaction) -> Vec<u8> {
    wincode::serialize(transaction).expect("a transaction in memory has a wire form")
}

#[cfg(test)]
#[path = "assemble/tests.rs"]
mod tests;
