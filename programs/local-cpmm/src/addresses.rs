//! Addresses the exchange is built around, and the seeds of those it derives.

use pinocchio::Address;

/// The exchange on mainnet.
pub const EXCHANGE: Address =
    Address::from_str_const("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C");
/// Owner of every vault and mint authority of every LP mint: the address derived from `AUTHORITY_SEED`.
pub const AUTHORITY: Address =
    Address::from_str_const("GpMZbSM2GgvTKHJirzeGfMFoaZ8UR2X7F4v8vHTvxFbL");
/// The bump with which `AUTHORITY` derives.
pub const AUTHORITY_BUMP: u8 = 253;
/// The wrapped-SOL account that receives the fee for opening a pool.
pub const POOL_FEE_RECEIVER: Address =
    Address::from_str_const("DNXgeM9EiiaAbaWvwjHj9fQQLAX5ZsfHyvmYUNRAdNC8");

pub const SYSTEM: Address = Address::from_str_const("11111111111111111111111111111111");
pub const TOKEN: Address = Address::from_str_const("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
pub const TOKEN_2022: Address =
    Address::from_str_const("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
pub const ASSOCIATED_TOKEN: Address =
    Address::from_str_const("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
pub const RENT: Address = Address::from_str_const("SysvarRent111111111111111111111111111111111");

pub const AUTHORITY_SEED: &[u8] = b"vault_and_lp_mint_auth_seed";
pub const POOL_SEED: &[u8] = b"pool";
pub const VAULT_SEED: &[u8] = b"pool_vault";
pub const LP_MINT_SEED: &[u8] = b"pool_lp_mint";
pub const OBSERVATION_SEED: &[u8] = b"observation";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_derives_from_its_seed() {
        let derived = Address::find_program_address(&[AUTHORITY_SEED], &EXCHANGE);
        assert_eq!(derived, (AUTHORITY, AUTHORITY_BUMP));
    }
}
