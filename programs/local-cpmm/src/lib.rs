//! Stand-in for Raydium's constant-product exchange (CPMM), where the real program is not at hand.
//!
//! It is loaded at the exchange's mainnet address and has the exchange's account layouts, discriminators, error
//! numbers, events and arithmetic, for the three instructions that opening a pool and swapping need: `initialize`,
//! `swap_base_input` and `swap_base_output`. Where the real program and this one could be distinguished, the doc comment of the item says so.
//! It is written from the description of the exchange's interface, and must never be deployed in public.

use pinocchio::{AccountView, Address, ProgramResult};

pub mod addresses;
pub mod checks;
pub mod creation;
pub mod curve;
pub mod error;
pub mod event;
pub mod initialize;
pub mod observation;
pub mod state;
pub mod swap;
pub mod swap_base_input;
pub mod swap_base_output;
pub mod token;

use error::ExchangeError;

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

#[cfg(target_os = "solana")]
mod entrypoint {
    pinocchio::program_entrypoint!(super::process_instruction, 32);
    pinocchio::no_allocator!();
    pinocchio::default_panic_handler!();
}

/// First 8 bytes of the SHA-256 of `global:initialize`.
const INITIALIZE: [u8; 8] = [0xaf, 0xaf, 0x6d, 0x1f, 0x0d, 0x98, 0x9b, 0xed];
/// First 8 bytes of the SHA-256 of `global:swap_base_input`.
const SWAP_BASE_INPUT: [u8; 8] = [0x8f, 0xbe, 0x5a, 0xda, 0xc4, 0x1e, 0x33, 0xde];
/// First 8 bytes of the SHA-256 of `global:swap_base_output`.
const SWAP_BASE_OUTPUT: [u8; 8] = [0x37, 0xd9, 0x62, 0x56, 0xa3, 0x4a, 0xb4, 0xad];

/// Dispatches on the instruction's discriminator.
///
/// # Errors
/// Whatever the instruction refuses; 101 for an instruction that the stand-in does not have; 4100 when the program is
/// loaded at another address than the exchange's.
pub fn process_instruction(
    program_id: &Address,
    accounts: &mut [AccountView],
    data: &[u8],
) -> ProgramResult {
    if *program_id != addresses::EXCHANGE {
        return Err(ExchangeError::DeclaredProgramIdMismatch.into());
    }
    let (discriminator, arguments) = data
        .split_first_chunk()
        .ok_or(ExchangeError::InstructionFallbackNotFound)?;
    match *discriminator {
        SWAP_BASE_INPUT => swap_base_input::process(accounts, arguments),
        SWAP_BASE_OUTPUT => swap_base_output::process(accounts, arguments),
        INITIALIZE => initialize::process(accounts, arguments),
        _ => Err(ExchangeError::InstructionFallbackNotFound.into()),
    }
}

/// Splits the next u64 off an instruction's arguments.
fn take_u64(arguments: &[u8]) -> Result<(u64, &[u8]), ExchangeError> {
    let (bytes, rest) = arguments
        .split_first_chunk()
        .ok_or(ExchangeError::InstructionDidNotDeserialize)?;
    Ok((u64::from_le_bytes(*bytes), rest))
}
