//! The market as a pure state machine: account writes, slot statuses and answers of RPC calls go in;
//! what readers may see comes out.
//!
//! # The tree of slots
//!
//! The root is the newest confirmed slot; above it stands every slot that the stream told of, each
//! with the state of its parent and its own writes, as a validator keeps its banks. A slot is *sealed*
//! when its `processed` status was told and its parent is sealed. Readers at commitment processed see
//! the highest sealed slot, readers at confirmed the root. A dead slot is taken out with all that
//! builds on it, a confirmed slot takes out all that does not build on it, and what is visible then
//! falls back to what is left. Nothing is undone, because nothing was overwritten.
//!
//! # Why joining the answers of RPC calls loses nothing
//!
//! The stream delivers, from some slot F on, every write to the accounts it covers, each before its
//! slot is sealed. An answer at confirmed context slot C ≥ F holds each account as it was when C was
//! complete. So at any slot S ≥ C an account is what its last write in the slots after C up to S made
//! it, or, without such a write, what the answer says; and the writes of C itself are contained in the
//! answer, so that applying them again changes nothing.
//!
//! The first root is the highest context slot B of the first answers: each account is brought from
//! its own context slot to B with the writes of the slots between, all of which the stream delivered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use sluice_geyser::{AccountUpdate, SlotStatus, SlotUpdate};
use solana_pubkey::Pubkey;

use super::{
    bank::{Bank, Draft, Stage, decode},
    content::Content,
    state::{Index, State},
};

/// Complete slots that may wait for a parent while none is sealed. A reordered status is told within
/// a slot or two; after this many, some three seconds, the parent was lost.
const MAX_ORPHANS: usize = 8;

/// The stream told something that the tree of slots has no place for. Only new answers help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Divergence {
    /// A confirmed slot was abandoned.
    #[error("slot {slot} was confirmed and is now dead")]
    DeadRoot {
        /// The slot.
        slot: u64,
    },
    /// A slot was told with two parents, so two different blocks share its number.
    #[error("slot {slot} was told to build on slot {before}, and now on slot {now}")]
    TwoParents {
        /// The slot.
        slot: u64,
        /// The parent told first.
        before: u64,
        /// The parent told now.
        now: u64,
    },
    /// Complete slots wait for parents that were never told.
    #[error("slots up to {slot} do not build on anything that was told")]
    Orphans {
        /// The last of them.
        slot: u64,
    },
    /// A write arrived after its slot was sealed.
    #[error("a write to {pubkey} arrived after its slot {slot} was complete")]
    LateWrite {
        /// The slot.
        slot: u64,
        /// The account.
        pubkey: Pubkey,
    },
}

/// Accounts read by one RPC call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Confirmed slot at whose end they were read.
    pub(super) context_slot: u64,
    /// What was found; [`Content::Absent`] where there is no account.
    pub(super) accounts: Vec<(Pubkey, Content)>,
}

/// A state and the slot it is true for.
#[derive(Clone)]
pub(super) struct Moment {
    pub(super) slot: u64,
    pub(super) state: State,
}

/// What readers may see.
#[derive(Clone)]
pub(super) struct Visible {
    pub(super) processed: Moment,
    pub(super) confirmed: Moment,
}

/// The first answers, collected until they can be brought to one slot.
#[derive(Default)]
struct Seed {
    accounts: HashMap<Pubkey, (u64, Content), RandomState>,
    first: Option<u64>,
    last: u64,
    complete: bool,
}

/// Everything known of the exchange.
#[derive(Default)]
pub(super) struct Ledger {
    banks: BTreeMap<u64, Bank>,
    /// Newest confirmed slot that is sealed; `None` until the first answers are joined.
    root: Option<u64>,
    /// Whether the root's writes were told once already, on an earlier connection.
    root_settled: bool,
    /// Slots above the root that were told to be confirmed.
    confirmed: BTreeSet<u64>,
    seed: Seed,
    /// Answers of slots that are not sealed yet.
    answers: Vec<Answer>,
    index: Index,
    /// Parts of pools of which nothing is known.
    missing: BTreeSet<Pubkey>,
    /// Parts that were handed out by [`Ledger::take_wanted`].
    asked: BTreeSet<Pubkey>,
    /// Complete slots told since the last one was sealed.
    orphans: usize,
}

