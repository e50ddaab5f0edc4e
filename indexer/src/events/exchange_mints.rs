//! Mints of the exchange's events: of which tokens the amounts in them are (pure).
//!
//! Its events of liquidity name a pool and no mints, nor did those of its swaps in older builds. The instruction that emitted an event
//! has the mints among its accounts. It is known by the run of the exchange in whose logs the event stands: the runs of a program
//! are logged in the order in which the transaction lists the instructions to it.

use sluice_geyser::TransactionUpdate;
use solana_pubkey::Pubkey;

use super::{idl::Idls, program_events::ProgramEvent};

/// Mints by the names that the exchange has for them.
pub type Mints = Vec<(&'static str, Pubkey)>;

/// Where an event of the exchange has the address of its pool: after the discriminator.
const POOL: std::ops::Range<usize> = 8..40;

/// Depth of an instruction that the transaction itself makes.
const TOP_LEVEL: usize = 1;

/// An instruction of the exchange that emits an event: its discriminator, and which of its accounts are the pool and the mints.
struct Emitter {
    discriminator: [u8; 8],
    pool: usize,
    mints: &'static [(&'static str, usize)],
}

const MINTS_OF_SWAP: &[(&str, usize)] = &[("inputMint", 10), ("outputMint", 11)];
const MINTS_OF_LIQUIDITY: &[(&str, usize)] =
    &[("token0Mint", 10), ("token1Mint", 11), ("lpMint", 12)];

/// The first eight bytes of the SHA-256 of `global:swap_base_input`, `global:swap_base_output`, `global:deposit` and
/// `global:withdraw`. The instructions that make a pool emit nothing.
const EMITTERS: [Emitter; 4] = [
    Emitter {
        discriminator: [143, 190, 90, 218, 196, 30, 51, 222],
        pool: 3,
        mints: MINTS_OF_SWAP,
    },
    Emitter {
        discriminator: [55, 217, 98, 86, 163, 74, 180, 173],
        pool: 3,
        mints: MINTS_OF_SWAP,
    },
    Emitter {
        discriminator: [242, 35, 198, 137, 82, 225, 242, 182],
        pool: 2,
        mints: MINTS_OF_LIQUIDITY,
    },
    Emitter {
        discriminator: [183, 18, 70, 156, 148, 109, 161, 34],
        pool: 2,
        mints: MINTS_OF_LIQUIDITY,
    },
];

/// An instruction, whoever made it.
struct Instruction<'a> {
    is_top_level: bool,
    program_index: u8,
    accounts: &'a [u8],
    data: &'a [u8],
}

/// The mints of an event in a transaction. `None` where the program is not the exchange, or the instruction that emitted the event
/// is not found, or is none that is known: rather no mints than wrong ones.
#[must_use]
pub fn exchange_mints(
    transaction: &TransactionUpdate,
    event: &ProgramEvent,
    idls: &Idls,
) -> Option<Mints> {
    if !idls.is_exchange(&event.program) {
        return None;
    }
    let invocation = event.invocation?;
    let instruction = instructions(transaction)
        .filter(|instruction| key(transaction, instruction.program_index) == Some(event.program))
        .nth(invocation.number)?;
    // Not so where the validator did not record what programs invoked.
    if instruction.is_top_level != (invocation.depth == TOP_LEVEL) {
        return None;
    }
    let emitter = EMITTERS
        .iter()
        .find(|emitter| instruction.data.starts_with(&emitter.discriminator))?;
    let account = |at: usize| key(transaction, *instruction.accounts.get(at)?);
    if account(emitter.pool)?.as_ref() != event.data.get(POOL)? {
        return None;
    }
    let mints = emitter.mints.iter();
    mints
        .map(|(name, at)| Some((*name, account(*at)?)))
        .collect()
}

/// The instructions of a transaction in the order in which they began.
fn instructions(transaction: &TransactionUpdate) -> impl Iterator<Item = Instruction<'_>> {
    let top_level = transaction.instructions.iter().enumerate();
    top_level.flat_map(|(index, instruction)| {
        let of_it = transaction
            .inner_instructions
            .iter()
            .filter(move |(outer, _)| usize::from(*outer) == index);
        let inner = of_it
            .flat_map(|(_, inner)| inner)
            .map(|instruction| Instruction {
                is_top_level: false,
                program_index: instruction.program_index,
                accounts: &instruction.accounts,
                data: &instruction.data,
            });
        let itself = Instruction {
            is_top_level: true,
            program_index: instruction.program_index,
            accounts: &instruction.accounts,
            data: &instruction.data,
        };
        std::iter::once(itself).chain(inner)
    })
}

fn key(transaction: &TransactionUpdate, index: u8) -> Option<Pubkey> {
    transaction.account_keys.get(usize::from(index)).copied()
}

#[cfg(test)]
mod tests;
