//! Judgement: which banks are whole, which slots are suspect, and which block is the one that is built on (pure).

use super::{
    SlotAssembler,
    bank::CollectedBank,
    slot::{EndedBank, Given},
    source::main_source,
};
use crate::generation::Generation;

impl SlotAssembler {
    /// The filter under which a bank is whole; `None` while that is not known.
    pub(super) fn whole_in(&self, source: usize, slot: u64, at: usize) -> Option<Generation> {
        let from = self.sources.get(source)?;
        let view = self.slots.get(&slot)?.views.get(source)?;
        let bank = view.banks.get(at)?;
        bank.has_ended().then_some(())?;
        if let Some(filter) = bank.witnessed_in {
            // A copy of a block that came before must hold all of it, or its creation was only repeated.
            let copies = view.banks.iter().take(at);
            let mut copies = copies.filter(|before| before.blockhash() == bank.blockhash());
            let is_complete = copies.all(|before| bank.contains(before));
            // Where a replay came while the bank was collected, what ended it may be another block of the slot, to which the
            // live stream has not come yet. It has once it reports a child.
            let is_certain = bank.id.is_some()
                || bank
                    .closed_in()
                    .is_some_and(|closed| bank.opened_in == closed || !from.replays(closed, slot))
                || self.has_created_child(source, slot);
            return (is_complete && is_certain).then_some(filter);
        }
        let filter = from.filter(bank.opened_in);
        if view
            .complete_ancestry
            .is_some_and(|complete| from.is_whole_after(complete))
        {
            return Some(filter);
        }
        if !from.replays(bank.opened_in, slot) || !self.holds_earlier_copies(source, slot, at) {
            return None;
        }
        let mut ended = self.ended(source, slot).iter();
        ended
            .any(|ended| {
                bank.blockhash() == Some(&ended.blockhash) && ended.ended_in < bank.opened_in
            })
            .then_some(filter)
    }

    /// Whether a bank holds all that the same filter has selected of its block before. Where a server ignores that it was asked for a
    /// replay, the live stream may bring a block once more that a replay has brought, and what comes after the request is its rest.
    fn holds_earlier_copies(&self, source: usize, slot: u64, at: usize) -> bool {
        let view = self
            .slots
            .get(&slot)
            .and_then(|entry| entry.views.get(source));
        let Some((from, view)) = self.sources.get(source).zip(view) else {
            return false;
        };
        let Some(bank) = view.banks.get(at) else {
            return false;
        };
        let is_copy = |before: &&CollectedBank| {
            before.blockhash() == bank.blockhash()
                && from.filter(before.opened_in) == from.filter(bank.opened_in)
        };
        let mut copies = view.banks.iter().take(at).filter(is_copy);
        copies.all(|before| bank.contains(before))
    }

    /// What the server of a source has reported the end of.
    fn ended(&self, source: usize, slot: u64) -> &[EndedBank] {
        let entry = self.slots.get(&slot);
        let view = entry.and_then(|entry| entry.views.get(main_source(source)));
        view.map_or(&[], |view| &view.ended)
    }

    /// The filter that a slot must be whole under.
    pub(super) fn required(&self, slot: u64) -> Generation {
        let mut newest = self.in_force.iter().rev();
        newest
            .find(|(first, _)| *first <= slot)
            .map(|(_, filter)| *filter)
            .unwrap_or_default()
    }

    fn is_whole(&self, source: usize, slot: u64, at: usize) -> bool {
        self.whole_in(source, slot, at)
            .is_some_and(|filter| filter >= self.required(slot))
    }

    /// Sources and positions of the banks of a slot that are whole and were not given out.
    pub(super) fn whole_banks(&self, slot: u64) -> Vec<(usize, usize)> {
        let Some(entry) = self.slots.get(&slot) else {
            return Vec::new();
        };
        let views = entry.views.iter().enumerate();
        let banks = views.flat_map(|(source, view)| {
            let banks = view.banks.iter().enumerate();
            banks
                .filter(|(_, bank)| bank.has_ended() && !bank.is_spent())
                .map(move |(at, _)| (source, at))
        });
        banks
            .filter(|(source, at)| self.is_whole(*source, slot, *at))
            .collect()
    }

