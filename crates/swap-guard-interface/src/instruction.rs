//! The guard's swap instruction.
//!
//! Wire format: discriminator, `amount_in`, `minimum_out`, both u64 little-endian; 24 bytes.
//! Accounts, W writable, S signer: user (S), exchange program, then the exchange's own list without
//! its first account: authority, amm_config, pool_state (W), input_token_account (W),
//! output_token_account (W), input_vault (W), output_vault (W), input_token_program,
//! output_token_program, input_mint, output_mint, observation_state (W).

use cpmm::{ids, instruction::SwapAccounts};
use solana_instruction::{AccountMeta, Instruction};

use crate::PROGRAM_ID;

/// First eight bytes of `swap`.
pub const SWAP_DISCRIMINATOR: [u8; 8] = [0xf8, 0xc6, 0x9e, 0x91, 0xe1, 0x75, 0x87, 0xc8];

/// A guarded swap of `amount_in` that fails unless the output account gains at least `minimum_out`.
/// Both are smallest units and must be above zero.
#[must_use]
pub fn swap(accounts: &SwapAccounts, amount_in: u64, minimum_out: u64) -> Instruction {
    let mut data = SWAP_DISCRIMINATOR.to_vec();
    data.extend_from_slice(&amount_in.to_le_bytes());
    data.extend_from_slice(&minimum_out.to_le_bytes());
    let mut metas = accounts.metas().to_vec();
    metas.insert(1, AccountMeta::new_readonly(ids::PROGRAM_ID, false));
    Instruction {
        program_id: PROGRAM_ID,
        accounts: metas,
        data,
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
