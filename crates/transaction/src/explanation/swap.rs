//! Swaps of the guard and of the exchange, in words (pure).

use cpmm::instruction::{SWAP_BASE_INPUT, SWAP_BASE_OUTPUT};
use solana_pubkey::Pubkey;
use swap_guard_interface::{
    DecodedSwap, ExactOutArgs, NO_EXPIRY, PROGRAM_ID, SwapAmounts, SwapArgs,
};

use super::{
    Step,
    meaning::{Accounts, Meaning, Spent},
};
use crate::planned_instruction::manifest;

/// Where a swap names what it moves, by the positions of its accounts.
struct Places {
    pools: &'static [usize],
    input: usize,
    output: usize,
    input_mint: usize,
    output_mint: usize,
}

const ONE_HOP: Places = Places {
    pools: &[4],
    input: 5,
    output: 6,
    input_mint: 11,
    output_mint: 12,
};

const TWO_HOPS: Places = Places {
    pools: &[4, 12],
    input: 5,
    output: 7,
    input_mint: 19,
    output_mint: 21,
};

const EXCHANGE: Places = Places {
    pools: &[3],
    input: 4,
    output: 5,
    input_mint: 10,
    output_mint: 11,
};

/// A swap of the guard by what it names: pools, mints and amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSwap {
    /// The pools, in the order of the swap.
    pub pools: Vec<Pubkey>,
    /// Mint that goes in.
    pub input_mint: Pubkey,
    /// Mint that comes out.
    pub output_mint: Pubkey,
    /// What is signed for, smallest units.
    pub amounts: SwapAmounts,
}

impl NamedSwap {
    /// The swap of an instruction. `None` where it is none of the guard, or names what stands in a lookup table that is not at hand.
    #[must_use]
    pub fn of(step: &Step) -> Option<Self> {
        let swap = DecodedSwap::read(&step.data).filter(|_| step.program == PROGRAM_ID)?;
        let places = Places::of(swap);
        let key = |position: usize| step.accounts.get(position)?.address;
        let pools = places.pools.iter().map(|&position| key(position));
        Some(Self {
            pools: pools.collect::<Option<_>>()?,
            input_mint: key(places.input_mint)?,
            output_mint: key(places.output_mint)?,
            amounts: swap.amounts,
        })
    }
}

impl Places {
    const fn of(swap: DecodedSwap) -> &'static Self {
        if swap.has_two_hops {
            &TWO_HOPS
        } else {
            &ONE_HOP
        }
    }
}

/// A swap of the guard.
pub(super) fn guarded(data: &[u8], accounts: Accounts<'_>) -> Option<Meaning> {
    let swap = DecodedSwap::read(data)?;
    let (name, roles) = if swap.has_two_hops {
        manifest::SWAP_TWO_HOPS.parts()
    } else {
        manifest::SWAP.parts()
    };
    let places = Places::of(swap);
    let amounts = swap.amounts;
    let expiry_slot = match amounts {
        SwapAmounts::ExactIn(args) => args.expiry_slot,
        SwapAmounts::ExactOut(args) => args.expiry_slot,
    };
    let mut says = in_words(amounts, places, accounts);
    says.push_str("; the guard measures both, and fails the transaction otherwise");
    if let Some(receiver) = swap.receiver {
        says.push_str(&format!("; the output is {receiver}'s"));
    }
    if expiry_slot != NO_EXPIRY {
        says.push_str(&format!("; not after slot {expiry_slot}"));
    }
    let mut meaning = with_amounts(Meaning::new(name, roles, says), amounts, places, accounts);
    if expiry_slot != NO_EXPIRY {
        meaning = meaning.with("expirySlot", expiry_slot);
    }
    Some(match swap.receiver {
        Some(receiver) => meaning.with("receiver", receiver),
        None => meaning,
    })
}

/// A swap straight at the exchange.
pub(super) fn unguarded(data: &[u8], accounts: Accounts<'_>) -> Option<Meaning> {
    let (discriminator, rest) = data.split_first_chunk::<8>()?;
    let (first, rest) = rest.split_first_chunk::<8>()?;
    let second = rest.first_chunk::<8>()?;
    let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
    let expiry_slot = NO_EXPIRY;
    let (name, amounts) = match *discriminator {
        SWAP_BASE_INPUT => {
            let args = SwapArgs {
                amount_in: first,
                minimum_out: second,
                expiry_slot,
            };
            ("swapBaseInput", SwapAmounts::ExactIn(args))
        }
        SWAP_BASE_OUTPUT => {
            let args = ExactOutArgs {
                maximum_in: first,
                amount_out: second,
                expiry_slot,
            };
            ("swapBaseOutput", SwapAmounts::ExactOut(args))
        }
        _ => return None,
    };
    let says = in_words(amounts, &EXCHANGE, accounts);
    let meaning = Meaning::new(name, &manifest::EXCHANGE_ROLES, says);
    let meaning = with_amounts(meaning, amounts, &EXCHANGE, accounts);
    Some(
        meaning.cautious("The exchange is called without the guard: what arrives is not measured."),
    )
}

fn in_words(amounts: SwapAmounts, places: &Places, accounts: Accounts<'_>) -> String {
    let (input, output) = (
        accounts.at(places.input_mint),
        accounts.at(places.output_mint),
    );
    let pools: Vec<_> = places.pools.iter().map(|&pool| accounts.at(pool)).collect();
    let what = match amounts {
        SwapAmounts::ExactIn(args) => format!(
            "swaps exactly {} of {input} for at least {} of {output}",
            args.amount_in, args.minimum_out
        ),
        SwapAmounts::ExactOut(args) => format!(
            "swaps at most {} of {input} for exactly {} of {output}",
            args.maximum_in, args.amount_out
        ),
    };
    format!(
        "{what}, smallest units, through {}, from {} to {}",
        pools.join(" and "),
        accounts.at(places.input),
        accounts.at(places.output)
    )
}

fn with_amounts(
    meaning: Meaning,
    amounts: SwapAmounts,
    places: &Places,
    accounts: Accounts<'_>,
) -> Meaning {
    let from: Option<Pubkey> = accounts.key(places.input);
    let tokens = Spent::Tokens(accounts.key(places.input_mint));
    match amounts {
        SwapAmounts::ExactIn(args) => meaning
            .with("amountIn", args.amount_in)
            .with("minimumOut", args.minimum_out)
            .spending(from, tokens, args.amount_in),
        SwapAmounts::ExactOut(args) => meaning
            .with("maximumIn", args.maximum_in)
            .with("amountOut", args.amount_out)
            .spending(from, tokens, args.maximum_in),
    }
}
