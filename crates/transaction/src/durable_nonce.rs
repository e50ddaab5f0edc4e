//! Durable nonce: a nonce account's value, which a transaction carries in place of a blockhash (pure).

use solana_hash::Hash;
use solana_pubkey::Pubkey;
use solana_system_interface::{instruction::advance_nonce_account, program};

use crate::{
    compute_table::BUILTIN,
    planned_instruction::{PlannedInstruction, manifest},
    route::SwapTerms,
};

/// Length of a nonce account: version, state, authority, value, and the fee of a signature at that time.
const LEN: usize = 80;

/// The version whose values are no blockhashes; the chain takes no transaction with a value of the older one.
const CURRENT: [u8; 4] = 1u32.to_le_bytes();

/// The state of an account that has a value.
const INITIALIZED: [u8; 4] = 1u32.to_le_bytes();

/// A nonce account's value, and who may use it. Every transaction with it replaces the value, so of all that carry the same one
/// a single one lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableNonce {
    /// The nonce account.
    pub account: Pubkey,
    /// The wallet that must sign.
    pub authority: Pubkey,
    /// What stands where a blockhash would.
    pub value: Hash,
}

/// Why an account gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NonceFault {
    /// The system program has no nonce there.
    #[error("is no nonce account of the system program; create one there, or name another")]
    NotOne,
    /// It was created, and never given an authority.
    #[error("is not initialized; initialize it, or name another")]
    NotInitialized,
    /// Its value is of the time when values were blockhashes.
    #[error(
        "is of the older version, which the chain takes no more; upgrade it (UpgradeNonceAccount), or name another"
    )]
    Older,
    /// Another wallet must sign for it.
    #[error(
        "is advanced by {0}, which does not sign this transaction; name one whose authority is the user or the fee payer"
    )]
    Authority(Pubkey),
}

impl DurableNonce {
    /// The value in an account that `owner` owns, for a transaction that these wallets sign.
    ///
    /// # Errors
    /// Why the chain would not take it.
    pub fn read(
        account: Pubkey,
        owner: &Pubkey,
        data: &[u8],
        signers: [Pubkey; 2],
    ) -> Result<Self, NonceFault> {
        if *owner != program::ID || data.len() != LEN {
            return Err(NonceFault::NotOne);
        }
        let (version, rest) = data.split_first_chunk::<4>().ok_or(NonceFault::NotOne)?;
        let (state, rest) = rest.split_first_chunk::<4>().ok_or(NonceFault::NotOne)?;
        let (authority, rest) = rest.split_first_chunk::<32>().ok_or(NonceFault::NotOne)?;
        let value = rest.first_chunk::<32>().ok_or(NonceFault::NotOne)?;
        if *state != INITIALIZED {
            return Err(NonceFault::NotInitialized);
        }
        if *version != CURRENT {
            return Err(NonceFault::Older);
        }
        let authority = Pubkey::from(*authority);
        if !signers.contains(&authority) {
            return Err(NonceFault::Authority(authority));
        }
        Ok(Self {
            account,
            authority,
            value: Hash::new_from_array(*value),
        })
    }

    /// The seed of an account of the transaction alone. The value is known before the transaction is built, and what is signed
    /// for is not.
    pub(crate) fn seed(&self, terms: SwapTerms) -> String {
        let bytes = self.value.to_bytes();
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
        let (first, second) = (word(0) ^ terms.amount_in, word(1) ^ terms.minimum_out);
        format!("{first:016x}{second:016x}")
    }

    /// Replaces the value. The chain looks for it in the first instruction of a transaction alone.
    pub(crate) fn advance(&self) -> PlannedInstruction {
        let advance = advance_nonce_account(&self.account, &self.authority);
        PlannedInstruction::new(manifest::ADVANCE_NONCE, advance, BUILTIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: Pubkey = Pubkey::new_from_array([3; 32]);
    const USER: Pubkey = Pubkey::new_from_array([1; 32]);
    const PAYER: Pubkey = Pubkey::new_from_array([2; 32]);

    fn data(version: u32, state: u32, authority: Pubkey) -> Vec<u8> {
        let mut data = [version.to_le_bytes(), state.to_le_bytes()].concat();
        data.extend(authority.to_bytes());
        data.extend([7; 32]);
        data.extend(5_000u64.to_le_bytes());
        data
    }

    fn read(owner: Pubkey, data: &[u8]) -> Result<DurableNonce, NonceFault> {
        DurableNonce::read(ACCOUNT, &owner, data, [USER, PAYER])
    }

    #[test]
    fn the_value_is_read_where_a_signer_may_advance_it() {
        for authority in [USER, PAYER] {
            let found = read(program::ID, &data(1, 1, authority)).expect("a nonce");
            let value = Hash::new_from_array([7; 32]);
            let expected = DurableNonce {
                account: ACCOUNT,
                authority,
                value,
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_seed_is_another_one_for_other_amounts_and_for_another_value() {
        let nonce = |value| DurableNonce {
            account: ACCOUNT,
            authority: USER,
            value: Hash::new_from_array([value; 32]),
        };
        let terms = |amount_in, minimum_out| SwapTerms {
            amount_in,
            minimum_out,
            expiry_slot: None,
        };
        let seeds = [
            nonce(7).seed(terms(5, 4)),
            nonce(7).seed(terms(5, 3)),
            nonce(7).seed(terms(4, 4)),
            nonce(8).seed(terms(5, 4)),
        ];
        for (index, seed) in seeds.iter().enumerate() {
            assert_eq!(seed.len(), 32, "{seed}");
            assert!(!seeds[..index].contains(seed), "{seed}");
        }
    }

    #[test]
    fn what_the_chain_would_not_take_is_refused_with_its_reason() {
        let good = data(1, 1, USER);
        assert_eq!(read(USER, &good), Err(NonceFault::NotOne));
        assert_eq!(read(program::ID, &good[..79]), Err(NonceFault::NotOne));
        assert_eq!(read(program::ID, &[]), Err(NonceFault::NotOne));
        let uninitialized = data(1, 0, USER);
        let fault = read(program::ID, &uninitialized);
        assert_eq!(fault, Err(NonceFault::NotInitialized));
        let older = read(program::ID, &data(0, 1, USER));
        assert_eq!(older, Err(NonceFault::Older));
        let another = read(program::ID, &data(1, 1, ACCOUNT));
        assert_eq!(another, Err(NonceFault::Authority(ACCOUNT)));
    }
}
