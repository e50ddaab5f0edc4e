//! Model of the market: what it must show, computed from the whole chain without caches or increments.
//!
//! It shares nothing with the market but the arithmetic's types.

use std::{collections::BTreeMap, sync::Arc};

use cpmm::{Amount, Clock, Mint, PerToken, PoolSnapshot, PoolState, ids};
use sluice_testkit::{accounts::Content, scripted_chain::ChainRecord, scripted_chain::State};
use solana_pubkey::Pubkey;

/// Everything that readers can see at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedState {
    /// The slot.
    pub slot: u64,
    /// The chain's time in it.
    pub clock: Clock,
    /// Every pool that can be quoted.
    pub pools: BTreeMap<Pubkey, PoolSnapshot>,
}

impl QuotedState {
    /// What the processed view must show now.
    #[must_use]
    pub fn processed(record: &ChainRecord) -> Self {
        Self::newest(record, record.statuses.processed_slot())
    }

    /// What the confirmed view must show now.
    #[must_use]
    pub fn confirmed(record: &ChainRecord) -> Self {
        Self::newest(record, record.statuses.confirmed_slot())
    }

    fn newest(record: &ChainRecord, slot: u64) -> Self {
        let newest = record.states(slot).next_back();
        Self::of(slot, newest.expect("only sealed slots are shown"))
    }

    /// What readers must see of this state.
    ///
    /// # Panics
    /// When the state has no clock.
    #[must_use]
    pub fn of(slot: u64, state: &State) -> Self {
        let Some(Content::Clock(_, clock)) = state.get(&ids::CLOCK) else {
            panic!("slot {slot} has no clock");
        };
        let pools = state.iter().filter_map(|(key, content)| match content {
            Content::Pool(pool) => Some((*key, assemble(pool, state)?)),
            _ => None,
        });
        Self {
            slot,
            clock: *clock,
            pools: pools.collect(),
        }
    }
}

fn assemble(pool: &PoolState, state: &State) -> Option<PoolSnapshot> {
    let Content::Config(config) = state.get(&pool.amm_config)? else {
        return None;
    };
    let mint = |key: &Pubkey, of: &Pubkey| -> Option<Mint> {
        match state.get(key)? {
            Content::Mint(program, mint) if program.id() == *of => Some(*mint),
            _ => None,
        }
    };
    let vault = |key: &Pubkey, of: &Pubkey, mint: &Pubkey| match state.get(key)? {
        Content::Vault {
            program, account, ..
        } if program.id() == *of && account.mint == *mint => Some(*account),
        _ => None,
    };
    let (programs, mints, vaults) = (&pool.token_programs, &pool.mints, &pool.vaults);
    let vault_0 = vault(&vaults.token_0, &programs.token_0, &mints.token_0)?;
    let vault_1 = vault(&vaults.token_1, &programs.token_1, &mints.token_1)?;
    Some(PoolSnapshot {
        pool: Arc::new(pool.clone()),
        config: Arc::new((**config).clone()),
        vault_amounts: PerToken::new(Amount::new(vault_0.amount), Amount::new(vault_1.amount)),
        vaults_frozen: vault_0.frozen || vault_1.frozen,
        mints: PerToken::new(
            Arc::new(mint(&mints.token_0, &programs.token_0)?),
            Arc::new(mint(&mints.token_1, &programs.token_1)?),
        ),
    })
}
