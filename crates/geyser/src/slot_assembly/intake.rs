//! Intake: finds the bank that an update belongs to, by its kind and its generation (pure).

use sluice_chain_types::SlotStatus;

use super::{
    Assembled, Finding, SlotAssembler,
    bank::{Collected, CollectedBank},
    slot::{EndedBank, SlotView},
    source::main_source,
};
use crate::{
    generation::Generation,
    update::{Body, SlotUpdate, Update},
};

impl SlotAssembler {
    pub(super) fn generation_shown(&mut self, source: usize, generation: Generation) {
        let Some(from) = self.sources.get(source) else {
            return;
        };
        let filter = from.filter(generation);
        if self
            .in_force
            .last()
            .is_some_and(|(_, last)| *last >= filter)
        {
            return;
        }
        let Some(start) = self.start else {
            // It is in force from the first slot, which is not known yet.
            return;
        };
        // Banks that began before have come under other filters, on whatever connection.
        let begun = self.slots.iter().rev();
        let begun = begun
            .filter(|(_, slot)| slot.given.is_some() || slot.banks().next().is_some())
            .map(|(slot, _)| *slot)
            .next();
        let slot = begun
            .max(self.highest_given)
            .map_or(start, |highest| start.max(highest + 1));
        self.set_in_force(filter, slot);
    }

    fn set_in_force(&mut self, filter: Generation, slot: u64) {
        self.in_force.push((slot, filter));
        self.assembled.push(Assembled::InForce { filter, slot });
    }

    fn begin(&mut self, source: usize, generation: Generation, slot: u64) {
        self.start = Some(slot);
        self.slots = self.slots.split_off(&slot);
        self.work.forget_below(slot);
        self.work.all_are_due();
        if let Some(from) = self.sources.get(source) {
            self.set_in_force(from.filter(generation), slot);
        }
    }

    pub(super) fn content(
        &mut self,
        source: usize,
        slot: u64,
        generation: Generation,
        update: Update,
    ) {
        if self.is_over(slot) {
            return;
        }
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        let copies = view.copies(update.bank_id).count();
        let Some(bank) = view.bank_for(slot, update.bank_id, generation, from) else {
            return;
        };
        if bank.closed_in().is_some() && view.has_delivered(&update) {
            return;
        }
        let is_after_meta = copies > 0 && view.copies(update.bank_id).count() > copies;
        if is_after_meta && let Some(from) = self.sources.get_mut(source) {
            from.after_meta.insert(slot);
        }
        self.collect(source, slot, generation, update);
    }

    /// Adds content to the bank of a slot that it names, or else to the newest.
    fn collect(&mut self, source: usize, slot: u64, generation: Generation, update: Update) {
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let view = entry.views.get_mut(source);
        let Some(bank) = view.and_then(|view| view.newest(update.bank_id)) else {
            return;
        };
        let has_ended = bank.has_ended();
        let (ahead, late) = match bank.collect(update) {
            Collected::Known | Collected::Held => (None, None),
            Collected::Ahead(body) => (Some(body), None),
            Collected::TooLate(update) => {
                let given = entry.given.as_ref();
                let is_copy = given.is_some_and(|given| bank.is_copy_of(&given.blockhash));
                (None, is_copy.then_some(update))
            }
        };
        let filter = from.filter(generation);
        let late = late.and_then(|update| entry.take_late(source, update, filter));
        if has_ended {
            // It may hold now all that an earlier copy does.
            self.work.is_due(slot);
        }
        self.assembled
            .extend(ahead.map(|body| Assembled::Ahead { slot, body }));
        self.assembled
            .extend(late.map(|update| Assembled::Late { slot, update }));
    }

    /// A block of a slot has come to its end: of the slots below no replay follows any more. What was collected for one
    /// belongs to the block that had come.
    fn close(&mut self, source: usize, slot: u64) {
        let after_meta = self.sources.get_mut(source).map(|from| from.close(slot));
        for below in after_meta.unwrap_or_default() {
            let entry = self.slots.get_mut(&below);
            let view = entry.and_then(|entry| entry.views.get_mut(source));
            let content = view
                .map(SlotView::take_content_after_meta)
                .unwrap_or_default();
            for update in content {
                let generation = update.generation().unwrap_or_default();
                self.collect(source, below, generation, update);
            }
        }
    }

    pub(super) fn meta(
        &mut self,
        source: usize,
        slot: u64,
        parent: u64,
        generation: Generation,
        update: Update,
    ) {
        if let Body::BlockMeta(meta) = &update.body {
            self.rooted.delivered(source, slot, &meta.blockhash);
        }
        if self.is_over(slot) {
            if self.rooted.is_rooted(slot) {
                self.findings.push(Finding::Completed { source, slot });
            }
            return;
        }
        self.close(source, slot);
        self.name_parent(source, parent);
        self.note_child(parent, slot);
        self.work.is_due(slot);
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        view.freeze(from);
        let Body::BlockMeta(meta) = &update.body else {
            return;
        };
        let hash = meta.blockhash.clone();
        let is_another = |bank: &CollectedBank| bank.blockhash().is_some_and(|known| known != hash);
        let id = update.bank_id;
        let Some(bank) = view.bank_for(slot, id, generation, from) else {
            return;
        };
        if bank.has_ended() && !is_another(bank) {
            return;
        }
        let bank = if is_another(bank) {
            // A replacement block, the beginning of which was not reported.
            view.banks.push(CollectedBank::new(id, generation, None));
            let Some(bank) = view.banks.last_mut() else {
                return;
            };
            bank
        } else {
            bank
        };
        bank.parent = Some(parent);
        let is_live = bank.witnessed_in.is_some();
        if bank.set_meta(update, generation) {
            let ended = bank.blockhash().unwrap_or_default().to_owned();
            self.note_ended(source, slot, ended);
        }
        if is_live {
            self.findings.push(Finding::Completed { source, slot });
        }
        self.advance();
    }

