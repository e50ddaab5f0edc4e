//! Join: puts the slots that strands give out together again, and gives one out once every strand has it (pure).
//!
//! Each strand gives out whole slots in order, as [`SlotAssembler`](crate::SlotAssembler) does, with what its share of the keys
//! selects. A strand that was lost gives slots out again from where it begins anew; what was given out stays so. In a slot
//! the writes of one account keep their order; those of different strands are not compared, which may be of different servers.

mod joined_slot;

use std::collections::{BTreeMap, BTreeSet};

use sluice_chain_types::SlotStatus;

use self::joined_slot::{Bank, Given, JoinedSlot, merged, of_slot};
use crate::{
    error::StreamError,
    generation::Generation,
    request::Request,
    slot_assembly::{Assembled, MAX_SLOTS},
    update::{BlockMeta, Body, SlotUpdate, Update},
};

/// The number of a strand, never used twice.
pub type StrandId = usize;

/// Most slots that wait for the strand that is farthest behind: more than servers replay, so that one which could still be
/// healed is.
const MAX_WAITING: usize = 512;

/// The state machine.
#[derive(Debug, Default)]
pub struct Join {
    strands: BTreeMap<StrandId, Strand>,
    slots: BTreeMap<u64, JoinedSlot>,
    /// The first slot to be given out; `None` until every strand that it began with has shown where it begins.
    start: Option<u64>,
    highest_given: Option<u64>,
    confirmed: Option<u64>,
    root: Option<u64>,
    /// The generation of the request that is asked for, and of the last one that is in force.
    wanted: Generation,
    in_force: Generation,
    /// Names of the filters that select accounts by address, in no generation.
    by_address: BTreeSet<String>,
    joined: Vec<Assembled>,
}

/// One strand.
#[derive(Debug, Default)]
struct Strand {
    /// The slot that it was first asked to be replayed from.
    requested_from: Option<u64>,
    /// The first slot that is given out with what it has.
    from: Option<u64>,
    /// Its own generation, in which it was asked for its share of what is wanted.
    asked: Generation,
    /// The first slot as that share selects it.
    in_force_slot: Option<u64>,
    /// The bank that it is giving out.
    open: Option<Bank>,
}

impl Join {
    /// A strand was opened, and asked for its share of the newest request in this generation of its own.
    pub fn opened(&mut self, id: StrandId, asked: Generation, from_slot: Option<u64>) {
        let strand = self.strands.entry(id).or_insert_with(|| Strand {
            requested_from: from_slot,
            ..Strand::default()
        });
        strand.asked = asked;
        strand.open = None;
    }

    /// The whole request was replaced by one of this generation.
    pub fn wanted(&mut self, generation: Generation, request: &Request) {
        self.wanted = generation;
        let filters = request.accounts.iter();
        let by_address = filters.filter(|(_, filter)| !filter.pubkeys.is_empty());
        self.by_address
            .extend(by_address.map(|(name, _)| name.clone()));
    }

    /// A strand was asked for another share, in this generation of its own.
    pub fn asked(&mut self, id: StrandId, asked: Generation) {
        if let Some(strand) = self.strands.get_mut(&id) {
            strand.asked = asked;
            strand.in_force_slot = None;
        }
    }

    /// A strand is lost. What it has given out under a share that was asked for before comes again.
    pub fn lost(&mut self, id: StrandId) {
        let Some(strand) = self.strands.get_mut(&id) else {
            return;
        };
        strand.open = None;
        if strand.in_force_slot.is_none() {
            for slot in self.slots.values_mut().filter(|slot| slot.given.is_none()) {
                slot.banks.remove(&id);
            }
        }
    }

    /// A strand has no share any more.
    pub fn removed(&mut self, id: StrandId) {
        self.strands.remove(&id);
        for slot in self.slots.values_mut() {
            slot.banks.remove(&id);
        }
        self.advance();
    }

