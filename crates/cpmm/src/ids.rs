//! Mainnet addresses of the exchange.

use solana_pubkey::{Pubkey, pubkey};

/// The exchange's program.
pub const PROGRAM_ID: Pubkey = pubkey!("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C");

/// Account of the upgradeable loader that holds the exchange's code.
pub const PROGRAM_DATA: Pubkey = pubkey!("DMawCQzbgNTmbzaESc7o6pvL1KAeetY8zA7jNpzntHhU");

/// Loader of the programs that can be deployed anew, which owns [`PROGRAM_DATA`].
pub const UPGRADEABLE_LOADER: Pubkey = pubkey!("BPFLoaderUpgradeab1e11111111111111111111111");

/// Owner of every vault: the program address of seed `vault_and_lp_mint_auth_seed`.
pub const AUTHORITY: Pubkey = pubkey!("GpMZbSM2GgvTKHJirzeGfMFoaZ8UR2X7F4v8vHTvxFbL");

/// Bump of [`AUTHORITY`], which every pool repeats in `auth_bump`.
pub const AUTHORITY_BUMP: u8 = 253;

/// Fee configuration of index 0, the one most pools use.
pub const AMM_CONFIG_0: Pubkey = pubkey!("D4FPEruKEHrG5TenZ2mpDGEfu1iUvTiqBxvpU8HLBvC2");

/// Wrapped-SOL token account that receives the fee for opening a pool.
pub const CREATE_POOL_FEE_RECEIVER: Pubkey =
    pubkey!("DNXgeM9EiiaAbaWvwjHj9fQQLAX5ZsfHyvmYUNRAdNC8");

/// SPL Token program.
pub const SPL_TOKEN: Pubkey = pubkey!("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");

/// Token-2022 program.
pub const TOKEN_2022: Pubkey = pubkey!("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");

/// Mint of wrapped SOL.
pub const WRAPPED_SOL: Pubkey = pubkey!("So11111111111111111111111111111111111111112");

/// Clock sysvar, where programs read slot, epoch and unix time.
pub const CLOCK: Pubkey = pubkey!("SysvarC1ock11111111111111111111111111111111");

/// Seed of [`AUTHORITY`].
pub const AUTHORITY_SEED: &[u8] = b"vault_and_lp_mint_auth_seed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_the_program_address_of_its_seed() {
        let derived = Pubkey::find_program_address(&[AUTHORITY_SEED], &PROGRAM_ID);
        assert_eq!(derived, (AUTHORITY, AUTHORITY_BUMP));
    }

    #[test]
    fn the_program_data_is_the_loaders_address_of_the_program() {
        let seeds: &[&[u8]] = &[PROGRAM_ID.as_ref()];
        let derived = Pubkey::find_program_address(seeds, &UPGRADEABLE_LOADER);
        assert_eq!(derived.0, PROGRAM_DATA);
    }

    #[test]
    fn config_0_is_the_program_address_of_its_big_endian_index() {
        let seeds: &[&[u8]] = &[b"amm_config", &0u16.to_be_bytes()];
        assert_eq!(
            Pubkey::find_program_address(seeds, &PROGRAM_ID).0,
            AMM_CONFIG_0
        );
    }
}
