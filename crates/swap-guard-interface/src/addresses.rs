//! Associated token addresses, derived from a wallet and a mint.

use solana_pubkey::{Pubkey, pubkey};

/// The program that creates associated token accounts.
pub const ASSOCIATED_TOKEN_PROGRAM: Pubkey =
    pubkey!("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");

/// The associated token account of `wallet` for `mint`. The token program is a seed, so the mint's own
/// must be given.
#[must_use]
pub fn associated_token_address(wallet: &Pubkey, mint: &Pubkey, token_program: &Pubkey) -> Pubkey {
    let seeds: [&[u8]; 3] = [wallet.as_ref(), token_program.as_ref(), mint.as_ref()];
    Pubkey::find_program_address(&seeds, &ASSOCIATED_TOKEN_PROGRAM).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_program_is_part_of_the_address() {
        let (wallet, mint) = (Pubkey::from([1; 32]), Pubkey::from([2; 32]));
        let spl = associated_token_address(&wallet, &mint, &cpmm::ids::SPL_TOKEN);
        let token_2022 = associated_token_address(&wallet, &mint, &cpmm::ids::TOKEN_2022);
        assert_ne!(spl, token_2022);
        assert!(!spl.is_on_curve());
    }
}
