//! State of the exchange at the end of one slot, as a persistent value (pure).
//!
//! A [`State`] is a persistent value: copying one is a few pointers, and a copy shares all that the
//! other does not change. So every slot of every fork keeps a state of its own, a reorg is a choice
//! between values, and readers hold a state as long as they like.

use std::sync::Arc;

use cpmm::{Clock, PoolSnapshot, PoolState};
use solana_pubkey::Pubkey;

use crate::{
    decoded_account::{ByAddress, DecodedAccount},
    dependencies::{Incomplete, dependencies, pool_snapshot, with_balances},
    missing_accounts::MissingAccounts,
    neighbours::Neighbours,
    trie::{Trie, trie},
};

/// Two mints, the smaller address first, as pools store them.
pub(crate) type Pair = (Pubkey, Pubkey);

/// Orders two mints as pools store them.
pub(crate) fn pair(a: Pubkey, b: Pubkey) -> Pair {
    if a <= b { (a, b) } else { (b, a) }
}

/// Number of a pool in an [`Index`].
type PoolNumber = u32;

/// The exchange at the end of one slot.
#[derive(Clone)]
pub(crate) struct State {
    /// Pools that can be quoted.
    pools: Trie<Pubkey, Arc<PoolSnapshot>>,
    /// Those pools by their mints.
    pairs: Trie<Pair, Arc<[Pubkey]>>,
    /// The mints that these pools connect.
    neighbours: Neighbours,
    /// Pools that exist and cannot be quoted, with the reason.
    incomplete: Trie<Pubkey, Incomplete>,
    clock: Option<Clock>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            pools: trie(),
            pairs: trie(),
            neighbours: Neighbours::default(),
            incomplete: trie(),
            clock: None,
        }
    }
}

impl State {
    /// The chain's time.
    pub(crate) const fn clock(&self) -> Option<Clock> {
        self.clock
    }

    /// A pool, if it can be quoted.
    pub(crate) fn pool(&self, address: &Pubkey) -> Option<&Arc<PoolSnapshot>> {
        self.pools.get(address)
    }

    /// The pools of two mints that can be quoted, in the order of their addresses.
    pub(crate) fn pools_of(&self, pair: &Pair) -> &[Pubkey] {
        self.pairs.get(pair).map_or(&[], |pools| &**pools)
    }

    /// The mints for which both of two mints are traded in pools that can be quoted, in no order.
    pub(crate) fn middles(&self, a: &Pubkey, b: &Pubkey) -> impl Iterator<Item = Pubkey> {
        self.neighbours.between(a, b)
    }

    /// The pools that trade a mint and can be quoted, in no order.
    pub(crate) fn pools_with(&self, mint: &Pubkey) -> impl Iterator<Item = Pubkey> {
        let others = self.neighbours.of(mint);
        let pools = others.flat_map(|other| self.pools_of(&pair(*mint, *other)));
        pools.copied()
    }

