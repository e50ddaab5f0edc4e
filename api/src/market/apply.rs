//! The market as a pure state machine: account writes, slot statuses and snapshots go in, and at each
//! slot the pools that changed come out, together.
//!
//! # Why joining a snapshot loses nothing
//!
//! The stream delivers, from some slot F on, every write to the accounts it covers, each before its
//! slot is sealed. An RPC answer at context slot C contains every write of slots before C, and
//! possibly all of C. The answer is asked for with C ≥ F, and each key keeps the newest of what it was
//! given in the order
//!
//! > writes of slots before C < the answer at C < writes of slot C in write order < later writes
//!
//! So a write before C is contained in the answer, and a write in C or later replaces it: if the
//! answer contained that write already, writing it once more changes nothing, because the last write
//! of each key in C comes last here too. Between C and the present the key's value is therefore what
//! the chain had at every sealed slot. An answer is held back until slot C is sealed, since before
//! that the other accounts are still older than it.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use cpmm::{Clock, PoolSnapshot, ids};
use sluice_geyser::{AccountUpdate, SlotStatus, SlotUpdate};
use solana_pubkey::Pubkey;

use super::{
    assembly::{Incomplete, assemble, parts},
    content::Content,
};

/// Slots for which parents and sealing are remembered. A branch that competes for longer than this
/// (over three minutes) would be a halted chain.
const REMEMBERED_SLOTS: u64 = 512;

/// The stream told something that cannot be joined to what is visible. Only a new snapshot helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Divergence {
    /// A slot whose writes are visible was abandoned.
    #[error("slot {slot} was visible and is now dead")]
    DeadSlot {
        /// The slot.
        slot: u64,
    },
    /// The chain goes on from an older slot than the last visible one.
    #[error("slot {slot} builds on slot {parent}, not on the visible slot {head}")]
    Fork {
        /// The new slot.
        slot: u64,
        /// Its nearest ancestor that is known and older than `head`.
        parent: u64,
        /// The last visible slot.
        head: u64,
    },
    /// Writes wait in slots whose relation to the chain was never told.
    #[error("the parent of slot {slot} was not told while older slots wait to be joined")]
    UnknownParent {
        /// The slot.
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

/// An account as a snapshot or the stream gives it, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawAccount {
    pub(super) owner: Pubkey,
    pub(super) lamports: u64,
    pub(super) data: Bytes,
}

/// Accounts read by one RPC call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    /// Slot at whose state they were read.
    pub(super) context_slot: u64,
    /// What was found; `None` where there is no account.
    pub(super) accounts: Vec<(Pubkey, Option<RawAccount>)>,
}

/// What became visible with a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sealed {
    /// The slot.
    pub(super) slot: u64,
    /// The chain's time in it, once known.
    pub(super) clock: Option<Clock>,
    /// Pools that changed: their new state, or `None` for those that cannot be quoted any more.
    pub(super) pools: Vec<(Pubkey, Option<Arc<PoolSnapshot>>)>,
}

/// Orders what is known of one key. The variants are ordered as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// Read by RPC.
    Snapshot,
    /// Written on the stream, with this write version.
    Write(u64),
}

/// Slot first, then order within it.
type Version = (u64, Order);

struct Held {
    version: Version,
    content: Content,
}

struct Staged {
    write_version: u64,
    account: RawAccount,
}

/// Everything known of the exchange.
#[derive(Default)]
pub(super) struct Ledger {
    accounts: HashMap<Pubkey, Held>,
    /// Writes of slots not sealed yet; of each key the last one only.
    staged: BTreeMap<u64, HashMap<Pubkey, Staged>>,
    /// Snapshots of slots not sealed yet.
    batches: Vec<Batch>,
    parents: BTreeMap<u64, u64>,
    sealed: BTreeSet<u64>,
    head: Option<u64>,
    clock: Option<Clock>,
    /// Pools by the accounts they consist of.
    dependents: HashMap<Pubkey, BTreeSet<Pubkey>>,
    /// Pools that exist, each with the reason why it cannot be quoted if it cannot.
    pools: HashMap<Pubkey, Option<Incomplete>>,
    /// Parts of pools of which nothing is known.
    wanted: BTreeSet<Pubkey>,
    /// Pools and their parts, ever.
    known: BTreeSet<Pubkey>,
    dirty: HashSet<Pubkey>,
}

