//! The exchange at one moment, and how one account moves it.
//!
//! A [`State`] is a persistent value: copying one is a few pointers, and a copy shares all that the
//! other does not change. So every slot of every branch keeps a state of its own, falling back to
//! another branch is a choice between values, and readers hold a moment as long as they like.

use std::{collections::HashMap, sync::Arc};

use cpmm::{Clock, PoolSnapshot, PoolState};
use foldhash::fast::RandomState;
use rpds::HashTrieMapSync;
use solana_pubkey::Pubkey;

use super::{
    assembly::{Incomplete, assemble, parts},
    content::Content,
};

/// Persistent map. The hash is fast and keyed at random: pool addresses can be chosen by whoever
/// opens a pool.
type Trie<K, V> = HashTrieMapSync<K, V, RandomState>;

/// Two mints, the smaller address first, as pools store them.
pub(super) type Pair = (Pubkey, Pubkey);

/// Orders two mints as pools store them.
pub(super) fn pair(a: Pubkey, b: Pubkey) -> Pair {
    if a <= b { (a, b) } else { (b, a) }
}

/// Number of a pool in an [`Index`].
type PoolNumber = u32;

/// The exchange at one moment.
#[derive(Clone)]
pub(super) struct State {
    accounts: Trie<Pubkey, Content>,
    /// Pools that can be quoted.
    pools: Trie<Pubkey, Arc<PoolSnapshot>>,
    /// Those pools by their mints.
    pairs: Trie<Pair, Arc<[Pubkey]>>,
    /// Pools that exist and cannot be quoted, with the reason.
    incomplete: Trie<Pubkey, Incomplete>,
    clock: Option<Clock>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            accounts: trie(),
            pools: trie(),
            pairs: trie(),
            incomplete: trie(),
            clock: None,
        }
    }
}

fn trie<K: Eq + std::hash::Hash, V>() -> Trie<K, V> {
    HashTrieMapSync::new_with_hasher_and_ptr_kind(RandomState::default())
}

impl State {
    /// The chain's time.
    pub(super) const fn clock(&self) -> Option<Clock> {
        self.clock
    }

    /// A pool, if it can be quoted.
    pub(super) fn pool(&self, address: &Pubkey) -> Option<&Arc<PoolSnapshot>> {
        self.pools.get(address)
    }

    /// The pools of two mints that can be quoted, in the order of their addresses.
    pub(super) fn pools_of(&self, pair: &Pair) -> &[Pubkey] {
        self.pairs.get(pair).map_or(&[], |pools| &**pools)
    }

    /// Every pool that can be quoted.
    pub(super) fn pools(&self) -> impl Iterator<Item = (&Pubkey, &Arc<PoolSnapshot>)> {
        self.pools.iter()
    }

    /// Number of pools that can be quoted.
    pub(super) fn len(&self) -> usize {
        self.pools.size()
    }

