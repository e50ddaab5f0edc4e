//! Route: the accounts of a swap through one pool or two, and the guard's instruction for it (pure).

use cpmm::instruction::SwapAccounts;
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;
use swap_guard_interface::{
    ExactOutArgs, NO_EXPIRY, SwapArgs, TwoHopAccounts, swap, swap_exact_out, swap_exact_out_to,
    swap_to, swap_two_hops, swap_two_hops_to,
};

use crate::{
    compute_table::guard,
    compute_units::ExchangeUnits,
    planned_instruction::{Label, manifest},
};

/// What a swap is signed for, smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapTerms {
    /// What goes in; for an exact output the most that may go in.
    pub amount_in: u64,
    /// The least that may come out; for an exact output exactly what does.
    pub minimum_out: u64,
    /// Last slot in which the swap may execute, if it has one of its own. A transaction ends with its blockhash in any
    /// case, 150 blocks after that.
    pub expiry_slot: Option<u64>,
}

/// The way of a swap, one for each form of the guard's instruction. Its token accounts are the user's, and the last one
/// that receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// An exact input through one pool.
    ExactIn(SwapAccounts),
    /// An exact output through one pool.
    ExactOut(SwapAccounts),
    /// An exact input through two pools. The guard has no exact output of two: it would need the second pool's price
    /// before the first one's swap.
    TwoHops(Box<TwoHopAccounts>),
}

impl Route {
    /// Through two pools, of which the second takes what the first pays, from the same account.
    #[must_use]
    pub fn two_hops(first: SwapAccounts, second: SwapAccounts) -> Self {
        Self::TwoHops(Box::new(TwoHopAccounts { first, second }))
    }

    /// The swap that takes the input.
    #[must_use]
    pub const fn first(&self) -> &SwapAccounts {
        match self {
            Self::ExactIn(accounts) | Self::ExactOut(accounts) => accounts,
            Self::TwoHops(accounts) => &accounts.first,
        }
    }

    /// The swap that pays the output.
    #[must_use]
    pub const fn last(&self) -> &SwapAccounts {
        match self {
            Self::ExactIn(accounts) | Self::ExactOut(accounts) => accounts,
            Self::TwoHops(accounts) => &accounts.second,
        }
    }

    /// As [`Route::first`], to be changed.
    pub fn first_mut(&mut self) -> &mut SwapAccounts {
        match self {
            Self::ExactIn(accounts) | Self::ExactOut(accounts) => accounts,
            Self::TwoHops(accounts) => &mut accounts.first,
        }
    }

    /// As [`Route::last`], to be changed.
    pub fn last_mut(&mut self) -> &mut SwapAccounts {
        match self {
            Self::ExactIn(accounts) | Self::ExactOut(accounts) => accounts,
            Self::TwoHops(accounts) => &mut accounts.second,
        }
    }

    /// Whether the output is what is fixed.
    #[must_use]
    pub const fn is_exact_out(&self) -> bool {
        matches!(self, Self::ExactOut(_))
    }

    /// The guarded swap as every endpoint offers it. With a receiver the output account must be that wallet's, and else
    /// the user's.
    #[must_use]
    pub fn guarded_swap(&self, terms: SwapTerms, receiver: Option<&Pubkey>) -> Instruction {
        let expiry_slot = terms.expiry_slot.unwrap_or(NO_EXPIRY);
        let exact_in = SwapArgs {
            amount_in: terms.amount_in,
            minimum_out: terms.minimum_out,
            expiry_slot,
        };
        let exact_out = ExactOutArgs {
            maximum_in: terms.amount_in,
            amount_out: terms.minimum_out,
            expiry_slot,
        };
        match (self, receiver) {
            (Self::ExactIn(accounts), None) => swap(accounts, exact_in),
            (Self::ExactIn(accounts), Some(receiver)) => swap_to(accounts, exact_in, receiver),
            (Self::ExactOut(accounts), None) => swap_exact_out(accounts, exact_out),
            (Self::ExactOut(accounts), Some(receiver)) => {
                swap_exact_out_to(accounts, exact_out, receiver)
            }
            (Self::TwoHops(accounts), None) => swap_two_hops(accounts, exact_in),
            (Self::TwoHops(accounts), Some(receiver)) => {
                swap_two_hops_to(accounts, exact_in, receiver)
            }
        }
    }

    /// What the guarded swap may use: the guard's own part, and the exchange's.
    #[must_use]
    pub const fn units(&self, terms: SwapTerms, exchange: ExchangeUnits) -> u32 {
        let two_hops = matches!(self, Self::TwoHops(_));
        guard(two_hops, terms.expiry_slot.is_some()).saturating_add(exchange.learned)
    }

    /// Name and roles of the guarded swap.
    pub(crate) const fn label(&self) -> Label {
        match self {
            Self::ExactIn(_) | Self::ExactOut(_) => manifest::SWAP,
            Self::TwoHops(_) => manifest::SWAP_TWO_HOPS,
        }
    }
}