impl Ledger {
    /// Takes in a write of the stream.
    pub(super) fn account(&mut self, update: AccountUpdate) -> Result<(), Divergence> {
        let AccountUpdate {
            slot,
            pubkey,
            write_version,
            ..
        } = update;
        if self.head.is_some_and(|head| slot <= head) {
            return self.late(slot, pubkey, write_version);
        }
        let account = RawAccount {
            owner: update.owner,
            lamports: update.lamports,
            data: update.data,
        };
        let writes = self.staged.entry(slot).or_default();
        if writes
            .get(&pubkey)
            .is_none_or(|staged| staged.write_version <= write_version)
        {
            writes.insert(
                pubkey,
                Staged {
                    write_version,
                    account,
                },
            );
        }
        Ok(())
    }

    /// A write to a slot that is not ahead. Harmless when it is contained already, or when its slot
    /// is on another branch: should the chain move there, its slots will not build on the head.
    fn late(&self, slot: u64, pubkey: Pubkey, write_version: u64) -> Result<(), Divergence> {
        let version = (slot, Order::Write(write_version));
        let contained = self
            .accounts
            .get(&pubkey)
            .is_some_and(|held| held.version >= version);
        if contained || !self.sealed.contains(&slot) {
            return Ok(());
        }
        Err(Divergence::LateWrite { slot, pubkey })
    }

    /// Takes in a slot status; returns what it made visible.
    pub(super) fn slot(&mut self, update: &SlotUpdate) -> Result<Option<Sealed>, Divergence> {
        if let Some(parent) = update.parent {
            self.parents.insert(update.slot, parent);
        }
        match update.status {
            SlotStatus::Processed => self.seal(update.slot),
            SlotStatus::Dead if self.sealed.contains(&update.slot) => {
                Err(Divergence::DeadSlot { slot: update.slot })
            }
            SlotStatus::Dead => {
                self.staged.remove(&update.slot);
                Ok(None)
            }
            SlotStatus::Confirmed
            | SlotStatus::Finalized
            | SlotStatus::FirstShredReceived
            | SlotStatus::Completed
            | SlotStatus::CreatedBank => Ok(None),
        }
    }

    /// Takes in what an RPC call returned; it becomes visible with its slot.
    pub(super) fn snapshot(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    /// Whether every snapshot taken in is visible.
    pub(super) fn joined(&self) -> bool {
        self.batches.is_empty()
    }

    /// Parts of pools that only a snapshot can deliver.
    pub(super) fn wanted(&self) -> &BTreeSet<Pubkey> {
        &self.wanted
    }

    /// All pools and parts of pools, ever: what to subscribe to by key. Never shrinks.
    pub(super) fn known(&self) -> &BTreeSet<Pubkey> {
        &self.known
    }

    /// Pools that exist but cannot be quoted, with the reason.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (&Pubkey, &Incomplete)> {
        self.pools
            .iter()
            .filter_map(|(pool, reason)| Some((pool, reason.as_ref()?)))
    }

    fn seal(&mut self, slot: u64) -> Result<Option<Sealed>, Divergence> {
        if self.head.is_some_and(|head| slot <= head) {
            // Told twice, or a branch that the chain does not follow.
            return Ok(None);
        }
        for ancestor in self.path_from_head(slot)? {
            let writes = self.staged.remove(&ancestor).unwrap_or_default();
            for (
                pubkey,
                Staged {
                    write_version,
                    account,
                },
            ) in writes
            {
                let version = (ancestor, Order::Write(write_version));
                self.put(pubkey, version, Some(&account));
            }
            self.sealed.insert(ancestor);
        }
        self.head = Some(slot);
        self.forget_before(slot);
        self.join_batches(slot);
        let pools = std::mem::take(&mut self.dirty)
            .into_iter()
            .filter_map(|pool| self.refresh(pool).map(|state| (pool, state)))
            .collect();
        Ok(Some(Sealed {
            slot,
            clock: self.clock,
            pools,
        }))
    }

