//! Moments: the states that readers may see of each slot, made up when a judge asks (pure).

use std::{cell::OnceCell, collections::BTreeMap};

use super::{BlockId, BlockTree, State};

/// The moments of each slot. To note one costs the same on a chain of any length.
#[derive(Debug, Default)]
pub struct Moments(BTreeMap<u64, Vec<Moment>>);

/// A block as it was when no later write had been made.
#[derive(Debug)]
struct Moment {
    block: BlockId,
    /// Version of the first write that it is without.
    before: u64,
    state: OnceCell<State>,
}

impl Moments {
    /// From now on readers may see this slot as it is now.
    pub fn allow(&mut self, tree: &BlockTree, slot: u64) {
        let moments = self.0.entry(slot).or_default();
        moments.extend(tree.current(slot).map(|block| Moment {
            block,
            before: tree.next_version(),
            state: OnceCell::new(),
        }));
    }

    /// The states of a slot, the newest last; none before it was complete.
    pub fn of<'a>(
        &'a self,
        tree: &'a BlockTree,
        slot: u64,
    ) -> impl DoubleEndedIterator<Item = &'a State> {
        let moments = self.0.get(&slot).into_iter().flatten();
        moments.map(|moment| {
            let state = || tree.state_before(moment.block, moment.before);
            moment.state.get_or_init(state)
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::accounts::Content;

    #[test]
    fn a_moment_is_without_what_is_written_later() {
        let key = Pubkey::new_from_array([1; 32]);
        let content = |byte: u8| Content::Broken {
            owner: key,
            data: Bytes::copy_from_slice(&[byte]),
        };
        let mut tree = BlockTree::new(10, State::from([(key, content(0))]));
        let mut moments = Moments::default();
        tree.open(11, 10);
        assert_eq!(moments.of(&tree, 11).count(), 0);
        moments.allow(&tree, 11);
        tree.write(11, key, content(1));
        moments.allow(&tree, 11);
        tree.write(10, key, content(2));
        tree.write(11, key, content(3));
        let states: Vec<_> = moments
            .of(&tree, 11)
            .map(|state| state[&key].clone())
            .collect();
        assert_eq!(states, [content(0), content(1)]);
        assert_eq!(tree.state(11)[&key], content(3));
    }
}
