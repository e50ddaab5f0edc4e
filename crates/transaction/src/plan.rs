//! Transaction plan: all that decides a swap's transaction, and its instructions (pure).
//!
//! Without a cluster, so that every combination can be tested.

mod budget;
mod parts;

use std::sync::Arc;

use cpmm::{TokenAccount, ids, instruction::SwapAccounts};
use solana_hash::Hash;
use solana_message::CompileError;
use solana_pubkey::Pubkey;
use solana_system_interface::instruction::transfer;
use spl_token_interface::instruction::sync_native;

use self::budget::{PlannedUnits, budget_instructions, limit_of_loaded_bytes};
pub use self::parts::{ApartSwap, SwapParts};
use crate::{
    account_closing::AccountClosing,
    account_creation::{AccountCreation, CreationMethod, SPL_TOKEN_IS_ONE},
    compute_budget::{priority_fee, unit_price},
    compute_table::{self as table, TokenKind, TokenShape},
    compute_units::ExchangeUnits,
    costs::Costs,
    durable_nonce::DurableNonce,
    lookup_table::LookupTable,
    planned_instruction::{PlannedInstruction, manifest},
    platform_fee::PlatformFee,
    rent::Rent,
    route::{Route, SwapTerms},
    unsigned::{self, Format, MessageBudget, SolOutput, UnsignedTransaction},
    version::TransactionVersion,
};

/// One of the token accounts of a swap.
#[derive(Clone, Copy, Debug)]
pub struct TokenSide {
    /// What its token is like.
    pub token: TokenShape,
    /// Bump of the associated address.
    pub bump: u8,
    /// The account as it is now; `None` when it is yet to be created.
    pub account: Option<TokenAccount>,
}

/// Everything that decides what a swap's transaction contains.
#[derive(Clone, Debug)]
pub struct TransactionPlan {
    /// Way of the guarded swap; its token accounts are the associated ones of the user, or of the receiver for the
    /// output, or the one that was named for the output.
    pub route: Route,
    /// What is signed for.
    pub terms: SwapTerms,
    /// The account that pays.
    pub input: TokenSide,
    /// The account between two pools.
    pub middle: Option<TokenSide>,
    /// The account that receives.
    pub output: TokenSide,
    /// The wallet that pays fees and rents, and gets back the rents of what is closed.
    pub fee_payer: Pubkey,
    /// The wallet that gets the output, if it is not the user's.
    pub receiver: Option<Pubkey>,
    /// What a platform gets of the input, beside what is signed for.
    pub platform_fee: Option<PlatformFee>,
    /// What the transaction carries in place of a recent blockhash.
    pub nonce: Option<DurableNonce>,
    /// Whether the account that pays was named. What is in it is swapped as it is.
    pub named_source: bool,
    /// Whether the account that receives was named. What arrives there stays as it is.
    pub named_destination: bool,
    /// Whether the swap is for a transaction of the caller's own: no account of one transaction alone takes part, so that it
    /// is the same instruction whether the caller uses what surrounds it or not.
    pub apart: bool,
    /// Whether native SOL is wrapped and unwrapped around the swap.
    pub wrap_and_unwrap_sol: bool,
    /// Whether all that goes in is wrapped, whatever is wrapped already.
    pub wraps_all: bool,
    /// Ceiling of the priority fee, lamports.
    pub priority_fee: u64,
    /// Compute units beyond those of the instructions, for what a wallet appends.
    pub unit_headroom: u32,
    /// Bytes that the transaction leaves free of what the network carries.
    pub size_headroom: usize,
    /// Wire format of the transaction.
    pub version: TransactionVersion,
    /// The table that version 0 may name accounts by.
    pub lookup_table: Option<Arc<LookupTable>>,
    /// What the chain asks to keep an account.
    pub rent: Rent,
    /// What the exchange's part of the swap uses.
    pub exchange_units: ExchangeUnits,
    /// Whether the cluster's token program has `unwrapLamports`, which parts SOL from rent.
    pub unwraps_lamports: bool,
}

/// The wrapped SOL account of a swap that pays or gets native SOL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrapping {
    /// The associated account, which is not there yet: created before, closed after.
    Associated,
    /// An account of this transaction alone, because the associated one was there before: closing that one would take
    /// along what else it holds.
    Temporary,
    /// The associated account as it is, filled up by what is missing.
    Held,
}

impl TransactionPlan {
    /// The unsigned transaction, with this blockhash unless a nonce takes its place. What it may load is limited where there is
    /// room for that instruction: it saves cost, and nothing else depends on it.
    ///
    /// # Errors
    /// When the accounts do not fit a message, which 40 accounts always do.
    pub fn transaction(&self, blockhash: Hash) -> Result<UnsignedTransaction, CompileError> {
        let limited = self.built(blockhash, true)?;
        if self.fits(&limited) {
            return Ok(limited);
        }
        self.built(blockhash, false)
    }