    /// Every pool that can be quoted.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (&Pubkey, &Arc<PoolSnapshot>)> {
        self.pools.iter()
    }

    /// Number of pools that can be quoted.
    pub(crate) fn len(&self) -> usize {
        self.pools.size()
    }

    /// Pools that exist and cannot be quoted, with the reason.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = (&Pubkey, &Incomplete)> {
        self.incomplete.iter()
    }

    /// Number of pools that exist and cannot be quoted.
    pub(crate) fn incomplete_len(&self) -> usize {
        self.incomplete.size()
    }

    /// Sets the chain's time.
    pub(crate) const fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    /// Renews a pool's snapshot after some of its accounts, or itself, have changed. `get` and `missing`
    /// are those of [`State::refresh`].
    pub(crate) fn change<'a>(
        &mut self,
        address: Pubkey,
        changed: impl Iterator<Item = Pubkey>,
        get: impl Fn(&Pubkey) -> Option<&'a DecodedAccount>,
        missing: &mut MissingAccounts,
    ) {
        let changed = changed.filter(|key| *key != address);
        // Found and replaced in one walk: each step to a pool of many is a wait for the memory.
        let renewed = self.pools.get_mut(&address).and_then(|snapshot| {
            let Some(DecodedAccount::Pool(pool)) = get(&address) else {
                return None;
            };
            *snapshot = Arc::new(with_balances(snapshot, pool, changed, &get)?);
            Some(())
        });
        if renewed.is_none() {
            self.refresh(address, get, missing);
        }
    }

    /// Makes a pool's snapshot from the accounts that `get` returns; `missing` gets the dependencies of which
    /// nothing is known, or only that they do not exist.
    pub(crate) fn refresh<'a>(
        &mut self,
        address: Pubkey,
        get: impl Fn(&Pubkey) -> Option<&'a DecodedAccount>,
        missing: &mut MissingAccounts,
    ) {
        let Some(DecodedAccount::Pool(pool)) = get(&address) else {
            self.set_incomplete(address, None);
            self.remove(&address);
            return;
        };
        let snapshot = pool_snapshot(pool, &get);
        if !snapshot.as_ref().is_ok_and(is_read) {
            let unknown =
                |pubkey: &Pubkey| matches!(get(pubkey), None | Some(DecodedAccount::Absent));
            missing.add(dependencies(pool).into_iter().filter(unknown));
        }
        match snapshot {
            Ok(snapshot) => {
                self.set_incomplete(address, None);
                self.insert(address, snapshot);
            }
            Err(reason) => {
                self.remove(&address);
                self.set_incomplete(address, Some(reason));
            }
        }
    }

    fn set_incomplete(&mut self, address: Pubkey, reason: Option<Incomplete>) {
        match reason {
            Some(reason) => self.incomplete.insert_mut(address, reason),
            // Nearly every pool is complete, and looking costs less than removing nothing.
            None if self.incomplete.contains_key(&address) => {
                self.incomplete.remove_mut(&address);
            }
            None => {}
        }
    }

    fn insert(&mut self, address: Pubkey, pool: PoolSnapshot) {
        let key = mints(&pool);
        let before = self.pools.get(&address).map(|before| mints(before));
        if before != Some(key) {
            if let Some(before) = before {
                self.unlist(before, &address);
            }
            if self.pools_of(&key).is_empty() {
                self.neighbours.connect(key);
            }
            let listed = self.pools_of(&key);
            let at = listed.partition_point(|pool| *pool < address);
            let (smaller, greater) = listed.split_at(at);
            let list = [smaller, &[address], greater].concat();
            self.pairs.insert_mut(key, list.into());
        }
        self.pools.insert_mut(address, Arc::new(pool));
    }

    fn remove(&mut self, address: &Pubkey) {
        if let Some(before) = self.pools.get(address).map(|before| mints(before)) {
            self.unlist(before, address);
            self.pools.remove_mut(address);
        }
    }

    fn unlist(&mut self, key: Pair, address: &Pubkey) {
        let listed = self.pools_of(&key).iter();
        let rest: Arc<[Pubkey]> = listed.filter(|pool| *pool != address).copied().collect();
        if rest.is_empty() {
            self.neighbours.disconnect(key);
            self.pairs.remove_mut(&key);
        } else {
            self.pairs.insert_mut(key, rest);
        }
    }
}

/// Whether both mints were read. What is known of one without that is enough to quote, and not to show it.
fn is_read(pool: &PoolSnapshot) -> bool {
    pool.mints.token_0.supply.is_some() && pool.mints.token_1.supply.is_some()
}

fn mints(pool: &PoolSnapshot) -> Pair {
    (pool.pool.mints.token_0, pool.pool.mints.token_1)
}

/// Maps each dependency to the pools that have it, in any slot of any fork: a superset for each of them, which
/// costs a needless refresh at worst. Never shrinks.
#[derive(Default)]
pub(crate) struct Index {
    pools: Vec<Pubkey>,
    /// Two tables, because one of all dependencies would be doubled for the last few of them.
    vaults: Dependents,
    others: Dependents,
}

