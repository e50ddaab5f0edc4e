//! Raydium's constant-product exchange (CPMM) as data and arithmetic (pure).
//!
//! This crate knows the exchange's account layouts, the exact order and rounding of its
//! `swap_base_input` and `swap_base_output`, and the bytes of those instructions. It does no I/O, reads no clock, uses no
//! floating point and panics on no input. A quote made here from a consistent set of accounts equals
//! what the chain pays, to the unit; every case in which the chain would refuse is a typed
//! [`Refusal`].
//!
//! The source followed throughout is `raydium-io/raydium-cp-swap` at commit `609780f`
//! (Apache-2.0), and `solana-program/token-2022` for transfer fees.

#![deny(clippy::arithmetic_side_effects)]

mod accounts;
mod bytes;
mod divisions;
mod event;
mod exact_out;
mod exchange_error;
mod exchange_ids;
mod extensions;
#[cfg(feature = "fixtures")]
pub mod fixtures;
pub mod ids;
pub mod instruction;
mod operands;
mod passed_records;
mod quote;
mod refusal;
mod token;
mod transfer_fee;
mod two_hops;
mod units;

pub use accounts::{
    AMM_CONFIG_DISCRIMINATOR, AMM_CONFIG_LEN, AmmConfig, CreatorFeeOn, OBSERVATION_LEN,
    POOL_STATE_DISCRIMINATOR, POOL_STATE_LEN, PerToken, PoolState, observation_account,
};
pub use bytes::DecodeError;
pub use divisions::{Division, DivisionCount};
pub use event::{FixedAmount, SWAP_EVENT_DISCRIMINATOR, SWAP_EVENT_LEN, SwapEvent};
pub use exact_out::{ExactOutQuote, maximum_in};
pub use exchange_error::exchange_error;
pub use exchange_ids::{ExchangeIds, NotAnAddress};
pub use extensions::{MintExtensions, extension_name};
pub use operands::SwapOperands;
pub use passed_records::PassedRecords;
pub use quote::{Clock, Direction, ExactInQuote, PoolSnapshot, minimum_out};
pub use refusal::Refusal;
pub use token::{
    MINT_LEN, Mint, TOKEN_ACCOUNT_LEN, TokenAccount, TokenAccountKind, TokenAccountRules,
    TokenProgram,
};
pub use transfer_fee::{TransferFee, TransferFeeConfig};
pub use two_hops::{
    Hop, HopRefusal, TwoHopQuote, quote_two_hops_exact_in, quote_two_hops_exact_out,
};
pub use units::{Amount, BasisPoints, FeeRate};