    /// The slot that a lost strand is to replay from; `None` when it has shown nothing.
    #[must_use]
    pub fn resume_slot(&self, id: StrandId) -> Option<u64> {
        let strand = self.strands.get(&id)?;
        match strand.from {
            Some(_) => self.confirmed.or(self.start).or(strand.from),
            None => strand.requested_from,
        }
    }

    /// Takes out what can be given out.
    pub fn take(&mut self) -> Vec<Assembled> {
        std::mem::take(&mut self.joined)
    }

    /// Takes in what a strand has given out.
    ///
    /// # Errors
    /// When too many slots wait for a strand.
    pub fn add(&mut self, id: StrandId, assembled: Vec<Assembled>) -> Result<(), StreamError> {
        for each in assembled {
            match each {
                Assembled::InForce { filter, slot } => self.shown(id, filter, slot),
                Assembled::Update(update) => self.update(id, update),
                Assembled::Replaced { slot } => self.replaced(id, slot),
                Assembled::Late { slot, update } => self.late(id, slot, update),
                // Nothing is asked for ahead.
                Assembled::Ahead { .. } | Assembled::Void { .. } => {}
            }
        }
        let next = self.highest_given.map_or(0, |slot| slot.saturating_add(1));
        let waiting = self.slots.range(next..).count();
        if waiting > MAX_WAITING && self.strands.len() > 1 {
            return Err(StreamError::Other(format!(
                "{waiting} slots wait for one of {} streams over which the keys are split",
                self.strands.len()
            )));
        }
        Ok(())
    }

    fn shown(&mut self, id: StrandId, filter: Generation, slot: u64) {
        let after_given = self
            .highest_given
            .map_or(0, |given| given.saturating_add(1));
        let is_late = self.start.is_some();
        if let Some(strand) = self.strands.get_mut(&id) {
            let first = if is_late { slot.max(after_given) } else { slot };
            strand.from.get_or_insert(first);
            if filter >= strand.asked {
                strand.in_force_slot.get_or_insert(slot);
            }
        }
        self.begin();
        self.advance();
    }

    /// Fixes the first slot, once every strand has shown its own.
    fn begin(&mut self) {
        if self.start.is_none() {
            let from = self.strands.values().map(|strand| strand.from);
            let from: Option<Vec<u64>> = from.collect();
            self.start = from.and_then(|from| from.into_iter().max());
            if let Some(start) = self.start {
                self.slots = self.slots.split_off(&start);
            }
        }
    }

    /// Gives out that the newest request is in force, once every strand's share is.
    fn show_in_force(&mut self) {
        let Some(start) = self.start.filter(|_| self.in_force < self.wanted) else {
            return;
        };
        let shares = self.strands.values().map(|strand| strand.in_force_slot);
        let shares: Option<Vec<u64>> = shares.collect();
        let Some(highest) = shares.and_then(|shares| shares.into_iter().max()) else {
            return;
        };
        let after_given = self
            .highest_given
            .map_or(0, |given| given.saturating_add(1));
        self.in_force = self.wanted;
        self.joined.push(Assembled::InForce {
            filter: self.wanted,
            slot: highest.max(after_given).max(start),
        });
    }

