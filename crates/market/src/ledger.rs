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

mod founding;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use sluice_geyser::{AccountUpdate, SlotStatus, SlotUpdate};
use solana_pubkey::Pubkey;

use self::founding::Seed;
use super::{
    accounts::{Accounts, Write},
    bank::{Bank, Draft, Stage},
    content::Content,
    state::{Index, State},
    wanted::Wanted,
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

/// Everything known of the exchange.
#[derive(Default)]
pub(super) struct Ledger {
    banks: BTreeMap<u64, Bank>,
    /// Newest confirmed slot that is sealed; `None` until the first answers are joined.
    root: Option<u64>,
    /// Whether the root's writes were told once already, on an earlier connection.
    root_settled: bool,
    /// Whether a replay that was asked for has not been seen to begin.
    replay_due: bool,
    /// Slots above the root that were told to be confirmed.
    confirmed: BTreeSet<u64>,
    /// Slots above the root that died and were not begun anew.
    dead: BTreeSet<u64>,
    accounts: Accounts,
    seed: Seed,
    /// Answers of slots that are not sealed yet.
    answers: Vec<Answer>,
    index: Index,
    wanted: Wanted,
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
        let (version, content) = (update.write_version, decode(update));
        let (written, before) = self.accounts.before(slot, &pubkey, &content);
        if written.is_some_and(|written| written > version) {
            return Ok(());
        }
        let bank = self.banks.entry(slot).or_default();
        match &mut bank.stage {
            Stage::Sealed(_) if before == Some(&content) => return Ok(()),
            // Of what belongs to no pool nothing is kept, so nothing can be compared.
            Stage::Sealed(_) if before.is_none() && !self.index.is_kept(&pubkey, &content) => {
                return Ok(());
            }
            Stage::Sealed(_) => return Err(Divergence::LateWrite { slot, pubkey }),
            Stage::Open(draft) => {
                draft.turn_to(update.txn_signature, &self.accounts, &mut self.wanted);
                if before != Some(&content) {
                    draft.write(pubkey, before, &content, &mut self.index);
                }
            }
            Stage::Waiting => {}
        }
        self.accounts
            .write(slot, pubkey, Write { version, content });
        Ok(())
    }

    /// Takes in a slot status. Returns whether something else is visible than before.
    pub(super) fn slot(&mut self, update: &SlotUpdate) -> Result<bool, Divergence> {
        let slot = update.slot;
        if self.root.is_some_and(|root| slot <= root) {
            return match update.status {
                SlotStatus::Dead if self.root == Some(slot) => Err(Divergence::DeadRoot { slot }),
                SlotStatus::Processed if self.root == Some(slot) => {
                    // All that is told from here on builds on the root.
                    self.replay_due = false;
                    Ok(false)
                }
                _ => Ok(false),
            };
        }
        let before = self.heads();
        match update.status {
            SlotStatus::Dead => self.bury(slot),
            // Told once more after its death; its writes are gone.
            SlotStatus::Processed if self.dead.contains(&slot) => {}
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
            SlotStatus::CreatedBank => {
                // A validator may repair a dead slot and run it again.
                self.dead.remove(&slot);
                self.told_parent(slot, update.parent)?;
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => {
                self.told_parent(slot, update.parent)?;
            }
        }
        self.advance();
        if self.root.is_some() && self.orphans > MAX_ORPHANS {
            return Err(Divergence::Orphans { slot });
        }
        Ok(self.heads() != before)
    }

    /// Takes in an answer about parts that were wanted; it is joined once its slot is sealed.
    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
        self.advance();
    }

    /// The parts of pools that only an RPC call can deliver and that were not handed out before.
    pub(super) fn take_wanted(&mut self) -> Vec<Pubkey> {
        let head = self.heads().map_or(0, |(head, _)| head);
        let known = |part: &Pubkey| {
            let content = self.accounts.get(head, part);
            !matches!(content, None | Some(Content::Absent))
        };
        self.wanted.take(head, known)
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
        self.accounts.retain(|slot| slot == root);
        self.confirmed.clear();
        self.dead.clear();
        // The calls end with the connection they were made for.
        self.answers.clear();
        self.wanted.ask_again();
        self.root_settled = true;
        self.replay_due = true;
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
                self.accounts.set_parent(slot, now);
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
        self.accounts.retain(|slot| !dead.contains(&slot));
        self.dead.append(&mut dead);
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
        let confirmed = self.confirmed.iter().rev();
        let sealed = confirmed.filter_map(|slot| self.sealed_at_or_below(*slot));
        let root = sealed
            .max()
            .filter(|slot| *slot > root)
            .map_or(root, |slot| {
                self.settle(slot);
                slot
            });
        self.join_answers(root);
    }

    /// The highest sealed slot among a slot and what it builds on: all of these are confirmed with it.
    fn sealed_at_or_below(&self, slot: u64) -> Option<u64> {
        let mut next = Some(slot);
        while let Some((slot, bank)) = next.and_then(|slot| Some((slot, self.banks.get(&slot)?))) {
            if bank.sealed().is_some() {
                return Some(slot);
            }
            next = bank.parent;
        }
        None
    }

    /// Opens a slot whose parent is sealed, and seals it when it is complete.
    fn grow(&mut self, slot: u64) {
        let parent = self.banks.get(&slot).and_then(|bank| bank.parent);
        let parent_state = parent
            .and_then(|parent| self.banks.get(&parent)?.sealed())
            .cloned();
        let Some(bank) = self.banks.get_mut(&slot) else {
            return;
        };
        let (accounts, wanted) = (&self.accounts, &mut self.wanted);
        bank.stage = match (std::mem::take(&mut bank.stage), parent.zip(parent_state)) {
            (Stage::Waiting, Some((parent, state))) => {
                let mut draft = Draft::new(slot, state);
                for (pubkey, write) in accounts.writes(slot) {
                    let before = accounts.get(parent, pubkey);
                    draft.write(*pubkey, before, &write.content, &mut self.index);
                }
                Stage::Open(draft)
            }
            (stage, _) => stage,
        };
        // Where nothing is replayed, the first slot told may lack what it wrote before the connection.
        if bank.frozen
            && !self.replay_due
            && let Stage::Open(_) = bank.stage
            && let Stage::Open(draft) = std::mem::take(&mut bank.stage)
        {
            bank.stage = Stage::Sealed(draft.finish(accounts, wanted));
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
        self.accounts
            .settle(root, |pubkey, content| self.index.is_kept(pubkey, content));
        self.banks.retain(|slot, _| kept.contains(slot));
        self.accounts.retain(|slot| kept.contains(&slot));
        self.confirmed = self.confirmed.split_off(&(root + 1));
        self.dead = self.dead.split_off(&(root + 1));
        self.root = Some(root);
        self.root_settled = false;
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
            self.join(answer, root);
        }
    }

    /// Puts an answer into every state that builds on its slot and lacks it. States that are opened
    /// later have it from their parents.
    fn join(&mut self, answer: Answer, root: u64) {
        let context = answer.context_slot;
        let keys: Vec<Pubkey> = answer.accounts.iter().map(|(pubkey, _)| *pubkey).collect();
        for (pubkey, content) in answer.accounts {
            let exists = content != Content::Absent;
            self.wanted.answered(&pubkey, exists, context);
            if !exists {
                continue;
            }
            if context <= root {
                self.accounts.add(pubkey, content);
            } else if matches!(
                self.accounts.get(context, &pubkey),
                None | Some(Content::Absent)
            ) {
                let version = 0;
                self.accounts
                    .write(context, pubkey, Write { version, content });
            }
        }
        let mut true_for = BTreeSet::from([context.max(root)]);
        for (slot, bank) in &mut self.banks {
            if bank.parent.is_some_and(|parent| true_for.contains(&parent)) {
                true_for.insert(*slot);
            }
            let Some(state) = bank.state_mut().filter(|_| true_for.contains(slot)) else {
                continue;
            };
            for pool in keys.iter().flat_map(|key| self.index.pools_with(key)) {
                let get = |pubkey: &Pubkey| self.accounts.get(*slot, pubkey);
                state.refresh(pool, get, &mut self.wanted);
            }
        }
    }
}

fn decode(update: &AccountUpdate) -> Content {
    Content::decode(&update.pubkey, &update.owner, update.lamports, &update.data)
}
