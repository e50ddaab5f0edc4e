//! From a priced swap to instructions and an unsigned transaction: pure, so that every combination
//! can be tested without a cluster.

use cpmm::{TokenAccount, ids, instruction::SwapAccounts};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::{AccountMeta, Instruction};
use solana_message::{CompileError, Message, VersionedMessage, v0};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_system_interface::instruction::{create_account_with_seed, transfer};
use solana_transaction::versioned::VersionedTransaction;
use spl_token_interface::instruction::{close_account, initialize_account3, sync_native};
use swap_guard_interface::{ASSOCIATED_TOKEN_PROGRAM, NO_EXPIRY, SwapArgs};

use crate::{
    compute_budget::{priority_fee, unit_price},
    compute_table::{self as table, TokenKind, TokenShape},
    costs::{Costs, Created},
    exchange::Exchange,
    planned_instruction::{
        Step,
        manifest::{self, Entry},
    },
    rent::Rent,
};

/// Longest seed that the system program takes, characters.
const SEED_LEN: usize = 32;

/// One of the user's two token accounts.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// What its token is like.
    pub token: TokenShape,
    /// Bump of the associated address.
    pub bump: u8,
    /// The account as it is now; `None` when it is yet to be created.
    pub account: Option<TokenAccount>,
}

/// What a swap is signed for.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
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
pub fn guarded_swap(accounts: &SwapAccounts, terms: Terms) -> Instruction {
    let args = SwapArgs {
        amount_in: terms.amount_in,
        minimum_out: terms.minimum_out,
        expiry_slot: terms.expiry_slot.unwrap_or(NO_EXPIRY),
    };
    swap_guard_interface::swap(accounts, args)
}

/// Everything that decides what a swap's transaction contains.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Accounts of the guarded swap; its token accounts are the user's associated ones, or the one that the user named
    /// for the output.
    pub accounts: SwapAccounts,
    /// What is signed for.
    pub terms: Terms,
    /// The account that pays.
    pub input: Side,
    /// The account that receives.
    pub output: Side,
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

/// What happens to the SOL that a swap pays out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolOutput {
    /// Native SOL arrives: exactly what was received.
    Unwrapped,
    /// It stays wrapped in the account that the user named.
    LeftWrapped,
}

/// An unsigned transaction, and what it costs to run.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// Wire bytes, with an empty place for the user's signature.
    pub bytes: Vec<u8>,
    /// The instructions in it.
    pub steps: Vec<Step>,
    /// Compute unit limit.
    pub unit_limit: u32,
    /// Price of a compute unit, micro-lamports.
    pub unit_price: u64,
    /// What it costs the wallet.
    pub costs: Costs,
    /// What happens to SOL that comes out; `None` when none does or wrapping is not asked for.
    pub sol_output: Option<SolOutput>,
}

/// The account that receives SOL which is to be unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unwrapping {
    /// The associated account, which is not there yet: created before, closed after.
    Associated,
    /// An account of this transaction alone, because the associated one was there before. Closing that one would take
    /// what else it holds along; and `unwrapLamports`, which takes an amount, must be told it when the transaction is
    /// signed, while what the swap pays is known only when it has run.
    Temporary,
}

impl Plan {
    /// The unsigned transaction, paid for by the user.
    ///
    /// # Errors
    /// When the accounts do not fit a message, which 24 accounts always do.
    pub fn transaction(&self, blockhash: Hash) -> Result<Assembled, CompileError> {
        let mut steps = self.steps(blockhash);
        let budget = table::BUILTIN.saturating_mul(2);
        let unit_limit = steps
            .iter()
            .map(|step| step.units)
            .fold(budget, u32::saturating_add);
        let unit_price = unit_price(self.priority_fee, unit_limit);
        steps.splice(
            0..0,
            [
                step(
                    manifest::UNIT_PRICE,
                    ComputeBudgetInstruction::set_compute_unit_price(unit_price),
                    table::BUILTIN,
                ),
                step(
                    manifest::UNIT_LIMIT,
                    ComputeBudgetInstruction::set_compute_unit_limit(unit_limit),
                    table::BUILTIN,
                ),
            ],
        );
        Ok(Assembled {
            bytes: self.compile(&steps, blockhash)?,
            steps,
            unit_limit,
            unit_price,
            costs: self.costs(blockhash, priority_fee(unit_price, unit_limit)),
            sol_output: self.sol_output(),
        })
    }