    fn update(&mut self, id: StrandId, update: Update) {
        let Body::Slot(status) = &update.body else {
            let open = self.strands.get_mut(&id).and_then(|it| it.open.as_mut());
            if let Some(bank) = open {
                match &update.body {
                    Body::BlockMeta(_) => bank.meta = Some(update),
                    _ => bank.content.push(update),
                }
            }
            return;
        };
        let status = status.clone();
        match status.status {
            SlotStatus::CreatedBank => {
                if let Some(strand) = self.strands.get_mut(&id) {
                    strand.open = Some(Bank {
                        parent: status.parent,
                        created: update,
                        content: Vec::new(),
                        meta: None,
                        processed: None,
                    });
                }
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => {
                if self.strands.keys().next() == Some(&id) {
                    self.joined.push(Assembled::Update(update));
                }
            }
            SlotStatus::Processed => self.processed(id, status.slot, update),
            SlotStatus::Confirmed | SlotStatus::Finalized => self.committed(id, &status, update),
            SlotStatus::Dead => self.dead(id, status.slot, update),
        }
    }

    fn is_over(&self, slot: u64) -> bool {
        self.start.is_some_and(|start| slot < start) || self.root.is_some_and(|root| slot < root)
    }

    /// Passes on a status of a slot before the first one.
    fn pass(&mut self, slot: u64, update: Update) {
        if self.start.is_none_or(|start| slot < start) {
            self.joined.push(Assembled::Update(update));
        }
    }

    fn processed(&mut self, id: StrandId, slot: u64, update: Update) {
        let open = self.strands.get_mut(&id).and_then(|it| it.open.take());
        let Some(mut bank) = open.filter(|bank| of_slot(&bank.created) == Some(slot)) else {
            return self.pass(slot, update);
        };
        if self.is_over(slot) {
            return;
        }
        bank.processed = Some(update);
        self.slots.entry(slot).or_default().banks.insert(id, bank);
        self.advance_slot(slot);
    }

    fn committed(&mut self, id: StrandId, status: &SlotUpdate, update: Update) {
        let slot = status.slot;
        if self.is_over(slot) {
            return self.pass(slot, update);
        }
        let entry = self.slots.entry(slot).or_default();
        let blockhash = entry.banks.get(&id).and_then(Bank::blockhash);
        let blockhash = blockhash.map(str::to_owned);
        let is_known = |(known, hash, _): &(SlotStatus, Option<String>, Update)| {
            *known == status.status && *hash == blockhash
        };
        if !entry.commitments.iter().any(is_known) {
            entry.commitments.push((status.status, blockhash, update));
        }
        self.advance_slot(slot);
    }

    fn dead(&mut self, id: StrandId, slot: u64, update: Update) {
        if self.is_over(slot) {
            return self.pass(slot, update);
        }
        self.give_up(id, slot, Assembled::Update(update));
    }

    fn replaced(&mut self, id: StrandId, slot: u64) {
        if !self.is_over(slot) {
            self.give_up(id, slot, Assembled::Replaced { slot });
        }
    }

    /// Takes a slot back, and gives out that it is.
    fn give_up(&mut self, id: StrandId, slot: u64, given_up: Assembled) {
        let was_given = self.slots.get(&slot).is_some_and(|it| it.given.is_some());
        self.withdraw(Some(id), slot);
        let entry = self.slots.entry(slot).or_default();
        if was_given || !entry.is_dead {
            entry.is_dead = true;
            self.joined.push(given_up);
        }
    }

    /// What comes too late belongs to what was given out, or to what is still to be.
    fn late(&mut self, id: StrandId, slot: u64, update: Update) {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return;
        };
        if entry.given.is_some() {
            self.joined.push(Assembled::Late { slot, update });
        } else if let Some(bank) = entry.banks.get_mut(&id) {
            bank.content.push(update);
        }
    }

    /// Takes back that a slot and what builds on it were given out, and what a strand has of them.
    fn withdraw(&mut self, id: Option<StrandId>, slot: u64) {
        if self.confirmed.is_some_and(|confirmed| slot <= confirmed) {
            self.confirmed = self.root;
        }
        let mut withdrawn = BTreeSet::from([slot]);
        for (number, entry) in self.slots.range_mut(slot..) {
            let is_on = |parent: Option<u64>| parent.is_some_and(|slot| withdrawn.contains(&slot));
            let is_gone = |bank: &Bank| *number == slot || is_on(bank.parent);
            let of_strand = id.and_then(|id| Some((id, entry.banks.get(&id)?)));
            let removed = of_strand
                .filter(|(_, bank)| is_gone(bank))
                .map(|(id, _)| id);
            let is_given = entry
                .given
                .as_ref()
                .is_some_and(|given| *number == slot || is_on(given.parent));
            if let Some(id) = removed {
                entry.banks.remove(&id);
            }
            if is_given {
                entry.given = None;
                entry.committed.clear();
            }
            if is_given || removed.is_some() {
                withdrawn.insert(*number);
            }
        }
    }

