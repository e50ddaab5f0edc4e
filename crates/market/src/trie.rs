//! Persistent maps and sets, of which a copy shares all that it does not change.

use std::hash::Hash;

use foldhash::fast::RandomState;
use rpds::{HashTrieMapSync, HashTrieSetSync};

/// Persistent map.
pub(crate) type Trie<K, V> = HashTrieMapSync<K, V, RandomState>;

/// Persistent set.
pub(crate) type TrieSet<K> = HashTrieSetSync<K, RandomState>;

/// Children of a node of a [`Trie`]. A write copies the nodes on its path, and copying a node touches
/// every child: narrow nodes make writes cheap, and the few more steps of a read cost little.
const TRIE_DEGREE: u8 = 16;

/// An empty map.
pub(crate) fn trie<K: Eq + Hash, V>() -> Trie<K, V> {
    HashTrieMapSync::new_with_hasher_and_degree_and_ptr_kind(RandomState::default(), TRIE_DEGREE)
}

/// An empty set.
pub(crate) fn trie_set<K: Eq + Hash>() -> TrieSet<K> {
    HashTrieSetSync::new_with_hasher_and_degree_and_ptr_kind(RandomState::default(), TRIE_DEGREE)
}