    /// When a slot that a source has to be asked for again was frozen, or had ended where that is known.
    pub(super) fn suspect(&self, source: usize, slot: u64) -> Option<Generation> {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        let entry = self.slots.get(&slot)?;
        let view = entry.views.get(source)?;
        let frozen_in = view.frozen_in?;
        if entry.given.is_none()
            && (self.is_below_confirmed(slot) || self.builds_on_others(source, slot))
        {
            return None;
        }
        let whole = self.whole_banks(slot);
        let has_what_is_due = match &entry.given {
            None => !whole.is_empty(),
            // Another bank of the slot may be whole, and neither be the one that was given out nor the one that is named.
            Some(given) => self.disputed(source, slot).all(|hash| {
                let mut hashes = whole.iter().filter_map(|bank| self.blockhash(slot, *bank));
                !self.may_give_way(slot, given, hash) || hashes.any(|whole| whole == hash)
            }),
        };
        if has_what_is_due {
            return None;
        }
        if self.builds_on_dead(source, slot) {
            return None;
        }
        let elsewhere = entry.views.iter().enumerate();
        if elsewhere
            .filter(|(other, _)| *other != source)
            .any(|(_, view)| view.is_witnessed())
            // One that is a whole slot behind may stand still.
            && !self.has_ended_child(source, slot)
        {
            return None;
        }
        // The rest of it may be on its way until a child has ended.
        if view.is_in_progress() && !self.has_ended_child(source, slot) {
            return None;
        }
        let ended = self.ended(source, slot).iter();
        Some(ended.map(|ended| ended.ended_in).max().unwrap_or(frozen_in))
    }

    /// Whether a slot is below one that is confirmed. What was not given out of it then never will be: the chain goes on from
    /// elsewhere, unless the confirmed one is withdrawn.
    pub(super) fn is_below_confirmed(&self, slot: u64) -> bool {
        self.confirmed.is_some_and(|confirmed| slot < confirmed)
    }

    /// Whether another block, which something builds on, may come in the place of the one that was given out: not where the chain
    /// has gone on from that one, and nobody says that the other is committed.
    fn may_give_way(&self, slot: u64, given: &Given, other: &str) -> bool {
        let is_committed = |hash: &str| {
            let entry = self.slots.get(&slot);
            entry.is_some_and(|entry| entry.is_committed(hash))
        };
        let is_final = self.is_below_confirmed(slot) || is_committed(&given.blockhash);
        let stays = self.is_named(slot, &given.blockhash) == Some(true);
        is_committed(other) || !(is_final && stays)
    }

    /// Blocks of a slot, other than the one that was given out, that what builds on the slot names at this source, and that
    /// have not been given out before.
    fn disputed(&self, source: usize, slot: u64) -> impl Iterator<Item = &str> {
        let entry = self.slots.get(&slot);
        let is_known = move |hash: &&str| {
            entry.is_some_and(|entry| {
                let given = entry.given.as_ref().map(|given| given.blockhash.as_str());
                given == Some(*hash) || entry.is_lost(hash)
            })
        };
        let metas = self
            .children_of(slot)
            .filter_map(move |(_, child)| child.views.get(source))
            .flat_map(|view| &view.banks)
            .filter_map(CollectedBank::meta);
        let named = metas.filter(move |meta| meta.parent_slot == slot);
        named
            .map(|meta| meta.parent_blockhash.as_str())
            .filter(move |hash| entry.is_some() && !is_known(hash))
    }

    /// Whether what builds on a slot that was given out names, at this source, another block of it.
    pub(super) fn is_disputed(&self, source: usize, slot: u64) -> bool {
        self.disputed(source, slot).next().is_some()
    }