    fn compile(&self, steps: &[Step], blockhash: Hash) -> Result<Vec<u8>, CompileError> {
        let instructions: Vec<Instruction> =
            steps.iter().map(|step| step.instruction.clone()).collect();
        let payer = &self.accounts.payer;
        let message = if self.legacy {
            let message = Message::new_with_blockhash(&instructions, Some(payer), &blockhash);
            VersionedMessage::Legacy(message)
        } else {
            VersionedMessage::V0(v0::Message::try_compile(
                payer,
                &instructions,
                &[],
                blockhash,
            )?)
        };
        let signatures = usize::from(message.header().num_required_signatures);
        let transaction = VersionedTransaction {
            signatures: vec![Signature::default(); signatures],
            message,
        };
        Ok(wincode::serialize(&transaction).expect("a transaction in memory has a wire form"))
    }

    /// The instructions after those of the compute budget, in their order: creation of absent token accounts, wrapping,
    /// the guarded swap, unwrapping.
    fn steps(&self, blockhash: Hash) -> Vec<Step> {
        let mut accounts = self.accounts.clone();
        let mut steps = self.create_accounts();
        steps.extend(self.wrap());
        if self.unwrapping() == Some(Unwrapping::Temporary) {
            let (address, seed) = temporary_account(&accounts.payer, blockhash);
            steps.extend(self.create_temporary(&address, &seed));
            accounts.output_token_account = address;
        }
        let units = table::guarded_swap(self.exchange, self.input.token, self.output.token);
        let swap = guarded_swap(&accounts, self.terms);
        steps.push(step(manifest::SWAP, swap, units));
        steps.extend(self.close_accounts(&accounts));
        steps
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

    fn create_accounts(&self) -> Vec<Step> {
        let accounts = &self.accounts;
        let sides = [
            (
                self.input.account.is_none(),
                self.closes_input(),
                &accounts.input_token_account,
                &accounts.input_mint,
                &accounts.input_token_program,
                &self.input,
            ),
            (
                self.creates_output(),
                self.closes_output(),
                &accounts.output_token_account,
                &accounts.output_mint,
                &accounts.output_token_program,
                &self.output,
            ),
        ];
        sides
            .into_iter()
            .filter(|(absent, ..)| *absent)
            .map(|(_, closed_later, address, mint, program, side)| {
                // An account that this transaction closes must be one that it creates: if somebody
                // creates and fills it meanwhile, the transaction fails instead of emptying it.
                let how = if closed_later {
                    CREATE
                } else {
                    CREATE_IF_ABSENT
                };
                let instruction = create_account(&accounts.payer, address, mint, program, how);
                let units = table::create_account(side.token, side.bump);
                step(manifest::CREATE_TOKEN_ACCOUNT, instruction, units)
            })
            .collect()
    }

    /// Only what is missing is wrapped; a balance that is wrapped already is used first.
    fn wrap(&self) -> Vec<Step> {
        let missing = self.missing_input();
        if missing == 0 {
            return Vec::new();
        }
        let account = &self.accounts.input_token_account;
        let sync = sync_native(&ids::SPL_TOKEN, account).expect(SPL_TOKEN_IS_ONE);
        vec![
            step(
                manifest::WRAP,
                transfer(&self.accounts.payer, account, missing),
                table::BUILTIN,
            ),
            step(manifest::SYNC, sync, table::SYNC_NATIVE),
        ]
    }

    fn create_temporary(&self, address: &Pubkey, seed: &str) -> [Step; 2] {
        let payer = &self.accounts.payer;
        let len = TokenKind::Spl.account_len();
        let space = u64::try_from(len).unwrap_or(u64::MAX);
        let create = create_account_with_seed(
            payer,
            address,
            payer,
            seed,
            self.rent.exempt(len),
            space,
            &ids::SPL_TOKEN,
        );
        let initialize = initialize_account3(&ids::SPL_TOKEN, address, &ids::WRAPPED_SOL, payer)
            .expect(SPL_TOKEN_IS_ONE);
        [
            step(manifest::CREATE_TEMPORARY, create, table::BUILTIN),
            step(
                manifest::INITIALIZE_TEMPORARY,
                initialize,
                table::INITIALIZE_ACCOUNT,
            ),
        ]
    }

    fn close_accounts(&self, accounts: &SwapAccounts) -> Vec<Step> {
        let owner = &accounts.payer;
        let close = |account: &Pubkey| {
            let instruction =
                close_account(&ids::SPL_TOKEN, account, owner, owner, &[]).expect(SPL_TOKEN_IS_ONE);
            step(manifest::UNWRAP, instruction, table::CLOSE_ACCOUNT)
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

    fn costs(&self, blockhash: Hash, priority_fee: u64) -> Costs {
        let accounts = &self.accounts;
        let created = |account, mint, kind: TokenKind, closed| Created {
            account,
            mint,
            rent: self.rent.exempt(kind.account_len()),
            closed,
        };
        let mut all = Vec::new();
        if self.input.account.is_none() {
            all.push(created(
                accounts.input_token_account,
                accounts.input_mint,
                self.input.token.kind,
                self.closes_input(),
            ));
        }
        if self.creates_output() {
            all.push(created(
                accounts.output_token_account,
                accounts.output_mint,
                self.output.token.kind,
                self.closes_output(),
            ));
        }
        if self.unwrapping() == Some(Unwrapping::Temporary) {
            let (address, _) = temporary_account(&accounts.payer, blockhash);
            all.push(created(address, ids::WRAPPED_SOL, TokenKind::Spl, true));
        }
        Costs::new(priority_fee, all, self.missing_input(), self.rent.exempt(0))
    }
}

/// Numbers of two instructions of the associated token program.
const CREATE: u8 = 0;
const CREATE_IF_ABSENT: u8 = 1;

/// Creates the associated account at `address`, which is known already: the library's functions derive it anew, which
/// would be the larger part of building a transaction.
fn create_account(
    owner: &Pubkey,
    address: &Pubkey,
    mint: &Pubkey,
    program: &Pubkey,
    how: u8,
) -> Instruction {
    Instruction {
        program_id: ASSOCIATED_TOKEN_PROGRAM,
        accounts: vec![
            AccountMeta::new(*owner, true),
            AccountMeta::new(*address, false),
            AccountMeta::new_readonly(*owner, false),
            AccountMeta::new_readonly(*mint, false),
            AccountMeta::new_readonly(solana_system_interface::program::ID, false),
            AccountMeta::new_readonly(*program, false),
        ],
        data: vec![how],
    }
}

/// Why building an instruction of the token program cannot fail.
const SPL_TOKEN_IS_ONE: &str = "SPL Token is a token program";

fn step((name, roles): Entry, instruction: Instruction, units: u32) -> Step {
    debug_assert_eq!(roles.len(), instruction.accounts.len(), "{name}");
    Step {
        name,
        roles,
        instruction,
        units,
    }
}

/// An address of the user's own that nobody can know before the transaction is built, so that nobody can occupy it: it
/// follows from the blockhash. Two transactions with the same one may share it, because each closes it at its end.
fn temporary_account(user: &Pubkey, blockhash: Hash) -> (Pubkey, String) {
    let seed: String = blockhash.to_string().chars().take(SEED_LEN).collect();
    let address = Pubkey::create_with_seed(user, &seed, &ids::SPL_TOKEN)
        .expect("a seed of at most 32 characters, for an owner that is not a derived address");
    (address, seed)
}

#[cfg(test)]
mod tests;