    /// Whether the network carries the transaction with what is to be left free.
    pub(crate) fn fits(&self, unsigned: &UnsignedTransaction) -> bool {
        unsigned.bytes.len().saturating_add(self.size_headroom) <= self.version.size_limit()
    }

    fn built(&self, blockhash: Hash, limited: bool) -> Result<UnsignedTransaction, CompileError> {
        let blockhash = self.nonce.map_or(blockhash, |nonce| nonce.value);
        let advance = self.nonce.map(|nonce| nonce.advance());
        let creations = self.account_creations(blockhash);
        let swap = self.parts(&creations).into_instructions();
        let instructed = self.version.has_budget_instructions();
        let loaded_bytes = self.loaded_bytes(&swap);
        let limited = limited || !instructed;
        let loads = (limited && instructed).then(|| limit_of_loaded_bytes(loaded_bytes));
        let PlannedUnits {
            modelled: modelled_units,
            planned: planned_units,
            limit: unit_limit,
        } = self.units(advance.iter().chain(&loads).chain(&swap), instructed);
        let unit_price = unit_price(self.priority_fee, unit_limit);
        // A message that names the fee itself needs no price, and so no rounding.
        let (budget, priority_fee) = if instructed {
            let fee = priority_fee(unit_price, unit_limit);
            let budget = budget_instructions(unit_price, unit_limit);
            (Some(budget), fee)
        } else {
            (None, self.priority_fee)
        };
        let budget = budget.into_iter().flatten().chain(loads);
        let instructions: Vec<_> = advance.into_iter().chain(budget).chain(swap).collect();
        let budget = MessageBudget {
            unit_limit,
            priority_fee,
            loaded_bytes,
        };
        let format = Format {
            version: self.version,
            lookup_table: self.lookup_table.as_deref(),
        };
        let payer = &self.fee_payer;
        let compiled = unsigned::compile(payer, &instructions, format, budget, blockhash)?;
        Ok(UnsignedTransaction {
            bytes: compiled.bytes,
            lookup_table: compiled.lookup_table,
            blockhash,
            instructions,
            modelled_units,
            planned_units,
            unit_limit,
            loaded_bytes: limited.then_some(loaded_bytes),
            unit_price,
            costs: self.costs(priority_fee, creations),
            sol_output: self.sol_output(),
        })
    }

    /// The swap, and the instructions that a transaction of the caller's own may have around it.
    #[must_use]
    pub fn apart(&self) -> ApartSwap {
        let plan = Self {
            apart: true,
            ..self.clone()
        };
        // Only an account of one transaction alone follows from a blockhash.
        let creations = plan.account_creations(Hash::default());
        let parts = plan.parts(&creations);
        let all = parts.clone().into_instructions();
        let unit_limit = plan.units(all.iter(), true).limit;
        let unit_price = unit_price(plan.priority_fee, unit_limit);
        ApartSwap {
            budget: budget_instructions(unit_price, unit_limit),
            parts,
            unit_limit,
            unit_price,
            costs: plan.costs(priority_fee(unit_price, unit_limit), creations),
            sol_output: plan.sol_output(),
        }
    }

    fn costs(&self, priority_fee: u64, creations: Vec<AccountCreation>) -> Costs {
        Costs::new(
            self.fee_payer == *self.user(),
            priority_fee,
            creations,
            self.missing_input(),
            self.native_platform_fee(),
            self.rent.exempt(0),
        )
    }

    /// The instructions after those of the compute budget.
    fn parts(&self, creations: &[AccountCreation]) -> SwapParts {
        let route = self.route_through(creations);
        let (temporary, associated): (Vec<_>, Vec<_>) = creations
            .iter()
            .partition(|creation| creation.is_temporary());
        let mut set_up = Vec::new();
        for creation in associated.into_iter().chain(temporary) {
            set_up.extend(creation.instructions(&self.fee_payer));
        }
        set_up.extend(self.wrap(&route.first().input_token_account));
        set_up.extend(self.platform_fee.map(|fee| match self.wrapping() {
            Some(_) => fee.pay_native(self.user()),
            None => fee.pay_tokens(route.first(), self.input.token),
        }));
        let closings = self.closings(&route).into_iter();
        SwapParts {
            set_up,
            swap: self.guarded_swap(&route),
            clean_up: closings
                .flat_map(|closing| closing.instructions(self.user()))
                .collect(),
        }
    }

