//! Interface of the on-chain swap guard for off-chain programs: addresses, instruction, errors, event.
//!
//! The guard wraps the exchange's swap and enforces the caller's minimum by measuring what arrived.
//! Its account list is the exchange's own with the exchange's program inserted after the user, so this
//! crate builds on [`cpmm::instruction::SwapAccounts`]. It does no I/O and does not depend on Anchor.

#![deny(clippy::arithmetic_side_effects)]

mod addresses;
mod error;
mod event;
mod instruction;

pub use addresses::{ASSOCIATED_TOKEN_PROGRAM, associated_token_address};
pub use error::GuardError;
pub use event::{GUARDED_SWAP_DISCRIMINATOR, GUARDED_SWAP_LEN, GuardedSwap};
pub use instruction::{NO_EXPIRY, SWAP_DISCRIMINATOR, SwapArgs, swap};

use solana_pubkey::{Pubkey, pubkey};

/// Address of the guard.
pub const PROGRAM_ID: Pubkey = pubkey!("SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b");
