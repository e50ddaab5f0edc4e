//! Last owners: accounts of a slot that were closed or that left a watched program, by that program.

use std::{collections::HashMap, sync::Arc, time::Instant};

use sluice_geyser::AccountUpdate;
use sluice_store::{Commitment, KnownAccount};
use solana_pubkey::Pubkey;

use super::{
    super::program_reader::ProgramAccounts, OutboxBatch, Served, Session, SessionEnd,
    composing::Emission,
};
use crate::slots::{
    Action, Block, LastOwners, Ownership, SlotEvent, SlotEvents,
    known_accounts::{KnownAccounts, MAX_KNOWN_ACCOUNTS, Tenure},
};

/// How many slots are finalized until the tenures that are over are looked through: some twenty seconds.
const FORGETTING_INTERVAL_SLOTS: u64 = 64;

/// Most closed accounts that are held while a program is read: of the whole chain those of a minute.
const MAX_HELD_CLOSES: usize = 20_000;

/// The closes that were emitted while a program's accounts were read: whose they were was not known.
pub(super) type HeldCloses = HashMap<Pubkey, (Arc<Block>, AccountUpdate)>;

impl Session<'_> {
    /// The last slot of which all that the filter selects was emitted; `None` before the filter is in force.
    pub(in super::super) fn emitted_through(&self) -> Option<u64> {
        let emitted = self.tree.watermark(Commitment::Confirmed);
        emitted.filter(|slot| self.in_force.is_some() && Some(*slot) >= self.first_whole)
    }

    /// Whether accounts that are closed from here on are held until a program's accounts are read.
    pub(in super::super) fn hold_closes(&mut self, holds: bool) {
        if holds {
            self.held_closes.get_or_insert_default();
        } else {
            self.held_closes = None;
        }
    }

    /// Takes which accounts a program owns; `None` where that is not known. What was closed since is emitted as of the slot in
    /// which it was.
    pub(in super::super) async fn apply_read(
        &mut self,
        read: Option<ProgramAccounts>,
    ) -> Result<(), SessionEnd> {
        let (Some(read), Some(held)) = (read, self.held_closes.take()) else {
            return Ok(());
        };
        let mut actions = Vec::new();
        for account in &read.accounts {
            let Some((block, write)) = held
                .get(account)
                .filter(|(block, _)| block.slot > read.slot)
            else {
                continue;
            };
            let mut events = SlotEvents::default();
            events.add(SlotEvent::Account(write.clone()));
            let events = Arc::new(events);
            let finalized = self.tree.watermark(Commitment::Finalized);
            let due = Commitment::ALL.into_iter();
            let due =
                due.filter(|each| *each < Commitment::Finalized || finalized >= Some(block.slot));
            actions.extend(due.map(|commitment| Action::Emit {
                commitment,
                block: Arc::clone(block),
                events: Arc::clone(&events),
            }));
        }
        self.ownership.read(read.program, read.slot, read.accounts);
        tracing::info!(program = %read.program, slot = read.slot, closed_since = actions.len(), "the accounts of a watched program are known");
        self.perform_live(actions, Instant::now()).await
    }

    /// Begins with what was stored of known accounts.
    pub(in super::super) fn know(&mut self, stored: Vec<KnownAccount>) {
        let tenures = stored.into_iter().map(|known| {
            let tenure = Tenure {
                owner: known.owner,
                since: known.since_slot,
                left: known.left_slot,
            };
            (known.address, tenure)
        });
        let watched = |program: &_| self.subscriptions.watches_owner(program);
        self.ownership = Ownership::of(KnownAccounts::restored(tenures, watched));
    }

    /// Forgets now and then what no slot that is read again needs.
    pub(super) fn forget_owners(&mut self, commitment: Commitment, slot: u64) {
        let due = self
            .owners_forgotten
            .saturating_add(FORGETTING_INTERVAL_SLOTS);
        if commitment == Commitment::Finalized && slot >= due {
            self.owners_forgotten = slot;
            self.ownership.finalized(slot);
            self.taken_reader.finalized(slot);
        }
    }

    /// Counts the accounts that were forgotten because too many are watched, and says so once a session.
    fn note_crowded_out(&mut self) {
        let forgotten = self.ownership.take_crowded_out();
        if forgotten == 0 {
            return;
        }
        let metrics = &self.context.outbox.metrics;
        if !std::mem::replace(&mut self.warned_of_crowding, true) {
            tracing::warn!(
                forgotten,
                MAX_KNOWN_ACCOUNTS,
                "more accounts of watched programs than are known at once: of the oldest, that they are closed is not noticed \
                 until they are written again"
            );
        }
        metrics.known_accounts_forgotten(forgotten);
    }

    /// The owners that accounts written in a block had before.
    pub(super) fn last_owners(
        &self,
        served: Served<'_>,
        block: &Block,
        events: &SlotEvents,
    ) -> LastOwners {
        if served.subscriptions.watches_owners() {
            self.ownership.last_owners(block, events)
        } else {
            LastOwners::default()
        }
    }

    /// Takes note of the owners in a block that may still leave the chain. Only webhooks at processed ask for them.
    pub(super) fn saw_processed(&mut self, served: Served<'_>, emission: &Emission) {
        let subscriptions = served.subscriptions;
        let (block, events) = (&emission.block, &emission.events);
        if served.checkpoints && subscriptions.watches_owners() {
            let watched = |program: &_| subscriptions.watches_owner(program);
            self.ownership
                .processed(block, events, &emission.last_owners, watched);
        }
    }

    /// Takes note of the owners in a confirmed block. What is new is stored with its messages.
    pub(super) fn saw_confirmed(
        &mut self,
        served: Served<'_>,
        emission: &Emission,
        batch: &mut OutboxBatch,
    ) {
        let subscriptions = served.subscriptions;
        let (block, events) = (&emission.block, &emission.events);
        if let Some(held) = &mut self.held_closes {
            let closed = events.writes().filter(|write| write.lamports == 0);
            for write in closed.take(MAX_HELD_CLOSES.saturating_sub(held.len())) {
                held.insert(write.pubkey, (Arc::clone(block), write.clone()));
            }
        }
        if subscriptions.watches_owners() {
            // An account that a side stream shows may be of a program that the live stream alone watches.
            let live = &self.subscriptions;
            let watched =
                |program: &_| subscriptions.watches_owner(program) || live.watches_owner(program);
            self.ownership
                .confirmed(block, events, &emission.last_owners, watched);
        }
        self.note_crowded_out();
        for ((address, since_slot), tenure) in self.ownership.take_changes() {
            match tenure {
                Some(tenure) => batch.known_accounts.write(KnownAccount {
                    address,
                    since_slot,
                    owner: tenure.owner,
                    left_slot: tenure.left,
                }),
                None => batch.known_accounts.forget(address, since_slot),
            }
        }
    }
}
