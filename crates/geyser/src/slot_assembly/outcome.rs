//! Outcome of a slot: what a source says of it beyond its content, that it is committed or dead (pure).

use sluice_chain_types::SlotStatus;

use super::{SlotAssembler, bank::CollectedBank, slot::SlotView};
use crate::update::{Body, SlotUpdate, Update};

impl SlotAssembler {
    pub(super) fn committed(&mut self, source: usize, status: &SlotUpdate, update: Update) {
        let slot = status.slot;
        if status.status == SlotStatus::Finalized {
            if let Some(blockhash) = self.committed_block(source, slot, update.bank_id) {
                self.rooted.delivered(source, slot, &blockhash);
            }
            let contradiction = self.rooted.finalized(source, slot);
            self.findings.extend(contradiction);
        }
        if self.is_over(slot) {
            return self.pass(slot, update);
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
        self.work.is_due(slot);
        self.end_bank(source, slot, processed);
        if self.is_of_unknown_block(source, slot, update.bank_id) {
            return self.advance();
        }
        self.commit_ancestor(source, status, &update);
        let hash = self.committed_block(source, slot, update.bank_id);
        if let Some(entry) = self.slots.get_mut(&slot) {
            entry.commit(hash, status.status, update);
        }
        self.advance();
    }

    /// Whether a commitment may be of another block than the one that was given out: it names a bank that its source, which was
    /// connected to in between, has not delivered. Servers number banks each in its own way, so no other one can say which it is.
    /// Of a slot that is confirmed it can only be the chain's.
    fn is_of_unknown_block(&self, source: usize, slot: u64, id: Option<u64>) -> bool {
        let view = self
            .slots
            .get(&slot)
            .and_then(|entry| entry.views.get(source));
        let mut banks = view.into_iter().flat_map(|view| &view.banks);
        let is_confirmed = self.confirmed >= Some(slot);
        id.is_some() && !is_confirmed && banks.all(|bank| bank.id.is_some() && bank.id != id)
    }

    /// Hash of the block that a commitment is of: that of the bank that it names, or else the last that the source delivered.
    fn committed_block(&self, source: usize, slot: u64, id: Option<u64>) -> Option<String> {
        let view = self.slots.get(&slot)?.views.get(source)?;
        let hash_of = |id| {
            let mut banks = view.copies(id).rev();
            banks.find_map(CollectedBank::blockhash)
        };
        let named = id.and_then(|id| hash_of(Some(id)));
        named.or_else(|| hash_of(None)).map(str::to_owned)
    }

    /// Commits, with a slot that is held back, the nearest slot below that was given out.
    fn commit_ancestor(&mut self, source: usize, status: &SlotUpdate, update: &Update) {
        let is_given = |slot: u64| {
            self.slots
                .get(&slot)
                .is_some_and(|entry| entry.given.is_some())
        };
        // The parent of a block of a slot, and its hash where metadata says so.
        let parent_of = |slot: u64, hash: Option<&str>| {
            let view = self.slots.get(&slot)?.views.get(source)?;
            let is_it = |bank: &&CollectedBank| hash.is_none() || bank.blockhash() == hash;
            let mut banks = view.banks.iter().rev().filter(is_it);
            let bank = banks.find(|bank| bank.parent.is_some())?;
            let hash = bank.meta().map(|meta| meta.parent_blockhash.clone());
            Some((bank.parent?, hash))
        };
        let own = self.committed_block(source, status.slot, update.bank_id);
        let mut ancestry = std::iter::successors(Some((status.slot, own)), |(slot, hash)| {
            parent_of(*slot, hash.as_deref()).or_else(|| parent_of(*slot, None))
        });
        let Some((ancestor, hash)) = ancestry.find(|(slot, _)| is_given(*slot)) else {
            return;
        };
        if ancestor == status.slot {
            return;
        }
        let hash = hash.or_else(|| self.committed_block(source, ancestor, None));
        let status = SlotUpdate {
            slot: ancestor,
            parent: None,
            ..status.clone()
        };
        let update = Update {
            body: Body::Slot(status.clone()),
            bank_id: None,
            ..update.clone()
        };
        self.work.is_due(ancestor);
        if let Some(entry) = self.slots.get_mut(&ancestor) {
            entry.commit(hash, status.status, update);
        }
    }

    /// Passes on a status of a slot before the first one. Of slots that are finalized everything was given out.
    pub(super) fn pass(&mut self, slot: u64, update: Update) {
        if self.start.is_none_or(|start| slot < start) {
            self.give(update);
        }
    }

    pub(super) fn dead(&mut self, source: usize, slot: u64, update: Update) {
        if self.is_over(slot) {
            return self.pass(slot, update);
        }
        self.work.is_due(slot);
        let mut has_others = false;
        if let Some(entry) = self.slots.get_mut(&slot) {
            for parent in entry.banks().filter_map(|bank| bank.parent) {
                self.work.is_due(parent);
            }
            let mut is_of_another = false;
            if let Some(view) = entry.views.get_mut(source) {
                let dead = view.take_banks(update.bank_id);
                let given = entry.given.as_ref().map(|given| given.blockhash.as_str());
                let mut hashes = dead.iter().map(CollectedBank::blockhash);
                let was_given = given.is_some() && hashes.any(|hash| hash == given);
                has_others = !view.banks.is_empty();
                if !has_others {
                    *view = SlotView {
                        is_dead: true,
                        ..SlotView::default()
                    };
                }
                // A side stream may be ahead, and have brought already what was made in the place of this one.
                let is_replaced = given.is_some() && !dead.is_empty();
                is_of_another = !was_given && (has_others || is_replaced);
            }
            if is_of_another {
                return self.advance();
            }
            // Another server has it whole, and its word counts as much; the chain's, more.
            let elsewhere = entry.views.iter().enumerate();
            let mut elsewhere = elsewhere.filter(|(other, _)| !has_others || *other != source);
            if elsewhere.any(|(_, view)| view.banks.iter().any(CollectedBank::has_ended))
                || entry.is_given_and_committed()
            {
                return;
            }
            self.withdraw(slot);
        }
        self.give(update);
        if has_others {
            self.advance();
        }
    }
}
