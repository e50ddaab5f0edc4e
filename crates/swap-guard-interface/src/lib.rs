//! Interface of the on-chain swap guard for off-chain programs: addresses, instructions, errors, events.
//!
//! The guard wraps the exchange's swaps and enforces the caller's bounds by measuring what was spent and what arrived.
//! Its account list is the exchange's own with the exchange's program inserted after the user, so this
//! crate builds on [`cpmm::instruction::SwapAccounts`]. It does no I/O and does not depend on Anchor.

#![deny(clippy::arithmetic_side_effects)]

mod addresses;
mod error;
mod event;
mod instruction;

pub use addresses::{ASSOCIATED_TOKEN_PROGRAM, associated_token_address};
pub use error::GuardError;
pub use event::{
    GUARDED_SWAP_DISCRIMINATOR, GUARDED_SWAP_LEN, GuardedSwap, SWAPPED_DISCRIMINATOR, SWAPPED_LEN,
    Swapped,
};
pub use instruction::{
    DecodedSwap, ExactOutArgs, NO_EXPIRY, SWAP_DISCRIMINATOR, SWAP_EXACT_OUT_DISCRIMINATOR,
    SWAP_EXACT_OUT_TO_DISCRIMINATOR, SWAP_TO_DISCRIMINATOR, SWAP_TWO_HOPS_DISCRIMINATOR,
    SWAP_TWO_HOPS_TO_DISCRIMINATOR, SwapAmounts, SwapArgs, TwoHopAccounts, swap, swap_exact_out,
    swap_exact_out_to, swap_to, swap_two_hops, swap_two_hops_to,
};

use solana_pubkey::{Pubkey, pubkey};

/// Address of the guard.
pub const PROGRAM_ID: Pubkey = pubkey!("SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b");
