//! Market tree: builds, seals, confirms and drops the state of the exchange slot by slot (pure).
//!
//! Account writes, slot statuses and account snapshots of RPC calls go in; what readers may see comes out.
//!
//! # The tree of slots
//!
//! The *confirmed head* is the newest confirmed slot that is sealed; above it stands every slot that the
//! stream reported, each with the state of its parent and its own writes, as a validator keeps its banks.
//! A slot is *sealed* when its `processed` status was reported and its parent is sealed. Readers at
//! commitment processed see the *processed head*, readers at confirmed the confirmed head. A dead slot leaves
//! the tree with all that builds on it, a confirmed slot removes the forks that do not build on it, and the
//! processed head is then one of what is left. Nothing is undone, because nothing was overwritten.
//!
//! # The processed head
//!
//! It is the tip of the fork that the validators vote for, as far as the stream shows. What is confirmed they have
//! voted for, so the head builds on the confirmed head. Above it the stream reports no votes but those that
//! blocks are: each leader builds on the fork that it votes for. So of several forks the one with the most sealed
//! blocks shows, and of equally long ones that with the higher slot, which a leader built later. A high slot
//! alone says nothing: a leader that missed the last blocks builds a short fork with a high number.
//!
//! # Why joining account snapshots loses nothing
//!
//! The stream delivers, from some slot F on, every write to the accounts it covers, each before its
//! slot is sealed. A snapshot at confirmed context slot C ≥ F holds each account as it was when C was
//! complete. So at any slot S ≥ C an account is what its last write in the slots after C up to S made
//! it, or, without such a write, what the snapshot says; and the writes of C itself are contained in the
//! snapshot, so that applying them again changes nothing.
//!
//! # From which slot on a pool is quoted
//!
//! From the one that opens it, if what its quotes need besides is known there. The exchange opens no pool of mints that do
//! not exist, so what is left to know of a mint is what it says:
//!
//! - Of a mint of SPL Token a quote needs the program and the decimals, which the pool names and which never change. It is
//!   not waited for; it is read for its supply.
//! - A mint of Token-2022 that was written since the market began, as that of a token issued together with its pool, has
//!   come by the stream, which shows every write of every such mint; the latest of them are remembered (`shown_mints.rs`).
//! - An older one is read, at some confirmed slot C. As the stream shows every write of it, it was the same in each slot of
//!   C's ancestry after which none is shown, and is in all that builds on C until one is: without a write above the confirmed
//!   head, in all that builds on the head, the pool's slot among it. So the pool is quoted in its own slot as soon as C is
//!   sealed here, and not before: until then a write up to C may be on its way. Where there is a write it is known by that,
//!   from its slot on.
//! - The bytes of a transfer fee hold for every epoch: both schedules are in them, and a quote takes the one of its slot's
//!   clock.
//!
//! The first confirmed head is the highest context slot B of the first snapshots: each account is brought
//! from its own context slot to B with the writes of the slots between, all of which the stream delivered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use cpmm::{ExchangeIds, TokenProgram};
use sluice_chain_types::SlotStatus;
use sluice_geyser::{AccountUpdate, Body, SlotUpdate};
use solana_pubkey::Pubkey;

use crate::{
    account_snapshot::AccountSnapshot,
    accounts::{Accounts, Write},
    bank::{Bank, Phase},
    bootstrap::{Bootstrap, join_first_snapshots},
    decoded_account::{ByAddress, DecodedAccount},
    divergence::Divergence,
    missing_accounts::MissingAccounts,
    slot_state::{HeadStates, SlotState},
    state::{Index, State},
};

/// Complete slots that may wait for a parent while none is sealed. A reordered status is reported within
/// a slot or two; after this many, some three seconds, the parent was lost.
const MAX_ORPHANS: usize = 8;