    fn guarded_swap(&self, route: &Route) -> PlannedInstruction {
        // SOL reaches its receiver when it is unwrapped; up to then the account is the user's.
        let receiver = self
            .receiver
            .as_ref()
            .filter(|_| self.unwrapping().is_none());
        PlannedInstruction::new(
            route.label(),
            route.guarded_swap(self.terms, receiver),
            route.units(self.terms, self.exchange_units),
        )
    }

    /// The route with the temporary account, if one is created, in its place.
    fn route_through(&self, creations: &[AccountCreation]) -> Route {
        let mut route = self.route.clone();
        let temporary = creations.iter().find(|creation| creation.is_temporary());
        if let Some(temporary) = temporary {
            if self.wrapping() == Some(Wrapping::Temporary) {
                route.first_mut().input_token_account = temporary.account;
            } else {
                route.last_mut().output_token_account = temporary.account;
            }
        }
        route
    }

    const fn user(&self) -> &Pubkey {
        &self.route.first().payer
    }

    fn sol_output(&self) -> Option<SolOutput> {
        if !self.wrap_and_unwrap_sol || self.route.last().output_mint != ids::WRAPPED_SOL {
            return None;
        }
        // Without an account of its own, only one that is created can be closed, and only the user's.
        let stays = self.apart && (self.output.account.is_some() || self.receiver.is_some());
        Some(if self.named_destination || stays {
            SolOutput::LeftWrapped
        } else if self.rent_to(self.sol_receiver()) == self.fee_payer {
            SolOutput::Unwrapped
        } else {
            SolOutput::UnwrappedWithRent
        })
    }

    /// Where SOL that is to be unwrapped arrives. The account is the user's, even where another wallet gets the SOL.
    fn unwrapping(&self) -> Option<Wrapping> {
        (self.sol_output()? != SolOutput::LeftWrapped).then_some(match self.output.account {
            None => Wrapping::Associated,
            Some(_) => Wrapping::Temporary,
        })
    }

    /// The wallet that gets SOL that comes out.
    fn sol_receiver(&self) -> Pubkey {
        self.receiver.unwrap_or(*self.user())
    }

    /// The wallet that gets the rent of an account whose SOL goes to `sol_to`. Closing it pays both to one address; where they
    /// cannot be parted before, the one that SOL is for gets the rent too.
    fn rent_to(&self, sol_to: Pubkey) -> Pubkey {
        if self.unwraps_lamports {
            self.fee_payer
        } else {
            sol_to
        }
    }

    /// The wallet that gets what is left of SOL that was wrapped; none where nothing is.
    fn rest_to(&self) -> Option<Pubkey> {
        // An exact input leaves nothing.
        self.route.is_exact_out().then_some(*self.user())
    }

    /// The wallet that gets the rent of the account in which SOL was wrapped.
    fn wrapping_rent_to(&self) -> Pubkey {
        self.rest_to()
            .map_or(self.fee_payer, |user| self.rent_to(user))
    }

    /// Where SOL that is to be wrapped is paid from. An exact output leaves a rest, which only the closing of an account
    /// without anything else unwraps.
    fn wrapping(&self) -> Option<Wrapping> {
        let is_sol = self.route.first().input_mint == ids::WRAPPED_SOL;
        let wraps = self.wrap_and_unwrap_sol && is_sol && !self.named_source;
        wraps.then_some(match self.input.account {
            None => Wrapping::Associated,
            Some(_) if self.route.is_exact_out() && !self.apart => Wrapping::Temporary,
            Some(_) => Wrapping::Held,
        })
    }

    /// What a platform gets as native SOL, lamports: it is never wrapped where the swap's own input would be.
    fn native_platform_fee(&self) -> u64 {
        let fee = self.platform_fee.filter(|_| self.wrapping().is_some());
        fee.map_or(0, |fee| fee.amount)
    }

    /// What must be wrapped beyond what is wrapped already, lamports.
    fn missing_input(&self) -> u64 {
        let held = match self.wrapping() {
            None => return 0,
            Some(Wrapping::Held) if !self.wraps_all => {
                self.input.account.map_or(0, |account| account.amount)
            }
            Some(_) => 0,
        };
        self.terms.amount_in.saturating_sub(held)
    }

    /// Whether the account between two pools can be closed after the swap: with a transfer fee it keeps what the first
    /// pool's payment withheld, and the token program closes no account that does.
    fn closes_middle(&self) -> bool {
        let closable = |side: TokenSide| {
            side.account.is_none() && side.token.kind != TokenKind::Token2022WithFee
        };
        self.middle.is_some_and(closable)
    }

