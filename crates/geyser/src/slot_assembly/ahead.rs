//! Giving ahead: what a bank writes goes to the consumer as it comes, before its slot is known to be whole (pure).
//!
//! Hundreds of writes that are handed out when a slot ends are worked through between its end and the first quote from it. A
//! consumer that can take back what nobody has seen, as a market that builds each slot apart, need not wait for the end: it is
//! given the bank that will most likely be given out, and is told when that is another one, or none.
//!
//! Of a slot one bank at a time is given ahead, from its creation on, where it was witnessed and builds on a slot that was given
//! out. Whatever takes that away makes it void.

use std::collections::BTreeMap;

use sluice_chain_types::SlotStatus;

use super::{Assembled, SlotAssembler, bank::CollectedBank, slot::AssembledSlot};
use crate::update::{Body, SlotUpdate, Update};

/// What is given ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Whether the consumer takes anything ahead.
    wanted: bool,
    /// The slots of which a bank is given ahead, with the parents that it was given with.
    slots: BTreeMap<u64, u64>,
    /// Content that was given ahead and then whole. To let go of it takes time that the end of a slot has not.
    done: Vec<Update>,
}

impl SlotAssembler {
    /// Gives out banks as they come from here on, too, in [`Assembled::Ahead`].
    pub const fn give_ahead(&mut self) {
        self.ahead.wanted = true;
    }

    /// Lets go of what was given out.
    pub(super) fn let_go(&mut self) {
        self.ahead.done.clear();
    }

    /// Begins to give a bank of a slot ahead, where one is collected that will most likely be given out: what has come of it, and
    /// from here on what comes.
    pub(super) fn begin_ahead(&mut self, slot: u64) {
        if !self.ahead.wanted || self.ahead.slots.contains_key(&slot) {
            return;
        }
        let (required, start) = (self.required(slot), self.start);
        let is_given = |entry: &AssembledSlot| entry.given.is_some();
        let is_due = |parent: u64| {
            let is_before = start.is_some_and(|start| parent < start);
            is_before || self.slots.get(&parent).is_some_and(is_given)
        };
        let is_promising = |bank: &CollectedBank| {
            let is_in_force = bank.witnessed_in.is_some_and(|filter| filter >= required);
            is_in_force && !bank.is_spent() && !bank.has_ended() && bank.parent.is_some_and(is_due)
        };
        let Some(entry) = self.slots.get(&slot).filter(|entry| !is_given(entry)) else {
            return;
        };
        let views = entry.views.iter().enumerate();
        let mut promising = views.filter_map(|(source, view)| {
            let at = view.banks.iter().rposition(is_promising)?;
            Some((source, at))
        });
        let Some((source, at)) = promising.next() else {
            return;
        };
        let view = self.slots.get_mut(&slot);
        let view = view.and_then(|entry| entry.views.get_mut(source));
        let Some(bank) = view.and_then(|view| view.banks.get_mut(at)) else {
            return;
        };
        let Some(parent) = bank.parent else {
            return;
        };
        let created = Body::Slot(SlotUpdate {
            slot,
            parent: Some(parent),
            status: SlotStatus::CreatedBank,
            dead_error: None,
        });
        let bodies = std::iter::once(created).chain(bank.go_ahead());
        self.assembled
            .extend(bodies.map(|body| Assembled::Ahead { slot, body }));
        self.ahead.slots.insert(slot, parent);
    }

    /// Begins with what builds on a slot that was given out just now: validators announce that a slot is complete while its child
    /// writes already.
    pub(super) fn begin_children_ahead(&mut self, slot: u64) {
        if self.ahead.wanted {
            let children = self.children.get(&slot).cloned().unwrap_or_default();
            children
                .into_iter()
                .for_each(|child| self.begin_ahead(child));
        }
    }

    /// Takes out the content of a bank that is given out, but for what the consumer has: nothing, where another bank was given
    /// ahead, which is void.
    pub(super) fn not_given_ahead(
        &mut self,
        slot: u64,
        (source, at): (usize, usize),
    ) -> Vec<Update> {
        let entry = self.slots.get_mut(&slot);
        let bank = entry.and_then(|entry| entry.views.get_mut(source)?.banks.get_mut(at));
        let Some(bank) = bank else {
            return Vec::new();
        };
        let content = bank.take_content();
        let Some(given_with) = self.ahead.slots.get(&slot) else {
            return content;
        };
        if !bank.goes_ahead || bank.parent != Some(*given_with) {
            self.void(slot);
            return content;
        }
        self.end_ahead(slot);
        self.ahead.done.extend(content);
        Vec::new()
    }

    /// Takes back what was given ahead of a slot and of all above: what they build on is taken back.
    pub(super) fn void_from(&mut self, slot: u64) {
        let above: Vec<u64> = self.ahead.slots.range(slot..).map(|(at, _)| *at).collect();
        above.into_iter().for_each(|slot| self.void(slot));
    }

    /// Takes back what was given ahead of banks that are not there any more.
    pub(super) fn void_what_is_gone(&mut self) {
        let goes_ahead = |slot: &u64| {
            let entry = self.slots.get(slot);
            entry.is_some_and(|entry| entry.banks().any(|bank| bank.goes_ahead))
        };
        let slots = self.ahead.slots.keys().copied();
        let gone: Vec<u64> = slots.filter(|slot| !goes_ahead(slot)).collect();
        gone.into_iter().for_each(|slot| self.void(slot));
    }

    fn void(&mut self, slot: u64) {
        self.end_ahead(slot);
        self.assembled.push(Assembled::Void { slot });
    }

    fn end_ahead(&mut self, slot: u64) {
        self.ahead.slots.remove(&slot);
        if let Some(entry) = self.slots.get_mut(&slot) {
            for bank in entry.views.iter_mut().flat_map(|view| &mut view.banks) {
                bank.goes_ahead = false;
            }
        }
    }
}