/// Everything known of the exchange.
#[derive(Default)]
pub(crate) struct MarketTree {
    exchange: ExchangeIds,
    banks: BTreeMap<u64, Bank>,
    /// Newest confirmed slot that is sealed; `None` until the bootstrap is done.
    confirmed_head: Option<u64>,
    /// Whether the confirmed head's writes are replayed ones, delivered before on an earlier connection.
    confirmed_head_replayed: bool,
    /// Whether a replay that was asked for has not been seen to begin.
    replay_due: bool,
    /// Slots above the confirmed head that were reported to be confirmed.
    confirmed: BTreeSet<u64>,
    /// Dead slots above the confirmed head whose bank was not created again.
    dead: BTreeSet<u64>,
    accounts: Accounts,
    bootstrap: Bootstrap,
    /// Snapshots of slots that are not sealed yet.
    pending_snapshots: Vec<AccountSnapshot>,
    index: Index,
    missing: MissingAccounts,
    /// Complete slots reported since the last one was sealed.
    orphans: usize,
}

impl MarketTree {
    /// Nothing known yet of the exchange at these addresses.
    pub(crate) fn new(exchange: ExchangeIds) -> Self {
        Self {
            exchange,
            ..Self::default()
        }
    }

    /// Takes in a write of the stream.
    pub(crate) fn account(&mut self, update: &AccountUpdate) -> Result<(), Divergence> {
        let (slot, pubkey) = (update.slot, update.pubkey);
        if self.is_replayed_write(slot) {
            return Ok(());
        }
        let (version, account) = (update.write_version, self.decode(update));
        let (written, before) = self.accounts.before(slot, &pubkey, &account);
        if written.is_some_and(|written| written > version) {
            return Ok(());
        }
        let bank = self.banks.entry(slot).or_default();
        match &mut bank.phase {
            Phase::Sealed(_) if before == Some(&account) => return Ok(()),
            // Of what belongs to no pool nothing is kept, so nothing can be compared.
            Phase::Sealed(_) if before.is_none() && !self.index.is_kept(&pubkey, &account) => {
                return Ok(());
            }
            Phase::Sealed(_) => return Err(Divergence::LateWrite { slot, pubkey }),
            Phase::Building(builder) => {
                builder.enter_transaction(update.txn_signature, &self.accounts, &mut self.missing);
                if before != Some(&account) {
                    builder.write(pubkey, before, &account, &mut self.index);
                }
            }
            Phase::AwaitingParent => {}
        }
        self.accounts
            .write(slot, pubkey, Write { version, account });
        Ok(())
    }

    /// Takes in what came of a slot before that is known to be whole: its creation, or a write. Nobody sees it before the slot is
    /// sealed.
    pub(crate) fn ahead(&mut self, body: &Body) -> Result<(), Divergence> {
        match body {
            Body::Account(account) => self.account(account),
            Body::Slot(slot) => self.slot(slot).map(drop),
            Body::Transaction(_) | Body::BlockMeta(_) => Ok(()),
        }
    }

    /// Forgets what came ahead of a slot.
    pub(crate) fn void(&mut self, slot: u64) {
        let is_unsealed = |bank: &Bank| bank.sealed().is_none();
        if self.banks.get(&slot).is_some_and(is_unsealed) {
            self.banks.remove(&slot);
            self.accounts.retain(|each| each != slot);
        }
    }