impl Index {
    /// Makes room for so many pools, nearly all of which have a token of their own.
    pub(crate) fn reserve(&mut self, pools: usize) {
        self.pools.reserve(pools);
        self.vaults.by_dependency.reserve(pools.saturating_mul(2));
        self.others.by_dependency.reserve(pools);
    }

    /// Takes in a pool, unless it was the same before.
    pub(crate) fn register(
        &mut self,
        address: Pubkey,
        before: Option<&DecodedAccount>,
        now: &DecodedAccount,
    ) {
        let DecodedAccount::Pool(pool) = now else {
            return;
        };
        let known = matches!(before, Some(DecodedAccount::Pool(before)) if dependencies(before) == dependencies(pool));
        if !known {
            self.add(address, pool);
        }
    }

    fn add(&mut self, address: Pubkey, pool: &PoolState) {
        let Ok(number) = PoolNumber::try_from(self.pools.len()) else {
            // Four billion pools do not fit into this process anyway.
            return;
        };
        self.pools.push(address);
        let vaults = [pool.vaults.token_0, pool.vaults.token_1];
        for dependency in dependencies(pool) {
            if vaults.contains(&dependency) {
                self.vaults.add(dependency, number);
            } else {
                self.others.add(dependency, number);
            }
        }
    }

    /// Whether an account is worth keeping once its slot is confirmed. The stream reports every closed account of the
    /// chain, every Token-2022 mint of it, and every token account that anybody opens for the exchange's authority; of
    /// these only dependencies of pools are. One that becomes a dependency later is read by then. Configurations are
    /// kept without a pool: only the exchange's admin makes them.
    pub(crate) fn is_kept(&self, pubkey: &Pubkey, account: &DecodedAccount) -> bool {
        use DecodedAccount::{Clock, Config, Pool};
        matches!(account, Pool(_) | Config(_) | Clock(_))
            || self.pools_with(pubkey).next().is_some()
    }

    /// Every pool that was ever seen.
    pub(crate) fn pools(&self) -> &[Pubkey] {
        &self.pools
    }

    /// The pools that depend on an account.
    pub(crate) fn pools_with(&self, account: &Pubkey) -> impl Iterator<Item = Pubkey> {
        let numbers = self.vaults.pools_with(account).iter();
        let numbers = numbers.chain(self.others.pools_with(account));
        numbers.filter_map(|number| self.pools.get(usize::try_from(*number).ok()?).copied())
    }
}

/// The pools of some dependencies.
#[derive(Default)]
struct Dependents {
    by_dependency: ByAddress<Pools>,
    /// The pools of dependencies that many pools share.
    lists: Vec<Vec<PoolNumber>>,
}

/// Nearly every dependency but the common mints and configurations belongs to one pool. Small, because
/// there are three of its own to a pool.
#[derive(Clone, Copy)]
enum Pools {
    One(PoolNumber),
    /// Position in the lists.
    Many(u32),
}

impl Dependents {
    fn add(&mut self, dependency: Pubkey, number: PoolNumber) {
        let pools = match self.by_dependency.get(&dependency) {
            None => Pools::One(number),
            Some(Pools::One(first)) => {
                let at = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
                self.lists.push(vec![*first, number]);
                Pools::Many(at)
            }
            Some(Pools::Many(at)) => {
                let list = usize::try_from(*at)
                    .ok()
                    .and_then(|at| self.lists.get_mut(at));
                if let Some(list) = list {
                    list.push(number);
                }
                return;
            }
        };
        self.by_dependency.insert(dependency, pools);
    }

    fn pools_with(&self, dependency: &Pubkey) -> &[PoolNumber] {
        match self.by_dependency.get(dependency) {
            None => &[],
            Some(Pools::One(number)) => std::slice::from_ref(number),
            Some(Pools::Many(at)) => usize::try_from(*at)
                .ok()
                .and_then(|at| self.lists.get(at))
                .map_or(&[], Vec::as_slice),
        }
    }
}
