//! Neighbours: which mints each mint is traded for in some pool, as a persistent value (pure).
//!
//! Two mints have a middle between them where both have it as a neighbour. Nearly every mint has one neighbour and a few
//! have most of all mints, so a mint's neighbours are kept by how many they are, and the fewer of two mints' are tried.

use std::sync::Arc;

use solana_pubkey::Pubkey;

use crate::trie::{Trie, TrieSet, trie, trie_set};

/// Neighbours from which on they are a set: a list of so many is still searched and copied as fast as a set.
const MANY: usize = 32;

/// Neighbours of every mint that has any.
#[derive(Clone)]
pub(crate) struct Neighbours(Trie<Pubkey, Around>);

/// The neighbours of one mint.
#[derive(Clone)]
enum Around {
    One(Pubkey),
    Few(Arc<[Pubkey]>),
    Many(TrieSet<Pubkey>),
}

impl Default for Neighbours {
    fn default() -> Self {
        Self(trie())
    }
}

impl Neighbours {
    /// The two mints are traded for each other.
    pub(crate) fn connect(&mut self, (a, b): (Pubkey, Pubkey)) {
        for (mint, other) in [(a, b), (b, a)] {
            let around = match self.0.get(&mint) {
                None => Around::One(other),
                Some(around) => around.with(other),
            };
            self.0.insert_mut(mint, around);
        }
    }

    /// The two mints are not traded for each other any more.
    pub(crate) fn disconnect(&mut self, (a, b): (Pubkey, Pubkey)) {
        for (mint, other) in [(a, b), (b, a)] {
            match self.0.get(&mint).map(|around| around.without(&other)) {
                Some(Some(around)) => {
                    self.0.insert_mut(mint, around);
                }
                Some(None) => {
                    self.0.remove_mut(&mint);
                }
                None => {}
            }
        }
    }

    /// The mints that a mint is traded for, in no order.
    pub(crate) fn of(&self, mint: &Pubkey) -> impl Iterator<Item = &Pubkey> {
        self.0.get(mint).into_iter().flat_map(Around::iter)
    }

    /// The mints that both are traded for, in no order.
    pub(crate) fn between(&self, a: &Pubkey, b: &Pubkey) -> impl Iterator<Item = Pubkey> {
        let both = self.0.get(a).zip(self.0.get(b));
        let fewer_first = both.map(|(a, b)| if a.len() <= b.len() { (a, b) } else { (b, a) });
        fewer_first.into_iter().flat_map(|(fewer, more)| {
            let shared = fewer.iter().filter(|mint| more.contains(mint));
            shared.copied()
        })
    }
}

impl Around {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(mints) => mints.len(),
            Self::Many(mints) => mints.size(),
        }
    }

    fn contains(&self, mint: &Pubkey) -> bool {
        match self {
            Self::One(only) => only == mint,
            Self::Few(mints) => mints.contains(mint),
            Self::Many(mints) => mints.contains(mint),
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Pubkey> + '_> {
        match self {
            Self::One(only) => Box::new(std::iter::once(only)),
            Self::Few(mints) => Box::new(mints.iter()),
            Self::Many(mints) => Box::new(mints.iter()),
        }
    }

    fn with(&self, mint: Pubkey) -> Self {
        if self.contains(&mint) {
            return self.clone();
        }
        match self {
            Self::Many(mints) => Self::Many(mints.insert(mint)),
            _ if self.len() < MANY => Self::Few(self.iter().copied().chain([mint]).collect()),
            _ => {
                let all = self.iter().copied().chain([mint]);
                Self::Many(all.fold(trie_set(), |mut set, mint| {
                    set.insert_mut(mint);
                    set
                }))
            }
        }
    }

    /// `None` when none is left.
    fn without(&self, mint: &Pubkey) -> Option<Self> {
        if let Self::Many(mints) = self
            && mints.size() > MANY
        {
            return Some(Self::Many(mints.remove(mint)));
        }
        let rest: Vec<Pubkey> = self.iter().filter(|held| *held != mint).copied().collect();
        match rest.as_slice() {
            [] => None,
            [only] => Some(Self::One(*only)),
            _ => Some(Self::Few(rest.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn mint(n: u8) -> Pubkey {
        Pubkey::from([n; 32])
    }

    proptest! {
        #[test]
        fn what_is_between_two_mints_is_what_both_are_traded_for(
            // Few mints on one side, so that some get more neighbours than a list has.
            steps in prop::collection::vec((0..4u8, 4..80u8, prop::bool::weighted(0.8)), 1..400),
        ) {
            let mut neighbours = Neighbours::default();
            let mut model: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
            for (hub, other, connects) in steps {
                let pair = (mint(hub), mint(other));
                for (mint, neighbour) in [(hub, other), (other, hub)] {
                    let around = model.entry(mint).or_default();
                    if connects {
                        around.insert(neighbour);
                    } else {
                        around.remove(&neighbour);
                    }
                }
                if connects {
                    neighbours.connect(pair);
                } else {
                    neighbours.disconnect(pair);
                }
            }
            for a in 0..80 {
                for b in [0, 1, 4, 5, a] {
                    let empty = BTreeSet::new();
                    let of = |mint| model.get(mint).unwrap_or(&empty);
                    let expected: BTreeSet<Pubkey> =
                        of(&a).intersection(of(&b)).copied().map(mint).collect();
                    let found: Vec<Pubkey> = neighbours.between(&mint(a), &mint(b)).collect();
                    prop_assert_eq!(found.len(), expected.len());
                    prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
                }
            }
        }
    }
}