    /// Takes in a slot status. Returns whether one of the two heads is another slot than before.
    pub(crate) fn slot(&mut self, update: &SlotUpdate) -> Result<bool, Divergence> {
        let slot = update.slot;
        if self.confirmed_head.is_some_and(|head| slot <= head) {
            return match update.status {
                SlotStatus::Dead if self.confirmed_head == Some(slot) => {
                    Err(Divergence::DeadConfirmedSlot { slot })
                }
                SlotStatus::Processed if self.confirmed_head == Some(slot) => {
                    // All that is reported from here on builds on the confirmed head.
                    self.replay_due = false;
                    Ok(false)
                }
                _ => Ok(false),
            };
        }
        let before = (self.processed_head(), self.confirmed_head);
        match update.status {
            SlotStatus::Dead => self.remove_dead(slot),
            // Reported once more after it was dead; its writes are gone.
            SlotStatus::Processed if self.dead.contains(&slot) => {}
            SlotStatus::Processed => {
                self.set_parent(slot, update.parent)?;
                let bank = self.banks.entry(slot).or_default();
                self.orphans += usize::from(!bank.complete);
                bank.complete = true;
            }
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                self.set_parent(slot, update.parent)?;
                self.confirmed.insert(slot);
            }
            SlotStatus::CreatedBank => {
                // A validator may repair a dead slot and run it again.
                self.dead.remove(&slot);
                self.set_parent(slot, update.parent)?;
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => {
                self.set_parent(slot, update.parent)?;
            }
        }
        self.advance();
        if self.confirmed_head.is_some() && self.orphans > MAX_ORPHANS {
            return Err(Divergence::Orphans { slot });
        }
        Ok((self.processed_head(), self.confirmed_head) != before)
    }

    /// Takes in one of the first snapshots.
    pub(crate) fn first_snapshot(&mut self, snapshot: AccountSnapshot) {
        self.bootstrap.collect(snapshot);
    }

    /// There are no more first snapshots: the market begins when the stream has reached them.
    pub(crate) fn first_snapshots_complete(&mut self) {
        self.bootstrap.complete();
        self.advance();
    }

    /// Takes in a snapshot of accounts that were missing; it is joined once its slot is sealed.
    pub(crate) fn snapshot(&mut self, snapshot: AccountSnapshot) {
        self.pending_snapshots.push(snapshot);
        self.advance();
    }

    /// Accounts of pools that only an RPC call can deliver and that were not handed out before.
    pub(crate) fn take_missing(&mut self) -> Vec<Pubkey> {
        let head = self.processed_head().unwrap_or(0);
        let is_known = |pubkey: &Pubkey| {
            let account = self.accounts.get(head, pubkey);
            !matches!(account, None | Some(DecodedAccount::Absent))
        };
        self.missing.take(head, is_known)
    }

    /// The states that readers may see; `None` until the bootstrap is done.
    pub(crate) fn head_states(&self) -> Option<HeadStates> {
        let state_of = |slot: u64| {
            let state = self.banks.get(&slot)?.sealed()?.clone();
            Some(SlotState { slot, state })
        };
        Some(HeadStates {
            processed: state_of(self.processed_head()?)?,
            confirmed: state_of(self.confirmed_head?)?,
        })
    }

    /// The sealed tip of the longest fork; `None` until the bootstrap is done.
    pub(crate) fn processed_head(&self) -> Option<u64> {
        self.confirmed_head?;
        let sealed = self
            .banks
            .iter()
            .filter(|(_, bank)| bank.sealed().is_some());
        let (head, _) = sealed.max_by_key(|(slot, bank)| (bank.height, **slot))?;
        Some(*head)
    }

    /// Forgets all that is above the confirmed head, which a new connection is asked to replay. Other
    /// servers, and replays, number writes differently, so nothing of the two may be mixed. Returns the slot
    /// to replay from; `None` when there is no confirmed head to build on.
    pub(crate) fn rewind(&mut self) -> Option<u64> {
        let head = self.confirmed_head?;
        self.banks.retain(|slot, _| *slot == head);
        self.accounts.retain(|slot| slot == head);
        self.confirmed.clear();
        self.dead.clear();
        // The calls end with the connection they were made for.
        self.pending_snapshots.clear();
        self.missing.requeue();
        self.confirmed_head_replayed = true;
        self.replay_due = true;
        self.orphans = 0;
        Some(head)
    }

    /// Whether a write of this slot changes nothing any more: slots before the confirmed head are confirmed
    /// and complete, and so is a confirmed head that an earlier connection has delivered.
    fn is_replayed_write(&self, slot: u64) -> bool {
        self.confirmed_head
            .is_some_and(|head| slot < head || (slot == head && self.confirmed_head_replayed))
    }

