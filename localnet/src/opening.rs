//! Opens a pool on a running chain, through the exchange's own `initialize` instruction.

use cpmm::ids;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::{Pubkey, pubkey};
use swap_guard_interface::{ASSOCIATED_TOKEN_PROGRAM, associated_token_address};

use crate::scene::{PoolAddresses, Token};

/// First eight bytes of `initialize`: of the SHA-256 of `global:initialize`.
pub const INITIALIZE_DISCRIMINATOR: [u8; 8] = [0xaf, 0xaf, 0x6d, 0x1f, 0x0d, 0x98, 0x9b, 0xed];

const SYSTEM_PROGRAM: Pubkey = pubkey!("11111111111111111111111111111111");
const RENT_SYSVAR: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");

/// A pool to be opened with fee configuration 0.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Who pays and provides both tokens from associated token accounts.
    pub creator: Pubkey,
    /// One token and how much of it, smallest units.
    pub one: (Token, u64),
    /// The other token and how much of it.
    pub other: (Token, u64),
    /// Unix time, seconds, from which swaps are let through. The exchange moves a time that has
    /// passed to just after the opening.
    pub open_time: u64,
}

impl Opening {
    /// The tokens in the order of the exchange.
    fn ordered(&self) -> [(Token, u64); 2] {
        if self.one.0.mint < self.other.0.mint {
            [self.one, self.other]
        } else {
            [self.other, self.one]
        }
    }

    /// The address that the pool will have.
    #[must_use]
    pub fn pool(&self) -> Pubkey {
        let [first, second] = self.ordered();
        PoolAddresses::of(&first.0.mint, &second.0.mint).pool
    }

    /// The instruction; the creator signs.
    #[must_use]
    pub fn instruction(&self) -> Instruction {
        let [(token_0, amount_0), (token_1, amount_1)] = self.ordered();
        let addresses = PoolAddresses::of(&token_0.mint, &token_1.mint);
        let creator_lp =
            associated_token_address(&self.creator, &addresses.lp_mint, &ids::SPL_TOKEN);
        let writable = |key: Pubkey| AccountMeta::new(key, false);
        let readonly = |key: Pubkey| AccountMeta::new_readonly(key, false);
        let mut data = INITIALIZE_DISCRIMINATOR.to_vec();
        for number in [amount_0, amount_1, self.open_time] {
            data.extend_from_slice(&number.to_le_bytes());
        }
        Instruction {
            program_id: ids::PROGRAM_ID,
            accounts: vec![
                AccountMeta::new(self.creator, true),
                readonly(ids::AMM_CONFIG_0),
                readonly(ids::AUTHORITY),
                writable(addresses.pool),
                readonly(token_0.mint),
                readonly(token_1.mint),
                writable(addresses.lp_mint),
                writable(token_0.account_of(&self.creator)),
                writable(token_1.account_of(&self.creator)),
                writable(creator_lp),
                writable(addresses.vaults.token_0),
                writable(addresses.vaults.token_1),
                writable(ids::CREATE_POOL_FEE_RECEIVER),
                writable(addresses.observation),
                readonly(ids::SPL_TOKEN),
                readonly(token_0.program.id()),
                readonly(token_1.program.id()),
                readonly(ASSOCIATED_TOKEN_PROGRAM),
                readonly(SYSTEM_PROGRAM),
                readonly(RENT_SYSVAR),
            ],
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};
    use solana_signer::Signer;

    use super::*;
    use crate::scene::Scene;

    #[test]
    fn the_discriminator_is_the_hash_of_the_instruction_name() {
        let hash = Sha256::digest(b"global:initialize");
        assert_eq!(INITIALIZE_DISCRIMINATOR, hash[..8]);
    }

    #[test]
    fn amounts_follow_their_tokens_whichever_way_they_are_given() {
        let scene = Scene::new();
        let opening = Opening {
            creator: scene.wallet.pubkey(),
            one: (scene.alfa, 1),
            other: (scene.usd, 2),
            open_time: 3,
        };
        let swapped = Opening {
            one: opening.other,
            other: opening.one,
            ..opening
        };
        assert_eq!(opening.instruction(), swapped.instruction());
        assert_eq!(opening.instruction().accounts.len(), 20);
        assert_eq!(opening.instruction().data.len(), 32);
    }
}
