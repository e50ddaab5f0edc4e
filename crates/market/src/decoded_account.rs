//! Decoded account: what the bytes of an account mean to quotes (pure).

use std::{collections::HashMap, sync::Arc};

use cpmm::{
    AmmConfig, Amount, Clock, DecodeError, Mint, PoolState, TokenAccount, TokenProgram, ids,
};
use foldhash::fast::RandomState;
use solana_pubkey::Pubkey;

/// Length of the Clock sysvar, bytes.
const CLOCK_LEN: usize = 40;

/// Accounts by address. The hash is fast and keyed at random: pool addresses can be chosen by the one who
/// opens a pool.
pub(crate) type ByAddress<T> = HashMap<Pubkey, T, RandomState>;

/// An account as far as quotes depend on it. What is large is shared: the same pool, configuration or
/// mint is part of the state of every slot that did not write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecodedAccount {
    /// There is no account, or it no longer belongs to a program the market knows.
    Absent,
    /// A pool.
    Pool(Arc<PoolState>),
    /// A fee configuration.
    Config(Arc<AmmConfig>),
    /// A token account.
    Vault(Vault),
    /// A mint and the program that owns it.
    Mint(TokenProgram, Arc<Mint>),
    /// The chain's time.
    Clock(Clock),
    /// Something of the exchange that quotes do not depend on.
    Other,
    /// An account that should be one of the above and is not.
    Unreadable(DecodeError),
}

/// A token account as far as quotes depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vault {
    /// The program that owns it.
    pub(crate) program: TokenProgram,
    /// Mint of its tokens.
    pub(crate) mint: Pubkey,
    /// Balance.
    pub(crate) amount: Amount,
    /// Whether transfers are stopped.
    pub(crate) frozen: bool,
}

impl DecodedAccount {
    /// Reads an account, where the exchange's program is `exchange`. An account without lamports is closed, whatever its data says.
    pub(crate) fn decode(
        exchange: &Pubkey,
        pubkey: &Pubkey,
        owner: &Pubkey,
        lamports: u64,
        data: &[u8],
    ) -> Self {
        if lamports == 0 {
            return Self::Absent;
        }
        if *pubkey == ids::CLOCK {
            return clock(data).map_or_else(Self::Unreadable, Self::Clock);
        }
        if owner == exchange {
            return Self::of_exchange(data);
        }
        match TokenProgram::from_id(owner) {
            Some(program) => Self::of_token_program(program, data),
            None => Self::Absent,
        }
    }

    fn of_exchange(data: &[u8]) -> Self {
        let decoded = match data.first_chunk::<8>() {
            Some(&cpmm::POOL_STATE_DISCRIMINATOR) => {
                PoolState::decode(data).map(|pool| Self::Pool(Arc::new(pool)))
            }
            Some(&cpmm::AMM_CONFIG_DISCRIMINATOR) => {
                AmmConfig::decode(data).map(|config| Self::Config(Arc::new(config)))
            }
            _ => return Self::Other,
        };
        decoded.unwrap_or_else(Self::Unreadable)
    }

    /// Mints and token accounts differ in their length or in the type byte behind it, so at
    /// most one of the two decodings succeeds. Token accounts come by far more often, so they are
    /// tried first.
    fn of_token_program(program: TokenProgram, data: &[u8]) -> Self {
        match TokenAccount::decode(data) {
            Ok(account) => Self::Vault(Vault {
                program,
                mint: account.mint,
                amount: Amount::new(account.amount),
                frozen: account.frozen,
            }),
            Err(not_an_account) => match Mint::decode(data) {
                Ok(mint) => Self::Mint(program, Arc::new(mint)),
                Err(error) if data.len() < cpmm::TOKEN_ACCOUNT_LEN => Self::Unreadable(error),
                Err(_) => Self::Unreadable(not_an_account),
            },
        }
    }
}

/// Fields of the sysvar, little-endian: slot, epoch start time, epoch, leader schedule epoch, time.
fn clock(data: &[u8]) -> Result<Clock, DecodeError> {
    let wrong = DecodeError::Length {
        kind: "Clock",
        found: data.len(),
    };
    let (fields, rest) = data.as_chunks::<8>();
    if data.len() != CLOCK_LEN || !rest.is_empty() {
        return Err(wrong);
    }
    let [_, _, epoch, _, unix_timestamp] = fields else {
        return Err(wrong);
    };
    Ok(Clock {
        epoch: u64::from_le_bytes(*epoch),
        unix_timestamp: i64::from_le_bytes(*unix_timestamp),
    })
}

#[cfg(test)]
mod tests {
    use cpmm::TokenAccountKind;

    use super::*;

    const KEY: Pubkey = Pubkey::new_from_array([1; 32]);

    #[test]
    fn the_clock_is_read_as_programs_read_it() {
        let data: Vec<u8> = [7u64, 1, 600, 601, 1_700_000_000]
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        let clock = Clock {
            epoch: 600,
            unix_timestamp: 1_700_000_000,
        };
        assert_eq!(
            DecodedAccount::decode(&ids::PROGRAM_ID, &ids::CLOCK, &KEY, 1, &data),
            DecodedAccount::Clock(clock)
        );
        let short = DecodedAccount::decode(&ids::PROGRAM_ID, &ids::CLOCK, &KEY, 1, &data[..39]);
        assert!(matches!(short, DecodedAccount::Unreadable(_)));
    }

    #[test]
    fn closed_and_given_away_accounts_are_absent() {
        let vault = TokenAccount {
            mint: KEY,
            owner: KEY,
            amount: 1,
            frozen: false,
        };
        let data = vault.encode(TokenAccountKind::Plain);
        let system = Pubkey::default();
        assert_eq!(
            DecodedAccount::decode(&ids::PROGRAM_ID, &KEY, &ids::SPL_TOKEN, 1, &data),
            DecodedAccount::Vault(Vault {
                program: TokenProgram::Spl,
                mint: KEY,
                amount: Amount::new(1),
                frozen: false,
            })
        );
        assert_eq!(
            DecodedAccount::decode(&ids::PROGRAM_ID, &KEY, &ids::SPL_TOKEN, 0, &data),
            DecodedAccount::Absent
        );
        assert_eq!(
            DecodedAccount::decode(&ids::PROGRAM_ID, &KEY, &system, 1, &data),
            DecodedAccount::Absent
        );
    }

    #[test]
    fn broken_accounts_are_unreadable_and_foreign_kinds_are_other() {
        let mut pool = vec![0; cpmm::POOL_STATE_LEN - 1];
        pool[..8].copy_from_slice(&cpmm::POOL_STATE_DISCRIMINATOR);
        let of_exchange =
            |data: &[u8]| DecodedAccount::decode(&ids::PROGRAM_ID, &KEY, &ids::PROGRAM_ID, 1, data);
        assert!(matches!(of_exchange(&pool), DecodedAccount::Unreadable(_)));
        assert_eq!(of_exchange(&[9; 100]), DecodedAccount::Other);
        assert_eq!(of_exchange(&[]), DecodedAccount::Other);
        let token = DecodedAccount::decode(&ids::PROGRAM_ID, &KEY, &ids::TOKEN_2022, 1, &[0; 40]);
        assert!(matches!(token, DecodedAccount::Unreadable(_)));
    }
}
