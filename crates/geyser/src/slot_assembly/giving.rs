//! Giving out: hands whole slots to the consumer in order, replaces blocks, and forgets what is finalized (pure).

use std::collections::BTreeSet;

use sluice_chain_types::SlotStatus;

use super::{
    Assembled, Finding, MAX_SLOTS, SlotAssembler,
    bank::{CollectedBank, WholeBank},
    owed::Owed,
    slot::{AssembledSlot, Given},
    source::main_source,
};
use crate::{
    generation::Generation,
    update::{Body, SlotUpdate, Update},
};

impl SlotAssembler {
    pub(super) fn give(&mut self, update: Update) {
        self.assembled.push(Assembled::Update(update));
    }

    /// Gives out what can be, after something became known of a slot.
    pub(super) fn advance(&mut self) {
        let Some(start) = self.start else {
            return;
        };
        if self.work.take_all() {
            let all = self.slots.range(start..).map(|(slot, _)| *slot);
            all.for_each(|slot| self.work.is_due(slot));
        }
        // Parents are smaller than children, so going upwards gives out whole forks.
        let mut root = self.root;
        while let Some(slot) = self.work.next() {
            if slot < start || !self.slots.contains_key(&slot) {
                continue;
            }
            self.advance_slot(slot);
            let Some(entry) = self.slots.get(&slot) else {
                continue;
            };
            if entry.is_given_and_committed() {
                self.confirmed = self.confirmed.max(Some(slot));
            }
            if entry.is_given_and_finalized() {
                root = root.max(Some(slot));
            }
            if entry.given.is_some() && !self.is_disputed_anywhere(slot) {
                self.work.clear(slot);
            } else {
                self.work.suspect(slot);
            }
        }
        self.forget(root);
    }

    /// Gives out a slot, or replaces what was given out of it, where a whole bank of it calls for that.
    fn advance_slot(&mut self, slot: u64) {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        let given = self.slots.get(&slot).and_then(|entry| entry.given.clone());
        match given {
            None => self.choose(slot),
            Some(given) => self.replace(slot, &given),
        }
        // At once: a commitment may let the slot be forgotten, and with it what only a copy holds.
        self.drop_copies(slot);
        let due = self
            .slots
            .get_mut(&slot)
            .map(AssembledSlot::take_commitments);
        for update in due.unwrap_or_default() {
            self.give(update);
        }
    }

    fn bank(&self, slot: u64, (source, at): (usize, usize)) -> Option<&CollectedBank> {
        self.slots.get(&slot)?.views.get(source)?.banks.get(at)
    }

    pub(super) fn blockhash(&self, slot: u64, bank: (usize, usize)) -> Option<&str> {
        self.bank(slot, bank)?.blockhash()
    }

    fn bank_is_named(&self, slot: u64, bank: (usize, usize)) -> Option<bool> {
        self.is_named(slot, self.blockhash(slot, bank)?)
    }

    /// Gives out a slot once what it builds on was. Of several blocks that build on that the one that is committed is taken, or
    /// the one that is built on, else the newest.
    fn choose(&mut self, slot: u64) {
        // A fork that was left, and of several servers perhaps one that only one of them has.
        let has_others = self.sources.len() > 2;
        if has_others && self.is_below_confirmed(slot) {
            return;
        }
        // Most slots wait for their parents, hundreds of them during a replay.
        let banks = self
            .slots
            .get(&slot)
            .into_iter()
            .flat_map(AssembledSlot::banks);
        if !banks
            .filter(|bank| bank.has_ended())
            .any(|bank| self.builds_on_given(bank))
        {
            return;
        }
        let mut banks = self.whole_banks(slot);
        banks.retain(|bank| self.is_due(slot, *bank));
        let is_committed = |bank: &&(usize, usize)| {
            let hash = self.blockhash(slot, **bank);
            let entry = self.slots.get(&slot);
            hash.zip(entry)
                .is_some_and(|(hash, entry)| entry.is_committed(hash))
        };
        let is_named = |bank: &&(usize, usize)| self.bank_is_named(slot, **bank) == Some(true);
        let newest_first = || banks.iter().rev();
        let chosen = match banks.as_slice() {
            [only] => Some(only),
            several => newest_first()
                .find(is_committed)
                .or_else(|| newest_first().find(is_named))
                .or(several.last()),
        };
        if let Some(bank) = chosen.copied() {
            self.give_out(slot, bank);
        }
    }