    /// Gives out what can be, after something changed for all slots.
    fn advance(&mut self) {
        self.show_in_force();
        if let Some(start) = self.start {
            self.give_out_above(start);
        }
    }

    /// Gives out what can be, after something became known of a slot.
    fn advance_slot(&mut self, slot: u64) {
        if self.start.is_none() {
            return;
        }
        if self.give_out(slot) {
            self.give_out_above(slot);
        } else {
            self.give_commitments(slot);
            self.forget();
        }
    }

    /// Parents are smaller than children, so one pass upwards gives out whole forks.
    fn give_out_above(&mut self, first: u64) {
        let open = self.slots.range(first..);
        let open: Vec<u64> = open
            .filter(|(_, entry)| !entry.awaits_nothing())
            .map(|(slot, _)| *slot)
            .collect();
        for slot in open {
            self.give_out(slot);
            self.give_commitments(slot);
        }
        self.forget();
    }

    /// Gives out a slot once every strand has the same block of it, and what it builds on was given out. Returns
    /// whether it did.
    fn give_out(&mut self, slot: u64) -> bool {
        let Some(entry) = self.slots.get(&slot) else {
            return false;
        };
        let mut required = self.strands.iter();
        let has = |(id, strand): (&StrandId, &Strand)| {
            strand.from.is_none_or(|from| slot < from) || entry.banks.contains_key(id)
        };
        let Some(first) = entry.banks.values().next().filter(|_| required.all(has)) else {
            return false;
        };
        let Some(meta) = first.meta().filter(|meta| self.builds_on_given(meta)) else {
            return false;
        };
        let blockhash = meta.blockhash.clone();
        let is_same = |bank: &Bank| bank.blockhash() == Some(&blockhash);
        if !entry.banks.values().all(is_same) {
            return false;
        }
        match &entry.given {
            Some(given) if given.blockhash == blockhash => return false,
            Some(_) => {
                self.withdraw(None, slot);
                self.joined.push(Assembled::Replaced { slot });
            }
            None => {}
        }
        let is_alone = self.strands.len() == 1;
        let Some(entry) = self.slots.get_mut(&slot) else {
            return false;
        };
        let banks = if is_alone {
            let taken = entry.banks.iter_mut();
            taken.map(|(id, bank)| (*id, bank.take())).collect()
        } else {
            // A strand may take the slot back and give it out again, and the others not.
            entry.banks.clone()
        };
        let parent = banks.values().next().and_then(|bank| bank.parent);
        entry.given = Some(Given { blockhash, parent });
        entry.is_dead = false;
        self.highest_given = self.highest_given.max(Some(slot));
        self.joined
            .extend(merged(banks, &self.by_address).map(Assembled::Update));
        true
    }

    fn builds_on_given(&self, meta: &BlockMeta) -> bool {
        if self.is_over(meta.parent_slot) {
            return true;
        }
        let parent = self.slots.get(&meta.parent_slot);
        let given = parent.and_then(|parent| parent.given.as_ref());
        given.is_some_and(|given| given.blockhash == meta.parent_blockhash)
    }

    fn give_commitments(&mut self, slot: u64) {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return;
        };
        let Some(given) = &entry.given else {
            return;
        };
        for (status, blockhash, update) in &entry.commitments {
            let is_of_given = blockhash
                .as_ref()
                .is_none_or(|hash| *hash == given.blockhash);
            if !is_of_given || entry.committed.contains(status) {
                continue;
            }
            entry.committed.push(*status);
            self.joined.push(Assembled::Update(update.clone()));
            self.confirmed = self.confirmed.max(Some(slot));
            if *status == SlotStatus::Finalized {
                self.root = self.root.max(Some(slot));
            }
        }
    }

    /// Forgets what is finalized.
    fn forget(&mut self) {
        if let Some(root) = self.root {
            self.slots = self.slots.split_off(&root);
        }
        while self.slots.len() > MAX_SLOTS {
            self.slots.pop_first();
            let first = self.slots.first_key_value().map(|(slot, _)| *slot);
            self.root = self.root.max(first);
        }
    }
}

#[cfg(test)]
mod tests;
