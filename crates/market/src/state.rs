//! The exchange at one moment, as readers see it.
//!
//! A [`State`] is a persistent value: copying one is a few pointers, and a copy shares all that the
//! other does not change. So every slot of every branch keeps a state of its own, falling back to
//! another branch is a choice between values, and readers hold a moment as long as they like.

use std::sync::Arc;

use cpmm::{Clock, PoolSnapshot, PoolState};
use foldhash::fast::RandomState;
use rpds::HashTrieMapSync;
use solana_pubkey::Pubkey;

use super::{
    accounts::ByAddress,
    assembly::{Incomplete, assemble, parts, patch},
    content::Content,
    wanted::Wanted,
};

/// Persistent map.
type Trie<K, V> = HashTrieMapSync<K, V, RandomState>;

/// Children of a node of a [`Trie`]. A write copies the nodes on its path, and copying a node touches
/// every child: narrow nodes make writes cheap, and the few more steps of a read cost little.
const TRIE_DEGREE: u8 = 16;

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
            pools: trie(),
            pairs: trie(),
            incomplete: trie(),
            clock: None,
        }
    }
}

fn trie<K: Eq + std::hash::Hash, V>() -> Trie<K, V> {
    HashTrieMapSync::new_with_hasher_and_degree_and_ptr_kind(RandomState::default(), TRIE_DEGREE)
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

    /// Sets the chain's time.
    pub(super) const fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    /// Puts a pool together after some of its accounts, or itself, have changed. `get` and `wanted`
    /// are those of [`State::refresh`].
    pub(super) fn change<'a>(
        &mut self,
        address: Pubkey,
        changed: impl Iterator<Item = Pubkey>,
        get: impl Fn(&Pubkey) -> Option<&'a Content>,
        wanted: &mut Wanted,
    ) {
        let parts = changed.filter(|key| *key != address);
        let patched = self.pools.get(&address).and_then(|before| {
            let Some(Content::Pool(pool)) = get(&address) else {
                return None;
            };
            patch(before, pool, parts, &get)
        });
        match patched {
            Some(pool) => {
                self.pools.insert_mut(address, Arc::new(pool));
            }
            None => self.refresh(address, get, wanted),
        }
    }

    /// Puts a pool together from the accounts that `get` returns; `wanted` gets the parts of which
    /// nothing is known, or only that they do not exist.
    pub(super) fn refresh<'a>(
        &mut self,
        address: Pubkey,
        get: impl Fn(&Pubkey) -> Option<&'a Content>,
        wanted: &mut Wanted,
    ) {
        let Some(Content::Pool(pool)) = get(&address) else {
            self.set_incomplete(address, None);
            self.remove(&address);
            return;
        };
        match assemble(pool, &get) {
            Ok(snapshot) => {
                self.set_incomplete(address, None);
                self.insert(address, snapshot);
            }
            Err(reason) => {
                let unknown = |part: &Pubkey| matches!(get(part), None | Some(Content::Absent));
                wanted.miss(parts(pool).into_iter().filter(unknown));
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

/// Which pools an account belongs to, in any slot of any branch: a superset for each of them, which
/// costs a needless refresh at worst. Never shrinks.
#[derive(Default)]
pub(super) struct Index {
    pools: Vec<Pubkey>,
    /// Two tables, because one of all parts would be doubled for the last few of them.
    vaults: Parts,
    others: Parts,
}

impl Index {
    /// Makes room for so many pools, nearly all of which have a token of their own.
    pub(super) fn reserve(&mut self, pools: usize) {
        self.pools.reserve(pools);
        self.vaults.by_part.reserve(pools.saturating_mul(2));
        self.others.by_part.reserve(pools);
    }

    /// Takes in a pool, unless it was the same before.
    pub(super) fn register(&mut self, address: Pubkey, before: Option<&Content>, now: &Content) {
        let Content::Pool(pool) = now else { return };
        let known = matches!(before, Some(Content::Pool(before)) if parts(before) == parts(pool));
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
        for part in parts(pool) {
            if vaults.contains(&part) {
                self.vaults.add(part, number);
            } else {
                self.others.add(part, number);
            }
        }
    }

    /// Whether an account is worth keeping. The stream tells of every closed account and of every
    /// Token-2022 mint of the chain; of these only parts of pools are. One that becomes part of a
    /// pool later is read by then.
    pub(super) fn is_kept(&self, pubkey: &Pubkey, content: &Content) -> bool {
        !matches!(content, Content::Absent | Content::Mint(..))
            || self.pools_with(pubkey).next().is_some()
    }

    /// Every pool that was ever seen.
    pub(super) fn pools(&self) -> &[Pubkey] {
        &self.pools
    }

    /// The pools that a part belongs to.
    pub(super) fn pools_with(&self, part: &Pubkey) -> impl Iterator<Item = Pubkey> {
        let numbers = self.vaults.pools_with(part).iter();
        let numbers = numbers.chain(self.others.pools_with(part));
        numbers.filter_map(|number| self.pools.get(usize::try_from(*number).ok()?).copied())
    }
}

/// The pools of some parts.
#[derive(Default)]
struct Parts {
    by_part: ByAddress<Pools>,
    /// The pools of parts that belong to many.
    lists: Vec<Vec<PoolNumber>>,
}

/// Nearly every part but the common mints and configurations belongs to one pool. Small, because there
/// are three parts to a pool.
#[derive(Clone, Copy)]
enum Pools {
    One(PoolNumber),
    /// Position in the lists.
    Many(u32),
}

impl Parts {
    fn add(&mut self, part: Pubkey, number: PoolNumber) {
        let pools = match self.by_part.get(&part) {
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
        self.by_part.insert(part, pools);
    }

    fn pools_with(&self, part: &Pubkey) -> &[PoolNumber] {
        match self.by_part.get(part) {
            None => &[],
            Some(Pools::One(number)) => std::slice::from_ref(number),
            Some(Pools::Many(at)) => usize::try_from(*at)
                .ok()
                .and_then(|at| self.lists.get(at))
                .map_or(&[], Vec::as_slice),
        }
    }
}