    pub(super) fn status(
        &mut self,
        source: usize,
        status: &SlotUpdate,
        generation: Generation,
        update: Update,
    ) {
        let slot = status.slot;
        match status.status {
            SlotStatus::CreatedBank => {
                self.created(source, status, update.bank_id, generation);
                // It may prove something of its parent.
                self.advance();
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => {
                // The parent is known for certain only with the bank.
                let status = SlotUpdate {
                    parent: None,
                    ..status.clone()
                };
                self.give(Update {
                    body: Body::Slot(status),
                    ..update
                });
            }
            SlotStatus::Dead => self.dead(source, slot, update),
            SlotStatus::Processed => self.processed(source, slot, generation, update),
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                self.committed(source, status, update);
            }
        }
    }

    fn created(
        &mut self,
        source: usize,
        status: &SlotUpdate,
        id: Option<u64>,
        generation: Generation,
    ) {
        let (slot, parent) = (status.slot, status.parent);
        if let Some(from) = self.sources.get_mut(source) {
            from.reports_banks = true;
        }
        if self.start.is_none() {
            self.begin(source, generation, slot);
        }
        if self.is_over(slot) {
            return;
        }
        if let Some(parent) = parent {
            self.name_parent(source, parent);
            self.note_child(parent, slot);
        }
        self.work.is_due(slot);
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let filter = from.filter(generation);
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        view.was_created = true;
        let are_numbered = id.is_some() && view.banks.iter().all(|bank| bank.id.is_some());
        if are_numbered && let Some(bank) = view.newest(id) {
            // Reported twice, or too late to prove anything.
            bank.parent = bank.parent.or(parent);
            return;
        }
        let witnessed = match view.banks.last_mut().filter(|_| !are_numbered) {
            // Reported twice.
            Some(bank) if bank.witnessed_in.is_some() && bank.is_empty() => return,
            Some(bank) if bank.witnessed_in.is_none() && !bank.has_ended() => {
                if bank.meta().is_none() {
                    // Too late to prove anything.
                    bank.parent = parent.or(bank.parent);
                    return;
                }
                // Another bank, or only a status of the replay that brought this one.
                None
            }
            // Another bank in the place of an open one, or only the same report again: nothing shows which of the two the
            // content was of.
            Some(bank) if bank.closed_in().is_none() => None,
            _ => Some(filter),
        };
        let mut bank = CollectedBank::new(id, generation, witnessed);
        bank.parent = parent;
        view.banks.push(bank);
        self.begin_ahead(slot);
    }

    fn processed(&mut self, source: usize, slot: u64, generation: Generation, update: Update) {
        if self.is_over(slot) {
            return self.pass(slot, update);
        }
        self.work.is_due(slot);
        self.end_bank(source, slot, update);
        self.note_complete(source, slot);
        let is_first = self.start.is_none() && self.is_whole_without_banks(source, slot);
        if is_first {
            self.begin(source, generation, slot);
        }
        self.advance();
    }

    /// Counts the ancestors of a complete slot that were reported to be complete before.
    fn note_complete(&mut self, source: usize, slot: u64) {
        let view_of = |slot: u64| self.slots.get(&slot)?.views.get(source);
        let parent = view_of(slot).and_then(|view| view.banks.iter().find_map(|bank| bank.parent));
        let below = parent
            .and_then(view_of)
            .and_then(|parent| parent.complete_ancestry);
        let entry = self.slots.get_mut(&slot);
        if let Some(view) = entry.and_then(|entry| entry.views.get_mut(source)) {
            let count = below.map_or(0, |below| below.saturating_add(1));
            view.complete_ancestry.get_or_insert(count);
        }
    }

    fn is_whole_without_banks(&self, source: usize, slot: u64) -> bool {
        let view = self
            .slots
            .get(&slot)
            .and_then(|entry| entry.views.get(source));
        let complete = view.and_then(|view| view.complete_ancestry);
        let from = self.sources.get(source);
        from.zip(complete)
            .is_some_and(|(from, complete)| from.is_whole_after(complete))
    }

    /// Notes on the bank that awaits it that its writes are over.
    pub(super) fn end_bank(&mut self, source: usize, slot: u64, update: Update) {
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        view.freeze(from);
        let waits = |bank: &&mut CollectedBank| !bank.has_ended() && !bank.is_processed();
        let id = update
            .bank_id
            .filter(|id| view.copies(Some(*id)).next().is_some());
        let banks = view.banks.iter_mut().rev();
        let awaiting = banks.filter(|bank| waits(bank) && (id.is_none() || bank.id == id));
        // The status belongs to the bank of which the metadata has come.
        let mut awaiting: Vec<&mut CollectedBank> = awaiting.collect();
        let at = awaiting.iter().position(|bank| bank.meta().is_some());
        let bank = awaiting.get_mut(at.unwrap_or(0));
        if let Some(bank) = bank
            && bank.set_processed(update)
        {
            let ended = bank.blockhash().unwrap_or_default().to_owned();
            self.note_ended(source, slot, ended);
        }
    }

    fn note_ended(&mut self, source: usize, slot: u64, blockhash: String) {
        if let Some(from) = self.sources.get_mut(source) {
            from.note_ended();
        }
        let entry = self.slots.get_mut(&slot);
        let view = entry.and_then(|entry| entry.views.get_mut(main_source(source)));
        if let Some(view) = view
            && view.ended.iter().all(|ended| ended.blockhash != blockhash)
        {
            view.ended.push(EndedBank {
                blockhash,
                ended_in: self.newest,
            });
        }
    }
}