    /// The slots from the head (excluded) to `slot`, oldest first. A frozen slot implies frozen
    /// ancestors, so ancestors whose own status was not told are sealed with it.
    fn path_from_head(&self, slot: u64) -> Result<Vec<u64>, Divergence> {
        let mut path = vec![slot];
        let Some(head) = self.head else {
            return Ok(path);
        };
        let mut oldest = slot;
        loop {
            match self.parents.get(&oldest) {
                Some(&parent) if parent == head => break,
                Some(&parent) if parent < head => {
                    return Err(Divergence::Fork { slot, parent, head });
                }
                // A slot is younger than its parent; anything else would loop for ever.
                Some(&parent) if parent < oldest => {
                    path.push(parent);
                    oldest = parent;
                }
                _ if self.staged.keys().any(|&waiting| waiting < oldest) => {
                    return Err(Divergence::UnknownParent { slot: oldest });
                }
                _ => break,
            }
        }
        path.reverse();
        Ok(path)
    }

    /// Staged slots before the new head are on branches that it is not part of.
    fn forget_before(&mut self, head: u64) {
        self.staged = self.staged.split_off(&head);
        let oldest = head.saturating_sub(REMEMBERED_SLOTS);
        while self.sealed.first().is_some_and(|slot| *slot < oldest) {
            self.sealed.pop_first();
        }
        while self
            .parents
            .first_key_value()
            .is_some_and(|(slot, _)| *slot < oldest)
        {
            self.parents.pop_first();
        }
    }

    fn join_batches(&mut self, head: u64) {
        let (due, waiting) = std::mem::take(&mut self.batches)
            .into_iter()
            .partition(|batch| batch.context_slot <= head);
        self.batches = waiting;
        for Batch {
            context_slot,
            accounts,
        } in due
        {
            for (pubkey, account) in accounts {
                self.put(pubkey, (context_slot, Order::Snapshot), account.as_ref());
            }
        }
    }

    /// Keeps an account if it is newer than what is held, and marks the pools it belongs to.
    fn put(&mut self, pubkey: Pubkey, version: Version, account: Option<&RawAccount>) {
        if self
            .accounts
            .get(&pubkey)
            .is_some_and(|held| held.version >= version)
        {
            return;
        }
        let content = account.map_or(Content::Absent, |account| {
            Content::decode(&pubkey, &account.owner, account.lamports, &account.data)
        });
        if pubkey == ids::CLOCK {
            if let Content::Clock(clock) = content {
                self.clock = Some(clock);
            }
            return;
        }
        if matches!(content, Content::Pool(_)) || self.pools.contains_key(&pubkey) {
            self.dirty.insert(pubkey);
        }
        self.dirty
            .extend(self.dependents.get(&pubkey).into_iter().flatten());
        self.wanted.remove(&pubkey);
        self.accounts.insert(pubkey, Held { version, content });
    }

    /// Puts a pool together again. `None` when nothing changes for readers.
    fn refresh(&mut self, address: Pubkey) -> Option<Option<Arc<PoolSnapshot>>> {
        let Some(Held {
            content: Content::Pool(state),
            ..
        }) = self.accounts.get(&address)
        else {
            let was_complete = self
                .pools
                .remove(&address)
                .is_some_and(|reason| reason.is_none());
            return was_complete.then_some(None);
        };
        let parts = parts(state);
        let assembled = assemble(state, |key| {
            self.accounts.get(key).map(|held| &held.content)
        });
        if !self.pools.contains_key(&address) {
            self.known.insert(address);
        }
        for part in parts {
            // A pool's parts are fixed when it is opened, so none is ever taken away.
            if self.dependents.entry(part).or_default().insert(address) {
                self.known.insert(part);
                if !self.accounts.contains_key(&part) {
                    self.wanted.insert(part);
                }
            }
        }
        match assembled {
            Ok(snapshot) => {
                self.pools.insert(address, None);
                Some(Some(snapshot))
            }
            Err(reason) => {
                let was_complete = self
                    .pools
                    .insert(address, Some(reason))
                    .is_some_and(|before| before.is_none());
                was_complete.then_some(None)
            }
        }
    }
}