impl Ledger {
    /// Takes in a write of the stream.
    pub(super) fn account(&mut self, update: &AccountUpdate) -> Result<(), Divergence> {
        let (slot, pubkey) = (update.slot, update.pubkey);
        if self.is_settled(slot) {
            return Ok(());
        }
        let write = decode(update);
        let bank = self.banks.entry(slot).or_default();
        let known = bank.writes.get(&pubkey);
        if known.is_some_and(|known| known.version > write.version) {
            return Ok(());
        }
        if let Some(state) = bank.sealed() {
            let contained = match (&write.content, known) {
                (Content::Clock(clock), _) => state.clock() == Some(*clock),
                (content, Some(known)) => known.content == *content,
                (content, None) => state.account(&pubkey) == Some(content),
            };
            return if contained {
                Ok(())
            } else {
                Err(Divergence::LateWrite { slot, pubkey })
            };
        }
        if let Stage::Open(draft) = &mut bank.stage {
            let (content, signature) = (write.content.clone(), update.txn_signature);
            draft.write(
                pubkey,
                content,
                signature,
                &mut self.index,
                &mut self.missing,
            );
        }
        bank.writes.insert(pubkey, write);
        Ok(())
    }

    /// Takes in a slot status. Returns whether something else is visible than before.
    pub(super) fn slot(&mut self, update: &SlotUpdate) -> Result<bool, Divergence> {
        let slot = update.slot;
        if self.root.is_some_and(|root| slot <= root) {
            return match update.status {
                SlotStatus::Dead if self.root == Some(slot) => Err(Divergence::DeadRoot { slot }),
                _ => Ok(false),
            };
        }
        let before = self.heads();
        match update.status {
            SlotStatus::Dead => self.bury(slot),
            SlotStatus::Processed => {
                self.told_parent(slot, update.parent)?;
                let bank = self.banks.entry(slot).or_default();
                self.orphans += usize::from(!bank.frozen);
                bank.frozen = true;
            }
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                self.told_parent(slot, update.parent)?;
                self.confirmed.insert(slot);
            }
            SlotStatus::CreatedBank | SlotStatus::FirstShredReceived | SlotStatus::Completed => {
                self.told_parent(slot, update.parent)?;
            }
        }
        self.advance();
        if self.root.is_some() && self.orphans > MAX_ORPHANS {
            return Err(Divergence::Orphans { slot });
        }
        Ok(self.heads() != before)
    }

    /// Takes in one of the first answers.
    pub(super) fn seed(&mut self, answer: Answer) {
        let Answer {
            context_slot,
            accounts,
        } = answer;
        let seed = &mut self.seed;
        seed.first = Some(
            seed.first
                .map_or(context_slot, |first| first.min(context_slot)),
        );
        seed.last = seed.last.max(context_slot);
        for (pubkey, content) in accounts {
            seed.accounts.insert(pubkey, (context_slot, content));
        }
    }

    /// There are no more first answers: the market begins when the stream has reached them.
    pub(super) fn seeded(&mut self) {
        self.seed.complete = true;
        self.advance();
    }

    /// Takes in an answer about parts that were wanted; it is joined once its slot is sealed.
    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
        self.advance();
    }

    /// The parts of pools that only an RPC call can deliver and that were not handed out before.
    pub(super) fn take_wanted(&mut self) -> Vec<Pubkey> {
        let missing = std::mem::take(&mut self.missing);
        let wanted: Vec<Pubkey> = missing.difference(&self.asked).copied().collect();
        self.asked.extend(&wanted);
        wanted
    }

    /// What readers may see; `None` until the first answers are joined.
    pub(super) fn visible(&self) -> Option<Visible> {
        let moment = |slot: u64| {
            let state = self.banks.get(&slot)?.sealed()?.clone();
            Some(Moment { slot, state })
        };
        let (head, root) = self.heads()?;
        Some(Visible {
            processed: moment(head)?,
            confirmed: moment(root)?,
        })
    }

    /// Highest sealed slot and root.
    pub(super) fn heads(&self) -> Option<(u64, u64)> {
        let root = self.root?;
        let mut sealed = self.banks.iter().rev();
        let (head, _) = sealed.find(|(_, bank)| bank.sealed().is_some())?;
        Some((*head, root))
    }

    /// Forgets all that is above the root, which a new connection is asked to replay. Other servers,
    /// and replays, number writes differently, so nothing of the two may be mixed. Returns the slot
    /// to replay from; `None` when there is no root to build on.
    pub(super) fn rewind(&mut self) -> Option<u64> {
        let root = self.root?;
        self.banks.retain(|slot, _| *slot == root);
        self.confirmed.clear();
        // The calls end with the connection they were made for.
        self.answers.clear();
        self.missing.append(&mut self.asked);
        self.root_settled = true;
        self.orphans = 0;
        Some(root)
    }

    /// Whether writes of a slot change nothing any more: slots before the root are confirmed and
    /// complete, and so is a root that an earlier connection has told of.
    fn is_settled(&self, slot: u64) -> bool {
        self.root
            .is_some_and(|root| slot < root || (slot == root && self.root_settled))
    }

    fn told_parent(&mut self, slot: u64, parent: Option<u64>) -> Result<(), Divergence> {
        // A slot is younger than its parent; anything else would loop for ever.
        let Some(now) = parent.filter(|parent| *parent < slot) else {
            return Ok(());
        };
        let bank = self.banks.entry(slot).or_default();
        match bank.parent {
            Some(before) if before != now => Err(Divergence::TwoParents { slot, before, now }),
            _ => {
                bank.parent = Some(now);
                Ok(())
            }
        }
    }

    /// Takes a dead slot out with all that builds on it.
    fn bury(&mut self, slot: u64) {
        self.confirmed.remove(&slot);
        let mut dead = BTreeSet::from([slot]);
        // Parents are smaller than children, so one pass upwards finds every descendant.
        for (child, bank) in self.banks.range(slot..) {
            if bank.parent.is_some_and(|parent| dead.contains(&parent)) {
                dead.insert(*child);
            }
        }
        self.banks.retain(|slot, _| !dead.contains(slot));
    }

    /// Seals what can be sealed, moves the root, and joins answers whose slot was reached.
    fn advance(&mut self) {
        if self.root.is_none() {
            self.found();
        }
        let Some(root) = self.root else { return };
        // Parents are smaller than children, so one pass upwards seals whole branches.
        let slots: Vec<u64> = self
            .banks
            .range(root + 1..)
            .map(|(slot, _)| *slot)
            .collect();
        for slot in slots {
            self.grow(slot);
        }
        let confirmed = self.confirmed.iter().rev().copied();
        let is_sealed = |slot: &u64| self.banks.get(slot).is_some_and(|b| b.sealed().is_some());
        let root = confirmed
            .filter(|slot| *slot > root)
            .find(is_sealed)
            .map_or(root, |root| {
                self.settle(root);
                root
            });
        self.join_answers(root);
    }

    /// Opens a slot whose parent is sealed, and seals it when it is complete.
    fn grow(&mut self, slot: u64) {
        let Some(bank) = self.banks.get(&slot) else {
            return;
        };
        let opening = match (&bank.stage, bank.parent) {
            (Stage::Waiting, Some(parent)) => {
                let parent = self.banks.get(&parent).and_then(Bank::sealed);
                match parent {
                    Some(state) => Some(Draft::on(state.clone())),
                    None => return,
                }
            }
            (Stage::Open(_), _) if bank.frozen => None,
            _ => return,
        };
        let Some(bank) = self.banks.get_mut(&slot) else {
            return;
        };
        if let Some(mut draft) = opening {
            for (pubkey, write) in &bank.writes {
                let content = write.content.clone();
                draft.write(*pubkey, content, None, &mut self.index, &mut self.missing);
            }
            bank.stage = Stage::Open(draft);
        }
        if bank.frozen
            && let Stage::Open(draft) = std::mem::take(&mut bank.stage)
        {
            bank.stage = Stage::Sealed(draft.finish(&mut self.missing));
            self.orphans = 0;
        }
    }

    /// Makes a confirmed slot the root: all that does not build on it is abandoned.
    fn settle(&mut self, root: u64) {
        let mut kept = BTreeSet::from([root]);
        for (slot, bank) in self.banks.range(root + 1..) {
            let waits = bank.sealed().is_none()
                && bank
                    .parent
                    .is_none_or(|parent| parent > root && !self.banks.contains_key(&parent));
            if waits || bank.parent.is_some_and(|parent| kept.contains(&parent)) {
                kept.insert(*slot);
            }
        }
        self.banks.retain(|slot, _| kept.contains(slot));
        self.confirmed = self.confirmed.split_off(&(root + 1));
        self.root = Some(root);
        self.root_settled = false;
    }

    /// Makes the first root, once the stream has reached the last of the first answers.
    fn found(&mut self) -> Option<()> {
        if !self.seed.complete {
            return None;
        }
        let root = self.seed.last;
        let path = self.path(self.seed.first?, root)?;
        let mut accounts = std::mem::take(&mut self.seed).accounts;
        for slot in path {
            for (pubkey, write) in &self.banks.get(&slot)?.writes {
                let read_at = accounts.get(pubkey).map_or(0, |(slot, _)| *slot);
                if slot >= read_at {
                    accounts.insert(*pubkey, (slot, write.content.clone()));
                }
            }
        }
        let state = self.state_of(&accounts);
        self.banks = self.banks.split_off(&root);
        self.banks.get_mut(&root)?.stage = Stage::Sealed(state);
        self.root = Some(root);
        self.orphans = 0;
        Some(())
    }

    /// The state that these accounts make. Pools come first: what belongs to none is not kept.
    fn state_of(&mut self, accounts: &HashMap<Pubkey, (u64, Content), RandomState>) -> State {
        let mut state = State::default();
        for pools in [true, false] {
            for (pubkey, (_, content)) in accounts {
                if matches!(content, Content::Pool(_)) == pools {
                    state.put(*pubkey, content.clone(), &mut self.index);
                }
            }
        }
        for pool in self.index.pools() {
            state.refresh(*pool, |part| {
                self.missing.insert(part);
            });
        }
        state
    }

    /// The slots that lead from `first` to `last`, both included, oldest first; `None` while `last`
    /// is not complete or a parent is not told.
    fn path(&self, first: u64, last: u64) -> Option<Vec<u64>> {
        self.banks.get(&last).filter(|bank| bank.frozen)?;
        let mut path = vec![last];
        let mut oldest = last;
        while oldest > first {
            oldest = self.banks.get(&oldest)?.parent?;
            // A skipped `first` leaves its parent, whose writes every answer contains.
            if self.banks.contains_key(&oldest) {
                path.push(oldest);
            }
        }
        path.reverse();
        Some(path)
    }

    /// Joins the answers whose slot is sealed or older than the root, which builds on it then.
    fn join_answers(&mut self, root: u64) {
        let (due, waiting) = std::mem::take(&mut self.answers)
            .into_iter()
            .partition(|answer| {
                let bank = self.banks.get(&answer.context_slot);
                answer.context_slot <= root || bank.is_some_and(|bank| bank.sealed().is_some())
            });
        self.answers = waiting;
        for answer in due {
            self.join(&answer, root);
        }
    }

    /// Puts an answer into every state that builds on its slot and lacks it. States that are opened
    /// later have it from their parents.
    fn join(&mut self, answer: &Answer, root: u64) {
        let mut true_for = BTreeSet::from([answer.context_slot.max(root)]);
        for (slot, bank) in &mut self.banks {
            if bank.parent.is_some_and(|parent| true_for.contains(&parent)) {
                true_for.insert(*slot);
            }
            let Some(state) = bank.state_mut().filter(|_| true_for.contains(slot)) else {
                continue;
            };
            for (pubkey, content) in &answer.accounts {
                if state.account(pubkey).is_some() {
                    continue;
                }
                state.put(*pubkey, content.clone(), &mut self.index);
                for pool in self.index.pools_with(pubkey) {
                    state.refresh(pool, |part| {
                        self.missing.insert(part);
                    });
                }
            }
        }
        for (pubkey, _) in &answer.accounts {
            self.asked.remove(pubkey);
            self.missing.remove(pubkey);
        }
    }
}