    /// Whether that is so at any source.
    pub(super) fn is_disputed_anywhere(&self, slot: u64) -> bool {
        (0..self.sources.len()).any(|source| self.is_disputed(source, slot))
    }

    /// Whether a slot has an ancestor that was given up, and that nothing has named since: then nothing is to come of it.
    fn builds_on_dead(&self, source: usize, slot: u64) -> bool {
        let view_of = |slot: u64| self.slots.get(&slot)?.views.get(source);
        let parent_of = |slot: &u64| {
            let mut banks = view_of(*slot)?.banks.iter().rev();
            banks.find_map(|bank| bank.parent)
        };
        let is_given = |slot: &u64| {
            let entry = self.slots.get(slot);
            entry.is_some_and(|entry| entry.given.is_some())
        };
        let ancestry = std::iter::successors(parent_of(&slot), parent_of);
        let mut ancestry = ancestry.take_while(|slot| !is_given(slot));
        ancestry.any(|slot| {
            view_of(slot).is_some_and(|view| {
                view.is_dead && view.banks.is_empty() && view.frozen_in.is_none()
            })
        })
    }

    /// Whether each block of a slot that a source has delivered, or names as a parent, builds on one in the place of which another
    /// was given out: until that one is replaced, nothing of the slot can be given out.
    fn builds_on_others(&self, source: usize, slot: u64) -> bool {
        let entry = self.slots.get(&slot);
        let Some(view) = entry.and_then(|entry| entry.views.get(source)) else {
            return false;
        };
        let is_on_another = |bank: &CollectedBank| {
            let hash = bank.blockhash();
            hash.is_some_and(|hash| self.is_on_another(source, slot, hash))
        };
        let is_delivered = |hash: &str| {
            let mut banks = view.banks.iter();
            banks.any(|bank| bank.blockhash() == Some(hash))
        };
        !view.banks.is_empty()
            && view.banks.iter().all(is_on_another)
            && self.disputed(source, slot).all(is_delivered)
    }

    /// Whether of the next slot below a block of which something was given out that is another block than the one it builds on.
    fn is_on_another(&self, source: usize, slot: u64, blockhash: &str) -> bool {
        let parent_of = |slot: u64, hash: &str| {
            let view = self.slots.get(&slot)?.views.get(source)?;
            let mut metas = view.banks.iter().filter_map(CollectedBank::meta);
            let meta = metas.find(|meta| meta.blockhash == hash)?;
            Some((meta.parent_slot, meta.parent_blockhash.as_str()))
        };
        let given = |slot: u64| self.slots.get(&slot)?.given.as_ref();
        let parent = parent_of(slot, blockhash);
        let mut ancestry = std::iter::successors(parent, |(slot, hash)| parent_of(*slot, hash));
        ancestry.any(|(slot, hash)| given(slot).is_some_and(|given| given.blockhash != hash))
    }

    /// Whether the creation of a child was reported.
    fn has_created_child(&self, source: usize, slot: u64) -> bool {
        let mut children = self.children_of(slot);
        children.any(|(_, child)| {
            child.views.get(source).is_some_and(|view| {
                view.was_created && view.banks.iter().any(|bank| bank.parent == Some(slot))
            })
        })
    }

    fn has_ended_child(&self, source: usize, slot: u64) -> bool {
        let mut children = self.children_of(slot);
        children.any(|(_, child)| {
            child.views.get(source).is_some_and(|view| {
                let mut banks = view.banks.iter();
                banks.any(|bank| bank.parent == Some(slot) && bank.has_ended())
            })
        })
    }

    /// Whether a block is named by one that builds on it; `None` where none says so.
    pub(super) fn is_named(&self, slot: u64, blockhash: &str) -> Option<bool> {
        let children = self.children_of(slot);
        let mut named = None;
        for meta in children
            .flat_map(|(_, child)| child.banks())
            .filter_map(CollectedBank::meta)
        {
            if meta.parent_slot == slot {
                let is_this = meta.parent_blockhash == blockhash;
                named = Some(named.unwrap_or(false) || is_this);
            }
        }
        named
    }
}
