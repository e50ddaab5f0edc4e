//! Associated token accounts: derives their addresses, and remembers the last derived ones.

use hashlink::LruCache;
use parking_lot::Mutex;
use solana_pubkey::Pubkey;
use spl_associated_token_account_interface::address::get_associated_token_address_and_bump_seed;
use swap_guard_interface::ASSOCIATED_TOKEN_PROGRAM;

/// Most addresses that are remembered: both sides of some thousands of wallets' swaps, in under 4 MiB.
const REMEMBERED: usize = 16_384;

/// A user's token account, and where its address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Associated {
    /// The address.
    pub address: Pubkey,
    /// The bump of its derivation, on which the cost of creating it depends.
    pub bump: u8,
}

impl Associated {
    /// The associated token account of `wallet`.
    #[must_use]
    pub fn of(wallet: &Pubkey, mint: &Pubkey, token_program: &Pubkey) -> Self {
        let (address, bump) = get_associated_token_address_and_bump_seed(
            wallet,
            mint,
            &ASSOCIATED_TOKEN_PROGRAM,
            token_program,
        );
        Self { address, bump }
    }
}

/// Wallet, mint and token program.
type Seeds = (Pubkey, Pubkey, Pubkey);

/// The associated accounts derived last. Deriving one hashes, and tests on the curve, once for each try, which is a third
/// of all the work of building a transaction; and a wallet that swaps asks for the same ones again and again.
pub struct AssociatedAccounts(Mutex<LruCache<Seeds, Associated>>);

impl Default for AssociatedAccounts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl AssociatedAccounts {
    /// As [`Associated::of`]; `None` for a wallet whose address is a program's, which has no account to pay from.
    #[must_use]
    pub fn of(&self, wallet: &Pubkey, mint: &Pubkey, token_program: &Pubkey) -> Option<Associated> {
        let seeds = (*wallet, *mint, *token_program);
        if let Some(remembered) = self.0.lock().get(&seeds) {
            return Some(*remembered);
        }
        if !wallet.is_on_curve() {
            return None;
        }
        // Not under the lock: others need not wait for it, and at worst two derive the same.
        let derived = Associated::of(wallet, mint, token_program);
        self.0.lock().insert(seeds, derived);
        Some(derived)
    }

    /// As [`AssociatedAccounts::of`], for a program's address too, whose accounts are derived each time: what is
    /// remembered is known to be a wallet's.
    #[must_use]
    pub fn of_any(&self, wallet: &Pubkey, mint: &Pubkey, token_program: &Pubkey) -> Associated {
        let remembered = self.of(wallet, mint, token_program);
        remembered.unwrap_or_else(|| Associated::of(wallet, mint, token_program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_is_derived_and_no_more_than_the_limit() {
        let accounts = AssociatedAccounts(Mutex::new(LruCache::new(2)));
        let keys: Vec<Pubkey> = (0..=u8::MAX)
            .map(|n| Pubkey::from([n; 32]))
            .filter(Pubkey::is_on_curve)
            .take(3)
            .collect();
        for _ in 0..2 {
            for wallet in &keys {
                for (mint, program) in [(&keys[0], &keys[1]), (&keys[1], &keys[0])] {
                    let expected = Some(Associated::of(wallet, mint, program));
                    assert_eq!(accounts.of(wallet, mint, program), expected);
                    assert_eq!(accounts.of(wallet, mint, program), expected);
                }
            }
        }
        assert_eq!(accounts.0.lock().len(), 2);
        let program_address = Associated::of(&keys[0], &keys[1], &keys[2]).address;
        let any = accounts.of_any(&program_address, &keys[0], &keys[1]);
        assert_eq!(any, Associated::of(&program_address, &keys[0], &keys[1]));
        assert_eq!(accounts.of(&program_address, &keys[0], &keys[1]), None);
    }
}
