//! Intake: finds the bank that an update belongs to, by its kind and its generation (pure).

use sluice_chain_types::SlotStatus;

use super::{
    Assembled, SlotAssembler,
    bank::{Collected, CollectedBank},
    slot::SlotView,
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
        let Some(bank) = view.bank_for(slot, generation, from) else {
            return;
        };
        if bank.collect(update) == Collected::Late {
            self.assembled.push(Assembled::Late { slot });
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
        if self.is_over(slot) {
            return;
        }
        self.name_parent(source, parent);
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
        let Some(bank) = view.bank_for(slot, generation, from) else {
            return;
        };
        if bank.ended_in().is_some() && !is_another(bank) {
            return;
        }
        let bank = if is_another(bank) {
            // Another block, the beginning of which was not reported.
            view.banks.push(CollectedBank::new(generation, None));
            let Some(bank) = view.banks.last_mut() else {
                return;
            };
            bank
        } else {
            bank
        };
        bank.parent = Some(parent);
        if bank.set_meta(update, generation) {
            self.note_ended(source);
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
            SlotStatus::CreatedBank => self.created(source, slot, status.parent, generation),
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
                self.committed(source, status, generation, update);
            }
        }
    }

    fn created(&mut self, source: usize, slot: u64, parent: Option<u64>, generation: Generation) {
        if let Some(from) = self.sources.get_mut(source) {
            from.reports_banks = true;
            from.assumes_witness = false;
        }
        if self.start.is_none() {
            self.begin(source, generation, slot);
        }
        if self.is_over(slot) {
            return;
        }
        if let Some(parent) = parent {
            self.name_parent(source, parent);
        }
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let filter = from.filter(generation);
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        view.was_created = true;
        match view.banks.last_mut() {
            // Reported twice.
            Some(bank) if bank.witnessed_in.is_some() && bank.is_empty() => return,
            // Between content and end: too late to prove anything, or a status of a replay.
            Some(bank)
                if bank.ended_in().is_none()
                    && (bank.witnessed_in.is_none() || bank.meta().is_some()) =>
            {
                bank.parent = bank.parent.or(parent);
                return;
            }
            _ => {}
        }
        let mut bank = CollectedBank::new(generation, Some(filter));
        bank.parent = parent;
        view.banks.push(bank);
        entry.confirms_newest = false;
    }

    fn processed(&mut self, source: usize, slot: u64, generation: Generation, update: Update) {
        if self.start.is_none()
            && let Some(from) = self.sources.get_mut(source)
        {
            let whole = from.is_whole_without_banks();
            from.note_ended();
            if whole {
                self.begin(source, generation, slot);
            }
        }
        if self.is_over(slot) {
            return self.give(update);
        }
        self.end_bank(source, slot, generation, update);
        self.advance();
    }

    /// Notes on the bank that awaits it that its writes are over.
    fn end_bank(&mut self, source: usize, slot: u64, generation: Generation, update: Update) {
        let Some((from, entry)) = self.entry(source, slot) else {
            return;
        };
        let Some(view) = entry.views.get_mut(source) else {
            return;
        };
        view.freeze(from);
        let waits = |bank: &&mut CollectedBank| bank.ended_in().is_none() && !bank.is_processed();
        let awaiting = view.banks.iter_mut().rev().filter(waits);
        // The status belongs to the bank of which the metadata has come.
        let mut awaiting: Vec<&mut CollectedBank> = awaiting.collect();
        let at = awaiting.iter().position(|bank| bank.meta().is_some());
        let bank = awaiting.get_mut(at.unwrap_or(0));
        if bank.is_some_and(|bank| bank.set_processed(update, generation)) {
            self.note_ended(source);
        }
    }

    fn note_ended(&mut self, source: usize) {
        if let Some(from) = self.sources.get_mut(source) {
            from.note_ended();
        }
    }

    fn committed(
        &mut self,
        source: usize,
        status: &SlotUpdate,
        generation: Generation,
        update: Update,
    ) {
        let slot = status.slot;
        if self.is_over(slot) {
            return self.give(update);
        }
        // A server may leave out the lower commitment.
        let processed = SlotUpdate {
            status: SlotStatus::Processed,
            ..status.clone()
        };
        let processed = Update {
            body: Body::Slot(processed),
            ..update.clone()
        };
        self.end_bank(source, slot, generation, processed);
        if let Some(entry) = self.slots.get_mut(&slot) {
            entry.commit(update, status.status);
        }
        self.advance();
    }

    fn dead(&mut self, source: usize, slot: u64, update: Update) {
        if let Some(entry) = self.slots.get_mut(&slot) {
            if let Some(view) = entry.views.get_mut(source) {
                *view = SlotView::default();
            }
            // Another server has it whole, and its word counts as much.
            if entry.banks().any(|bank| bank.ended_in().is_some()) {
                return;
            }
            self.withdraw(slot);
        }
        self.give(update);
    }
}
