//! What the market must show, said in the plainest way: no caches, no increments, everything from the whole chain and
//! from everything that was told of it. It shares nothing with the market but the arithmetic's types.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cpmm::{Amount, Clock, Mint, PerToken, PoolSnapshot, PoolState, ids};
use solana_pubkey::Pubkey;

use super::{accounts::Content, chain::State};

/// What was told of the slots, in whatever order and however often.
#[derive(Clone, Debug)]
pub struct Told {
    genesis: u64,
    /// The parent of each slot, once any message named it.
    pub parents: BTreeMap<u64, u64>,
    /// Slots said to be frozen.
    pub processed: BTreeSet<u64>,
    /// Slots said to be confirmed or finalized.
    pub confirmed: BTreeSet<u64>,
    /// Slots said to be dead.
    pub dead: BTreeSet<u64>,
}

impl Told {
    /// Nothing but that the first slot is confirmed.
    #[must_use]
    pub fn new(genesis: u64) -> Self {
        Self {
            genesis,
            parents: BTreeMap::new(),
            processed: BTreeSet::from([genesis]),
            confirmed: BTreeSet::from([genesis]),
            dead: BTreeSet::new(),
        }
    }

    /// Slots that are frozen together with all their ancestors.
    #[must_use]
    pub fn sealed(&self) -> BTreeSet<u64> {
        let mut sealed = BTreeSet::from([self.genesis]);
        // A parent is older than its child, so one pass in ascending order sees parents first.
        for slot in &self.processed {
            if self.parents.get(slot).is_some_and(|p| sealed.contains(p)) {
                sealed.insert(*slot);
            }
        }
        sealed
    }

    /// Dead slots and all that build on them.
    #[must_use]
    pub fn void(&self) -> BTreeSet<u64> {
        let mut void = self.dead.clone();
        for (slot, parent) in &self.parents {
            if void.contains(parent) {
                void.insert(*slot);
            }
        }
        void
    }

    /// A slot and its ancestors, youngest first.
    pub fn line(&self, slot: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(slot), |slot| self.parents.get(slot).copied())
    }

    /// A slot and all that build on it.
    #[must_use]
    pub fn tree(&self, slot: u64) -> BTreeSet<u64> {
        let mut tree = BTreeSet::from([slot]);
        for (slot, parent) in self.parents.range(slot..) {
            if tree.contains(parent) {
                tree.insert(*slot);
            }
        }
        tree
    }

    /// Slots said to be confirmed, and all that they build on.
    #[must_use]
    pub fn settled(&self) -> BTreeSet<u64> {
        let mut settled = self.confirmed.clone();
        for (slot, parent) in self.parents.iter().rev() {
            if settled.contains(slot) {
                settled.insert(*parent);
            }
        }
        settled
    }

    /// The slot that the confirmed view shows.
    #[must_use]
    pub fn confirmed_slot(&self) -> u64 {
        let (sealed, void) = (self.sealed(), self.void());
        let mut settled = self.settled().into_iter().rev();
        settled
            .find(|slot| sealed.contains(slot) && !void.contains(slot))
            .unwrap_or(self.genesis)
    }

    /// The slot that the processed view shows.
    #[must_use]
    pub fn processed_slot(&self) -> u64 {
        let confirmed = self.confirmed_slot();
        let (tree, void) = (self.tree(confirmed), self.void());
        let mut sealed = self.sealed().into_iter().rev();
        sealed
            .find(|slot| tree.contains(slot) && !void.contains(slot))
            .unwrap_or(confirmed)
    }
}

/// Everything that readers can see at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The slot.
    pub slot: u64,
    /// The chain's time in it.
    pub clock: Clock,
    /// Every pool that can be quoted.
    pub pools: BTreeMap<Pubkey, PoolSnapshot>,
}

impl Moment {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(parents: &[(u64, u64)]) -> Told {
        let mut told = Told::new(10);
        told.parents.extend(parents.iter().copied());
        told.processed.extend(parents.iter().map(|(slot, _)| *slot));
        told
    }

    #[test]
    fn the_highest_sealed_slot_is_shown_and_an_unsealed_one_is_not() {
        let mut told = told(&[(11, 10), (12, 11), (14, 13)]);
        assert_eq!((told.processed_slot(), told.confirmed_slot()), (12, 10));
        told.parents.insert(13, 12);
        told.processed.insert(13);
        assert_eq!(told.processed_slot(), 14);
    }

    #[test]
    fn death_takes_the_descendants_along() {
        let mut told = told(&[(11, 10), (12, 11), (13, 12), (14, 11)]);
        told.dead.insert(12);
        assert_eq!(told.processed_slot(), 14);
        told.dead.insert(14);
        assert_eq!(told.processed_slot(), 11);
    }

    #[test]
    fn a_confirmed_slot_confirms_its_ancestors_and_ends_other_branches() {
        let mut told = told(&[(11, 10), (12, 11), (13, 11)]);
        told.confirmed.insert(12);
        assert_eq!((told.processed_slot(), told.confirmed_slot()), (12, 12));
        told.processed.remove(&12);
        assert_eq!((told.processed_slot(), told.confirmed_slot()), (13, 11));
    }
}
