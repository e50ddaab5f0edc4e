//! Population: any number of pools with their vaults and mints, as account bytes, without a chain behind them.
//!
//! It stands for the exchange's accounts of a whole chain, for memory and start-up at scale. It is no stricter than they:
//! every pool is well-formed and open, so what it lacks (damage, closed accounts, fees of mints) the scripted chain has.

use bytes::Bytes;
use cpmm::{
    Clock, Mint, PerToken, PoolState, TokenAccount, TokenAccountKind, TokenProgram,
    fixtures::{blank_pool, published_config},
    ids,
};
use sha2::{Digest, Sha256};
use sluice_chain_types::RawAccount;
use solana_pubkey::Pubkey;

use crate::accounts::encode_clock;

/// Who a synthetic address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Role {
    Pool = 1,
    Vault0,
    Vault1,
    Mint,
    Config,
}

/// An address that only its role and number make: a hash, as those of pools and vaults are, so that nothing sees a
/// regular one.
fn address(role: Role, number: u64) -> Pubkey {
    let mut hash = Sha256::new();
    hash.update([role as u8]);
    hash.update(number.to_le_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    Pubkey::from(hash)
}

/// A chain of this many pools. Every token has pools with each of the quote tokens and no others, which is how most pools of the
/// exchange are.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// How many pools.
    pub pools: u64,
    /// Pools that share both mints.
    pub per_pair: u64,
    /// Tokens with which all others are paired: most of the exchange's are with one, wrapped SOL.
    pub quote_tokens: u64,
}

impl Population {
    /// The mints of a pool, in the pool's order.
    #[must_use]
    pub fn mints(&self, pool: u64) -> PerToken<Pubkey> {
        let own = self.token(pool);
        let quote_token = address(Role::Mint, pool / self.per_pair % self.quote_tokens);
        PerToken::new(own.min(quote_token), own.max(quote_token))
    }

    /// The one of the mints of a pool that is no quote token.
    #[must_use]
    pub fn token(&self, pool: u64) -> Pubkey {
        let number = pool / (self.per_pair * self.quote_tokens);
        address(Role::Mint, self.quote_tokens + number)
    }

    /// The address of a pool.
    #[must_use]
    pub fn pool(&self, pool: u64) -> Pubkey {
        address(Role::Pool, pool)
    }

    /// The accounts that a swap in a pool writes, after this many swaps: pool, vaults.
    #[must_use]
    pub fn swapped(&self, pool: u64, swaps: u64) -> [RawAccount; 3] {
        let mints = self.mints(pool);
        let state = PoolState {
            amm_config: address(Role::Config, 0),
            vaults: PerToken::new(address(Role::Vault0, pool), address(Role::Vault1, pool)),
            mints,
            protocol_fees: PerToken::new(swaps, 0),
            ..blank_pool()
        };
        let vault = |role, mint, amount| {
            let account = TokenAccount {
                mint,
                owner: ids::AUTHORITY,
                amount,
                frozen: false,
            };
            let data = account.encode(TokenAccountKind::Plain);
            raw(address(role, pool), TokenProgram::Spl.id(), data)
        };
        // Pools of one pair differ, so that one of them is the best.
        let depth = 1_000_000_000 + pool % 97 * 1_000_000;
        [
            raw(self.pool(pool), ids::PROGRAM_ID, state.encode()),
            vault(Role::Vault0, mints.token_0, depth + swaps),
            vault(Role::Vault1, mints.token_1, depth - swaps),
        ]
    }

    /// Every account of the exchange, in a slot.
    pub fn accounts(self, slot: u64) -> impl Iterator<Item = RawAccount> {
        let pools = (0..self.pools).flat_map(move |pool| self.swapped(pool, 0));
        let tokens = self.pools.div_ceil(self.per_pair * self.quote_tokens);
        let mints = (0..self.quote_tokens + tokens).map(|number| {
            let data = Mint::plain(6, u64::MAX).encode(&ids::AUTHORITY);
            raw(address(Role::Mint, number), TokenProgram::Spl.id(), data)
        });
        let config = published_config().encode();
        let config = raw(address(Role::Config, 0), ids::PROGRAM_ID, config);
        pools.chain(mints).chain([config, clock(slot)])
    }
}

/// The clock in a slot.
#[must_use]
pub fn clock(slot: u64) -> RawAccount {
    let clock = Clock {
        epoch: 700,
        unix_timestamp: 1_700_000_000_i64.saturating_add_unsigned(slot),
    };
    raw(ids::CLOCK, Pubkey::default(), encode_clock(slot, &clock))
}

fn raw(pubkey: Pubkey, owner: Pubkey, data: Vec<u8>) -> RawAccount {
    RawAccount {
        pubkey,
        owner,
        lamports: 1,
        data: Bytes::from(data),
    }
}