    /// Drops what has come once more of the block that was given out, but for what it was given out without.
    fn drop_copies(&mut self, slot: u64) {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return;
        };
        let mut late = Vec::new();
        for (source, update) in entry.take_copies() {
            let filter = update.generation().zip(self.sources.get(source));
            let filter = filter.map_or_else(Generation::default, |(at, from)| from.filter(at));
            late.extend(entry.take_late(source, update, filter));
        }
        self.assembled.extend(
            late.into_iter()
                .map(|update| Assembled::Late { slot, update }),
        );
    }

    /// Gives out a replacement block of a slot: one that is built on while the first is not, or one that is committed. A block that
    /// was committed stays unless its own server replaces it, and one that its server stands by gives way to a committed one
    /// alone.
    fn replace(&mut self, slot: u64, given: &Given) {
        let Some(entry) = self.slots.get(&slot) else {
            return;
        };
        let banks = self.whole_banks(slot);
        if banks.is_empty() {
            return;
        }
        // With a slot those that it builds on are committed.
        let is_final = self.is_below_confirmed(slot) || entry.is_committed(&given.blockhash);
        let stays = self.is_named(slot, &given.blockhash) == Some(true);
        let is_chosen = |bank: &(usize, usize)| {
            let hash = self.blockhash(slot, *bank);
            hash.is_some_and(|hash| {
                let is_new = hash != given.blockhash && !entry.is_lost(hash);
                let is_committed = entry.is_committed(hash);
                let is_of_server = main_source(bank.0) == main_source(given.source);
                let is_certain = match self.is_named(slot, hash) {
                    Some(true) => {
                        let is_left = !stays && (is_of_server || !self.stands_by(slot, given));
                        is_committed || is_left
                    }
                    Some(false) => false,
                    None => is_committed,
                };
                is_new && is_certain && (is_of_server || !is_final)
            })
        };
        let chosen = banks.into_iter().rev().find(is_chosen);
        let Some(bank) = chosen.filter(|bank| self.is_due(slot, *bank)) else {
            return;
        };
        self.withdraw(slot);
        if let Some(entry) = self.slots.get_mut(&slot) {
            entry.lost.push(given.blockhash.clone());
        }
        self.assembled.push(Assembled::Replaced { slot });
        self.give_out(slot, bank);
    }

    /// Whether the source of a block that was given out has delivered no other one since, and none that builds on another one.
    fn stands_by(&self, slot: u64, given: &Given) -> bool {
        let view = self
            .slots
            .get(&slot)
            .and_then(|entry| entry.views.get(given.source));
        let newest = view.and_then(|view| {
            let mut banks = view.banks.iter().rev();
            banks.find_map(CollectedBank::blockhash)
        });
        newest == Some(&given.blockhash) && !self.is_disputed(given.source, slot)
    }

    /// Whether what a bank builds on was given out.
    fn is_due(&self, slot: u64, bank: (usize, usize)) -> bool {
        self.bank(slot, bank)
            .is_some_and(|bank| self.builds_on_given(bank))
    }

    fn builds_on_given(&self, bank: &CollectedBank) -> bool {
        let Some(meta) = bank.meta() else {
            return false;
        };
        if self.start.is_some_and(|start| meta.parent_slot < start) {
            return true;
        }
        let parent = self.slots.get(&meta.parent_slot);
        let given = parent.and_then(|parent| parent.given.as_ref());
        given.is_some_and(|given| given.blockhash == meta.parent_blockhash)
    }

    fn give_out(&mut self, slot: u64, (source, at): (usize, usize)) {
        let filter = self.whole_in(source, slot, at).unwrap_or_default();
        let content = self.not_given_ahead(slot, (source, at));
        let Some(entry) = self.slots.get_mut(&slot) else {
            return;
        };
        let bank = entry
            .views
            .get_mut(source)
            .and_then(|view| view.banks.get_mut(at));
        let Some(bank) = bank else {
            return;
        };
        let (blockhash, parent) = (bank.blockhash().unwrap_or_default().to_owned(), bank.parent);
        let WholeBank { meta, processed } = bank.spend();
        entry.given = Some(Given {
            blockhash,
            parent,
            source,
        });
        entry.owed = Owed::new(filter);
        self.findings.push(Finding::Taken { source, slot });
        self.give(synthesized(SlotUpdate {
            slot,
            parent,
            status: SlotStatus::CreatedBank,
            dead_error: None,
        }));
        let processed = processed.map(|mut update| {
            if let Body::Slot(status) = &mut update.body {
                status.parent = parent;
            }
            update
        });
        let updates = content.into_iter().chain(meta).chain(processed);
        self.assembled.extend(updates.map(Assembled::Update));
        self.highest_given = self.highest_given.max(Some(slot));
        self.children_are_due(slot);
        self.begin_children_ahead(slot);
    }

    /// What builds on a slot may be given out now.
    fn children_are_due(&mut self, slot: u64) {
        for child in self.children.get(&slot).into_iter().flatten() {
            self.work.is_due(*child);
        }
    }

    /// Takes back that a slot and what builds on it were given out. What builds on the next bank of the slot comes anew.
    pub(super) fn withdraw(&mut self, slot: u64) {
        self.void_from(slot);
        if self.confirmed.is_some_and(|confirmed| slot <= confirmed) {
            self.confirmed = self.root;
            self.work.all_are_due();
        }
        let mut withdrawn = BTreeSet::from([slot]);
        for (above, entry) in self.slots.range(slot + 1..) {
            let parent = entry.given.as_ref().and_then(|given| given.parent);
            if parent.is_some_and(|parent| withdrawn.contains(&parent)) {
                withdrawn.insert(*above);
            }
        }
        for slot in withdrawn {
            if let Some(entry) = self.slots.get_mut(&slot) {
                entry.withdraw();
                self.work.suspect(slot);
                self.work.is_due(slot);
            }
        }
    }

    /// Moves to the newest finalized slot, and forgets what is older. Of too many slots the oldest are forgotten, where the chain
    /// does not finalize; the newest, where they wait for one below, since a server replays them again.
    fn forget(&mut self, mut root: Option<u64>) {
        if let Some(excess) = self.slots.len().checked_sub(MAX_SLOTS) {
            if self.most_are_waiting() {
                self.forget_newest();
            } else {
                root = root.max(self.slots.keys().nth(excess).copied());
            }
        }
        if root == self.root {
            return;
        }
        self.root = root;
        if let Some(root) = root {
            let finalized = self.slots.range(..=root);
            let finalized = finalized.filter(|(_, entry)| entry.is_given_and_finalized());
            for (slot, given) in
                finalized.filter_map(|(slot, entry)| Some((slot, entry.given.as_ref()?)))
            {
                self.findings
                    .extend(self.rooted.given(*slot, &given.blockhash));
            }
            self.slots = self.slots.split_off(&root);
            self.children = self.children.split_off(&root);
            self.work.forget_below(root);
            let later = self.in_force.partition_point(|(first, _)| *first <= root);
            self.in_force.drain(..later.saturating_sub(1));
        }
    }
}