    /// Pools that exist and cannot be quoted, with the reason.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (&Pubkey, &Incomplete)> {
        self.incomplete.iter()
    }

    /// Number of pools that exist and cannot be quoted.
    pub(super) fn incomplete_len(&self) -> usize {
        self.incomplete.size()
    }

    /// What is known of an account.
    pub(super) fn account(&self, pubkey: &Pubkey) -> Option<&Content> {
        self.accounts.get(pubkey)
    }

    /// Writes an account. The pools it belongs to are put together by [`State::refresh`].
    pub(super) fn put(&mut self, pubkey: Pubkey, content: Content, index: &mut Index) -> Changed {
        if let Content::Clock(clock) = content {
            self.clock = Some(clock);
            return Changed::Nothing;
        }
        let before = self.accounts.get(&pubkey);
        // The stream tells of every closed account and of every Token-2022 mint of the chain. One that
        // becomes part of a pool later is read by then.
        let foreign = before.is_none()
            && matches!(content, Content::Absent | Content::Mint(..))
            && !index.contains(&pubkey);
        if foreign || before == Some(&content) {
            return Changed::Nothing;
        }
        let was_pool = matches!(before, Some(Content::Pool(_)));
        if let Content::Pool(pool) = &content {
            let same_parts =
                matches!(before, Some(Content::Pool(before)) if parts(before) == parts(pool));
            if !same_parts {
                index.register(pubkey, pool);
            }
        }
        let is_pool = matches!(content, Content::Pool(_));
        self.accounts.insert_mut(pubkey, content);
        if is_pool || was_pool {
            Changed::Pool
        } else {
            Changed::Part
        }
    }

    /// Puts a pool together again from what is known; `missing` is told the parts of which nothing
    /// is.
    pub(super) fn refresh(&mut self, address: Pubkey, mut missing: impl FnMut(Pubkey)) {
        let Some(Content::Pool(pool)) = self.accounts.get(&address) else {
            self.incomplete.remove_mut(&address);
            self.remove(&address);
            return;
        };
        match assemble(pool, |key| self.accounts.get(key)) {
            Ok(snapshot) => {
                self.incomplete.remove_mut(&address);
                self.insert(address, snapshot);
            }
            Err(reason) => {
                for part in parts(pool) {
                    if !self.accounts.contains_key(&part) {
                        missing(part);
                    }
                }
                self.remove(&address);
                self.incomplete.insert_mut(address, reason);
            }
        }
    }

    fn insert(&mut self, address: Pubkey, pool: PoolSnapshot) {
        let key = mints(&pool);
        let before = self.pools.get(&address).map(|before| mints(before));
        if before != Some(key) {
            if let Some(before) = before {
                self.unlist(before, &address);
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
            self.pairs.remove_mut(&key);
        } else {
            self.pairs.insert_mut(key, rest);
        }
    }
}

fn mints(pool: &PoolSnapshot) -> Pair {
    (pool.pool.mints.token_0, pool.pool.mints.token_1)
}

/// What a write moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    /// Nothing that a pool consists of.
    Nothing,
    /// The pool at the written address.
    Pool,
    /// A part of the pools that the index names.
    Part,
}

/// Which pools an account belongs to, in any slot of any branch: a superset for each of them, which
/// costs a needless refresh at worst. Never shrinks.
#[derive(Default)]
pub(super) struct Index {
    pools: Vec<Pubkey>,
    by_part: HashMap<Pubkey, Pools, RandomState>,
}

/// Nearly every part but the common mints and configurations belongs to one pool.
enum Pools {
    One(PoolNumber),
    Many(Vec<PoolNumber>),
}

impl Index {
    fn register(&mut self, address: Pubkey, pool: &PoolState) {
        let Ok(number) = PoolNumber::try_from(self.pools.len()) else {
            // Four billion pools do not fit into this process anyway.
            return;
        };
        self.pools.push(address);
        for part in parts(pool) {
            self.by_part
                .entry(part)
                .and_modify(|pools| pools.add(number))
                .or_insert(Pools::One(number));
        }
    }

    /// Whether an account is part of a pool.
    fn contains(&self, part: &Pubkey) -> bool {
        self.by_part.contains_key(part)
    }

    /// Every pool that was ever seen.
    pub(super) fn pools(&self) -> &[Pubkey] {
        &self.pools
    }

    /// The pools that a part belongs to.
    pub(super) fn pools_with(&self, part: &Pubkey) -> impl Iterator<Item = Pubkey> {
        let numbers: &[PoolNumber] = match self.by_part.get(part) {
            None => &[],
            Some(Pools::One(number)) => std::slice::from_ref(number),
            Some(Pools::Many(numbers)) => numbers,
        };
        numbers
            .iter()
            .filter_map(|number| self.pools.get(usize::try_from(*number).ok()?).copied())
    }
}

impl Pools {
    fn add(&mut self, number: PoolNumber) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, number]),
            Self::Many(numbers) => numbers.push(number),
        }
    }
}