    /// The token accounts that the transaction creates: the absent associated ones, then a temporary one.
    fn account_creations(&self, blockhash: Hash) -> Vec<AccountCreation> {
        let (first, last) = (self.route.first(), self.route.last());
        let user = self.user();
        let mut creations = Vec::new();
        if self.input.account.is_none() {
            let closed = self.wrapping() == Some(Wrapping::Associated);
            let rent_to = closed.then(|| self.wrapping_rent_to());
            creations.push(self.associated(self.input, input_of(first), user, rent_to));
        }
        if let Some(middle) = self.middle.filter(|middle| middle.account.is_none()) {
            let rent_to = self.closes_middle().then_some(self.fee_payer);
            creations.push(self.associated(middle, input_of(last), user, rent_to));
        }
        if self.output.account.is_none() && !self.named_destination {
            let unwrapped = self.unwrapping().is_some();
            let owner = self
                .receiver
                .as_ref()
                .filter(|_| !unwrapped)
                .unwrap_or(user);
            let rent_to = unwrapped.then(|| self.rent_to(self.sol_receiver()));
            creations.push(self.associated(self.output, output_of(last), owner, rent_to));
        }
        let fee = self.platform_fee.filter(|fee| !fee.is_there);
        if let Some(fee) = fee.filter(|_| self.wrapping().is_none()) {
            let side = TokenSide {
                bump: fee.bump,
                ..self.input
            };
            let (_, mint, token_program) = input_of(first);
            let account = (fee.account, mint, token_program);
            creations.push(self.associated(side, account, &fee.wallet, None));
        }
        let rent_to = if self.wrapping() == Some(Wrapping::Temporary) {
            Some(self.wrapping_rent_to())
        } else {
            let unwraps = self.unwrapping() == Some(Wrapping::Temporary);
            unwraps.then(|| self.rent_to(self.sol_receiver()))
        };
        let seed = || match self.nonce {
            None => blockhash.to_string(),
            Some(nonce) => nonce.seed(self.terms),
        };
        let temporary = |rent_to| AccountCreation::temporary(user, &seed(), self.rent, rent_to);
        creations.extend(rent_to.map(temporary));
        creations
    }

    fn associated(
        &self,
        side: TokenSide,
        (account, mint, token_program): (Pubkey, Pubkey, Pubkey),
        owner: &Pubkey,
        rent_to: Option<Pubkey>,
    ) -> AccountCreation {
        AccountCreation {
            account,
            mint,
            owner: *owner,
            rent: self.rent.exempt(side.token.account_len()),
            rent_to,
            method: CreationMethod::Associated {
                token: side.token,
                token_program,
                bump: side.bump,
            },
        }
    }

    /// Wraps what is missing, or all: swaps that are built at the same time would else count one balance twice.
    fn wrap(&self, account: &Pubkey) -> Vec<PlannedInstruction> {
        let missing = self.missing_input();
        if missing == 0 {
            return Vec::new();
        }
        let sync = sync_native(&ids::SPL_TOKEN, account).expect(SPL_TOKEN_IS_ONE);
        vec![
            PlannedInstruction::new(
                manifest::WRAP,
                transfer(self.user(), account, missing),
                table::BUILTIN,
            ),
            PlannedInstruction::new(manifest::SYNC, sync, table::SYNC_NATIVE),
        ]
    }

    /// What is unwrapped and closed after the swap.
    fn closings(&self, route: &Route) -> Vec<AccountClosing> {
        let (first, last) = (route.first(), route.last());
        let closing = |account, token_program, sol_to: Option<Pubkey>, is_wrapped_sol| {
            let rent_to = sol_to.map_or(self.fee_payer, |wallet| self.rent_to(wallet));
            AccountClosing {
                account,
                token_program,
                is_wrapped_sol,
                sol_to,
                rent_to,
            }
        };
        let mut closings = Vec::new();
        if let Some(Wrapping::Associated | Wrapping::Temporary) = self.wrapping() {
            let account = first.input_token_account;
            closings.push(closing(account, ids::SPL_TOKEN, self.rest_to(), true));
        }
        if self.closes_middle() {
            let is_wrapped_sol = last.input_mint == ids::WRAPPED_SOL;
            let (account, program) = (last.input_token_account, last.input_token_program);
            closings.push(closing(account, program, None, is_wrapped_sol));
        }
        if self.unwrapping().is_some() {
            let (account, sol_to) = (last.output_token_account, self.sol_receiver());
            closings.push(closing(account, ids::SPL_TOKEN, Some(sol_to), true));
        }
        closings
    }
}

const fn input_of(swap: &SwapAccounts) -> (Pubkey, Pubkey, Pubkey) {
    (
        swap.input_token_account,
        swap.input_mint,
        swap.input_token_program,
    )
}

const fn output_of(swap: &SwapAccounts) -> (Pubkey, Pubkey, Pubkey) {
    (
        swap.output_token_account,
        swap.output_mint,
        swap.output_token_program,
    )
}

#[cfg(test)]
mod tests;