/// The limit of slots.
impl SlotAssembler {
    /// Whether most of the slots that are held are newer than what was given out: there is a long way to catch up.
    fn most_are_waiting(&self) -> bool {
        let given = self.highest_given.max(self.start);
        given.is_some() && self.slots.keys().nth(MAX_SLOTS / 2) > given.as_ref()
    }

    /// Whether there is no room for a slot: it is newer than all that are held, of which most wait for an older one.
    pub(super) fn is_beyond_reach(&self, slot: u64) -> bool {
        let newest = self.slots.keys().next_back();
        self.slots.len() >= MAX_SLOTS && newest < Some(&slot) && self.most_are_waiting()
    }

    /// Forgets the newest slots beyond the limit. Once there is room for them, what builds on them names them again.
    fn forget_newest(&mut self) {
        let Some(first) = self.slots.keys().nth(MAX_SLOTS).copied() else {
            return;
        };
        for (slot, entry) in self.slots.split_off(&first) {
            for parent in entry.banks().filter_map(|bank| bank.parent) {
                if let Some(children) = self.children.get_mut(&parent) {
                    children.remove(&slot);
                }
            }
        }
        self.children.split_off(&first);
        self.work.forget_from(first);
    }
}

fn synthesized(status: SlotUpdate) -> Update {
    Update {
        filters: Vec::new(),
        created_at: None,
        bank_id: None,
        body: Body::Slot(status),
    }
}
