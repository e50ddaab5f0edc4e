//! Loaded bytes: the most that a transaction's accounts may have together, from a checked table (pure).
//!
//! The chain counts every account of a transaction with its data, and each program's code. Without a limit a transaction is
//! taken to load 64 MiB, and leaders reckon that room among its cost. A limit that is short makes a good swap fail and a page
//! costs next to nothing, so each line is several times what was measured: a program may be deployed anew with more code while a
//! transaction is on its way. A test holds every line to what is loaded.

use cpmm::ids;
use solana_pubkey::Pubkey;
use swap_guard_interface::{ASSOCIATED_TOKEN_PROGRAM, PROGRAM_ID};

use crate::planned_instruction::PlannedInstruction;

const KIB: u32 = 1_024;
const MIB: u32 = 1_024 * KIB;

/// Programs, the exchange's among them, and the most bytes of the code of each.
#[must_use]
pub const fn programs(exchange: Pubkey) -> [(Pubkey, u32); 5] {
    [
        (PROGRAM_ID, 256 * KIB),
        (exchange, 4 * MIB),
        (ids::SPL_TOKEN, MIB),
        (ids::TOKEN_2022, 4 * MIB),
        (ASSOCIATED_TOKEN_PROGRAM, MIB),
    ]
}

/// The most bytes of a mint of Token-2022, whose metadata is as long as its texts.
pub const TOKEN_2022_MINT: u32 = MIB;

/// The most bytes of everything else: wallets, token accounts, pools with their observations, system programs, sysvars, a
/// lookup table, and the programs of what a wallet appends.
pub const REST: u32 = 2 * MIB;

/// The most bytes that these instructions load, with so many mints of Token-2022 among their accounts.
pub(crate) fn loaded_bytes(
    instructions: &[PlannedInstruction],
    exchange: Pubkey,
    token_2022_mints: u32,
) -> u32 {
    let names = |program: &Pubkey| {
        instructions.iter().any(|planned| {
            let instruction = &planned.instruction;
            let mut accounts = instruction.accounts.iter();
            instruction.program_id == *program || accounts.any(|meta| meta.pubkey == *program)
        })
    };
    let programs = programs(exchange).into_iter();
    programs
        .filter(|(program, _)| names(program))
        .map(|(_, bytes)| bytes)
        .chain([REST, TOKEN_2022_MINT.saturating_mul(token_2022_mints)])
        .fold(0, u32::saturating_add)
}
