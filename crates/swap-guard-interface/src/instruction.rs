//! Swap instruction of the guard.
//!
//! Wire format: discriminator, `amount_in`, `minimum_out`, `expiry_slot`, each u64 little-endian; 32 bytes.
//! Accounts, W writable, S signer: user (S), exchange program, then the exchange's own list without
//! its first account: authority, amm_config, pool_state (W), input_token_account (W),
//! output_token_account (W), input_vault (W), output_vault (W), input_token_program,
//! output_token_program, input_mint, output_mint, observation_state (W).

use cpmm::{ids, instruction::SwapAccounts};
use solana_instruction::{AccountMeta, Instruction};

use crate::PROGRAM_ID;

/// First eight bytes of `swap`.
pub const SWAP_DISCRIMINATOR: [u8; 8] = [0xf8, 0xc6, 0x9e, 0x91, 0xe1, 0x75, 0x87, 0xc8];

/// The `expiry_slot` of a swap that the guard lets execute in any slot.
pub const NO_EXPIRY: u64 = 0;

/// What the user signs for. Amounts are smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapArgs {
    /// Exactly what is offered to the exchange, before the input mint's transfer fee. Above zero.
    pub amount_in: u64,
    /// The least that must arrive, after the output mint's transfer fee. Above zero.
    pub minimum_out: u64,
    /// The last slot in which the swap may execute, or [`NO_EXPIRY`]. The transaction's blockhash ends its life in any
    /// case; this ends it sooner.
    pub expiry_slot: u64,
}

impl SwapArgs {
    /// The instruction's data.
    fn encode(self) -> Vec<u8> {
        [
            SWAP_DISCRIMINATOR,
            self.amount_in.to_le_bytes(),
            self.minimum_out.to_le_bytes(),
            self.expiry_slot.to_le_bytes(),
        ]
        .concat()
    }
}

/// A guarded swap of `amount_in` that fails unless the output account gains at least `minimum_out`, and after
/// `expiry_slot`.
#[must_use]
pub fn swap(accounts: &SwapAccounts, args: SwapArgs) -> Instruction {
    let mut metas = accounts.metas().to_vec();
    metas.insert(1, AccountMeta::new_readonly(ids::PROGRAM_ID, false));
    Instruction {
        program_id: PROGRAM_ID,
        accounts: metas,
        data: args.encode(),
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_discriminator_is_the_hash_of_the_instruction_name() {
        assert_eq!(SWAP_DISCRIMINATOR, Sha256::digest(b"global:swap")[..8]);
    }
}