    fn set_parent(&mut self, slot: u64, parent: Option<u64>) -> Result<(), Divergence> {
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

    /// Removes a dead slot with all that builds on it.
    fn remove_dead(&mut self, slot: u64) {
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

    /// Seals what can be sealed, moves the confirmed head, and joins snapshots whose slot was reached.
    fn advance(&mut self) {
        if self.confirmed_head.is_none() {
            self.try_bootstrap();
        }
        let Some(head) = self.confirmed_head else {
            return;
        };
        // Parents are smaller than children, so one pass upwards seals whole forks.
        let above = self.banks.range(head + 1..);
        let unsealed: Vec<u64> = above
            .filter(|(_, bank)| bank.sealed().is_none())
            .map(|(slot, _)| *slot)
            .collect();
        for slot in unsealed {
            self.advance_bank(slot);
        }
        let confirmed = self.confirmed.iter().rev();
        let sealed = confirmed.filter_map(|slot| self.sealed_at_or_below(*slot));
        let head = sealed
            .max()
            .filter(|slot| *slot > head)
            .map_or(head, |slot| {
                self.move_confirmed_head(slot);
                slot
            });
        self.join_snapshots(head);
    }

    /// Makes the first confirmed head, once the stream has reached the newest of the first snapshots.
    fn try_bootstrap(&mut self) {
        let Some((oldest, head)) = self.bootstrap.context_slots() else {
            return;
        };
        let Some(ancestry) = self.ancestry(oldest, head) else {
            return;
        };
        let mut written = ByAddress::default();
        for slot in ancestry {
            for (pubkey, write) in self.accounts.writes(slot) {
                written.insert(*pubkey, (slot, write.account.clone()));
            }
        }
        let snapshots = self.bootstrap.finish();
        join_first_snapshots(snapshots, written, &mut self.accounts, &mut self.index);
        self.banks = self.banks.split_off(&head);
        self.accounts.retain(|slot| slot >= head);
        let mut state = State::default();
        let get = |pubkey: &Pubkey| self.accounts.get(head, pubkey);
        for pool in self.index.pools() {
            state.refresh(*pool, get, &mut self.missing);
        }
        if let Some(DecodedAccount::Clock(clock)) = get(&cpmm::ids::CLOCK) {
            state.set_clock(*clock);
        }
        self.banks.entry(head).or_default().phase = Phase::Sealed(state);
        self.confirmed_head = Some(head);
        self.orphans = 0;
    }

    /// The slots that lead from `first` to `last`, both included, oldest first; `None` while `last`
    /// is not complete or a parent is not reported.
    fn ancestry(&self, first: u64, last: u64) -> Option<Vec<u64>> {
        self.banks.get(&last).filter(|bank| bank.complete)?;
        let mut ancestry = vec![last];
        let mut oldest = last;
        while oldest > first {
            oldest = self.banks.get(&oldest)?.parent?;
            // A skipped `first` leaves its parent, whose writes every snapshot contains.
            if self.banks.contains_key(&oldest) {
                ancestry.push(oldest);
            }
        }
        ancestry.reverse();
        Some(ancestry)
    }

    /// The highest sealed slot among a slot and its ancestry: all of these are confirmed with it.
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

    /// Begins to build a slot whose parent is sealed, and seals it when it is complete.
    fn advance_bank(&mut self, slot: u64) {
        let parent = self.banks.get(&slot).and_then(|bank| bank.parent);
        let parent_bank = parent.and_then(|parent| self.banks.get(&parent));
        let parent_state = parent_bank.and_then(Bank::sealed).cloned();
        let height = parent_bank.map_or(0, |parent| parent.height.saturating_add(1));
        let Some(bank) = self.banks.get_mut(&slot) else {
            return;
        };
        bank.height = height;
        bank.phase = std::mem::take(&mut bank.phase).advance(
            slot,
            parent.zip(parent_state),
            // Where nothing is replayed, the first slot reported may lack what it wrote before the connection.
            bank.complete && !self.replay_due,
            &self.accounts,
            &mut self.index,
            &mut self.missing,
        );
        if bank.sealed().is_some() {
            self.orphans = 0;
        }
    }

    /// Moves the confirmed head, and drops the forks that do not build on it.
    fn move_confirmed_head(&mut self, head: u64) {
        let mut kept = BTreeSet::from([head]);
        for (slot, bank) in self.banks.range(head + 1..) {
            let waits = bank.sealed().is_none()
                && bank
                    .parent
                    .is_none_or(|parent| parent > head && !self.banks.contains_key(&parent));
            if waits || bank.parent.is_some_and(|parent| kept.contains(&parent)) {
                kept.insert(*slot);
            }
        }
        self.accounts
            .confirm(head, |pubkey, account| self.index.is_kept(pubkey, account));
        self.banks.retain(|slot, _| kept.contains(slot));
        self.accounts.retain(|slot| kept.contains(&slot));
        self.confirmed = self.confirmed.split_off(&(head + 1));
        self.dead = self.dead.split_off(&(head + 1));
        self.confirmed_head = Some(head);
        self.confirmed_head_replayed = false;
    }

    /// Joins the snapshots whose slot is sealed, or older than the confirmed head, which builds on it then.
    fn join_snapshots(&mut self, head: u64) {
        let (due, pending) = std::mem::take(&mut self.pending_snapshots)
            .into_iter()
            .partition(|snapshot| {
                let bank = self.banks.get(&snapshot.context_slot);
                snapshot.context_slot <= head || bank.is_some_and(|bank| bank.sealed().is_some())
            });
        self.pending_snapshots = pending;
        for snapshot in due {
            self.join(snapshot, head);
        }
    }

    /// Puts a snapshot into every state for which it is true and which lacks it. States that are begun later have it from
    /// their parents.
    fn join(&mut self, snapshot: AccountSnapshot, head: u64) {
        let context = snapshot.context_slot;
        let (mut since_head, mut since_context) = (Vec::new(), Vec::new());
        for (pubkey, account) in snapshot.accounts {
            let exists = account != DecodedAccount::Absent;
            self.missing.resolve(&pubkey, exists, context);
            // The stream does not show writes of SPL mints, so one may be younger than the head.
            let is_shown = !matches!(account, DecodedAccount::Mint(TokenProgram::Spl, _));
            let is_as_at_head = is_shown && !self.accounts.is_written(context, &pubkey);
            if context <= head || (exists && is_as_at_head) {
                since_head.push(pubkey);
            } else {
                since_context.push(pubkey);
            }
            if !exists {
                continue;
            }
            if context <= head || is_as_at_head {
                self.accounts.add(pubkey, account);
            } else if matches!(
                self.accounts.get(context, &pubkey),
                None | Some(DecodedAccount::Absent)
            ) {
                let version = 0;
                self.accounts
                    .write(context, pubkey, Write { version, account });
            }
        }
        self.refresh_from(head, &since_head);
        self.refresh_from(context, &since_context);
    }

    /// Renews the pools that depend on these accounts in a slot and in all that builds on it.
    fn refresh_from(&mut self, first: u64, accounts: &[Pubkey]) {
        let mut renewed = BTreeSet::from([first]);
        for (slot, bank) in &mut self.banks {
            if bank.parent.is_some_and(|parent| renewed.contains(&parent)) {
                renewed.insert(*slot);
            }
            let Some(state) = bank.state_mut().filter(|_| renewed.contains(slot)) else {
                continue;
            };
            for pool in accounts.iter().flat_map(|key| self.index.pools_with(key)) {
                let get = |pubkey: &Pubkey| self.accounts.get(*slot, pubkey);
                state.refresh(pool, get, &mut self.missing);
            }
        }
    }

    fn decode(&self, update: &AccountUpdate) -> DecodedAccount {
        let (pubkey, owner) = (&update.pubkey, &update.owner);
        let exchange = &self.exchange.program;
        DecodedAccount::decode(exchange, pubkey, owner, update.lamports, &update.data)
    }
}
