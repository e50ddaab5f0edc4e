//! Session: turns the updates of one stream connection into outbox commits.
//!
//! Messages are gathered in a batch that a checkpoint completes. Two actions cannot wait for it: an emission at
//! processed, which endpoints wait for, and a retraction, which reads from the store what was emitted. Both
//! flush the batch first.

mod gap;
mod hand_over;
mod in_force;
mod last_owners;
mod unconfirmed;

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use sluice_geyser::{Assembled, Body, Generation, Update};
use sluice_store::{Commitment, Revision, Timestamp};

use self::last_owners::HeldCloses;
use super::{
    filter_round::FilterRound,
    outbox::{Outbox, OutboxBatch},
    reconnect::Reconnect,
    session_end::SessionEnd,
};
use crate::{
    events::{
        compose, idl::Idls, program_events::logs_truncated, subscription_index::Subscriptions,
    },
    slots::{Action, Block, ForkTree, LastOwners, Ownership, ResumePoint, SlotEvents},
    status::Status,
};

/// What every session needs.
#[derive(Clone, Debug)]
pub(crate) struct SessionContext {
    /// Where messages and the checkpoint go.
    pub(crate) outbox: Outbox,
    /// The programs whose events are decoded.
    pub(crate) idls: Arc<Idls>,
    /// Shows what was read.
    pub(crate) status: Status,
}

/// Whom the slots of a connection are emitted to.
#[derive(Clone, Copy)]
struct Served<'a> {
    subscriptions: &'a Arc<Subscriptions>,
    /// Whether its checkpoints count: only the live stream serves every webhook.
    checkpoints: bool,
}

/// A connection's state.
pub(super) struct Session<'a> {
    context: SessionContext,
    reconnect: &'a mut Reconnect,
    subscriptions: Arc<Subscriptions>,
    resume: ResumePoint,
    tree: ForkTree,
    /// Slots of which messages at processed are stored, and that are not resolved.
    unconfirmed: BTreeSet<u64>,
    /// Those of them of which nothing was stored before this session, nor retracted in it.
    never_retracted: BTreeSet<u64>,
    /// Slots that were retracted in this session.
    retracted: BTreeSet<u64>,
    /// Which programs owned the accounts that are read.
    ownership: Ownership,
    /// Accounts that were closed while a program's accounts are read; `None` while none is.
    held_closes: Option<HeldCloses>,
    /// Whether it was said that too many accounts are watched.
    warned_of_crowding: bool,
    /// The finalized slot at which tenures that are over were forgotten last.
    owners_forgotten: u64,
    /// The slot up to which everything confirmed is stored under this session's filter.
    watermark: Option<u64>,
    /// Whether a checkpoint was stored: the first one also reports the gap before it.
    has_checkpoint: bool,
    /// The revision that the connection was opened for.
    first_revision: Revision,
    /// The first slot that the stream gives out, once it is known.
    first_whole: Option<u64>,
    /// The revision whose filter is recorded to be in force.
    in_force: Option<Revision>,
    /// The change of the filter under way.
    round: Option<FilterRound>,
    /// The last slot that began before a filter was in force to which webhooks were handed over.
    last_cut: Option<u64>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        context: SessionContext,
        subscriptions: Arc<Subscriptions>,
        resume: ResumePoint,
        reconnect: &'a mut Reconnect,
    ) -> Self {
        Self {
            context,
            reconnect,
            first_revision: subscriptions.revision(),
            subscriptions,
            tree: ForkTree::new(&resume),
            unconfirmed: resume.unconfirmed.keys().copied().collect(),
            never_retracted: BTreeSet::new(),
            retracted: BTreeSet::new(),
            resume,
            ownership: Ownership::default(),
            owners_forgotten: 0,
            held_closes: None,
            warned_of_crowding: false,
            watermark: None,
            has_checkpoint: false,
            first_whole: None,
            in_force: None,
            round: None,
            last_cut: None,
        }
    }

    /// The webhooks that the live stream serves.
    pub(super) const fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// Does what follows from what the live stream gives out.
    pub(super) async fn apply(&mut self, assembled: Assembled) -> Result<(), SessionEnd> {
        match assembled {
            Assembled::InForce { filter, slot } => self.shown(filter, slot).await?,
            Assembled::Replaced { slot } => self.replaced(slot).await?,
            // What comes too late is emitted by itself.
            Assembled::Update(update) | Assembled::Late { update, .. } => {
                self.update(update).await?;
            }
        }
        self.record_in_force().await
    }

    /// Takes note that everything from `slot` on comes as the filter of a generation selects it.
    async fn shown(&mut self, filter: Generation, slot: u64) -> Result<(), SessionEnd> {
        self.first_whole.get_or_insert(slot);
        if let Some(round) = &mut self.round {
            round.shown(filter, slot);
            self.advance_side(Instant::now()).await?;
        }
        Ok(())
    }

    /// Does what follows from an update of a slot that is whole.
    pub(super) async fn update(&mut self, update: Update) -> Result<(), SessionEnd> {
        let received = Instant::now();
        self.context.outbox.metrics.update();
        let mut is_content = true;
        match &update.body {
            Body::Slot(slot) => {
                self.check_cut(slot)?;
                self.context.status.saw_slot(slot.slot, received);
                self.context.outbox.metrics.slot_seen(slot.slot);
                is_content = false;
            }
            Body::Transaction(transaction) if logs_truncated(transaction) => {
                self.context.outbox.metrics.logs_truncated();
            }
            _ => {}
        }
        let actions = self.tree.take(update)?;
        self.perform_live(actions, received).await?;
        if self.round.is_some() && !is_content {
            self.advance_side(received).await?;
        }
        Ok(())
    }

    /// Retracts what was emitted of a slot of which a replacement block follows.
    async fn replaced(&mut self, slot: u64) -> Result<(), SessionEnd> {
        let actions = self.tree.replaced(slot);
        self.perform_live(actions, Instant::now()).await
    }

    async fn perform_live(
        &mut self,
        actions: Vec<Action>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let subscriptions = Arc::clone(&self.subscriptions);
        let live = Served {
            subscriptions: &subscriptions,
            checkpoints: true,
        };
        self.perform(live, actions, received).await
    }

    async fn perform(
        &mut self,
        served: Served<'_>,
        actions: Vec<Action>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let mut batch = OutboxBatch::default();
        for action in actions {
            match action {
                Action::Emit {
                    commitment: Commitment::Processed,
                    block,
                    events,
                } => {
                    batch.flush(&self.context.outbox, received).await?;
                    let last_owners = self.last_owners(served, &block, &events);
                    self.saw_processed(served, &block, &events, &last_owners);
                    self.emit_processed(served, block, (events, last_owners), received)
                        .await?;
                }
                Action::Emit {
                    commitment,
                    block,
                    events,
                } => {
                    let last_owners = self.last_owners(served, &block, &events);
                    let emission = (commitment, &*block, (&*events, &last_owners));
                    self.emit(served.subscriptions, &mut batch, emission)
                        .await?;
                    if commitment == Commitment::Confirmed {
                        self.saw_confirmed(served, &block, &events, &mut batch);
                    }
                }
                Action::Retract {
                    slot,
                    reason,
                    emitted,
                } => {
                    self.ownership.retract(slot);
                    // What is retracted may be in the batch. And when the slot is confirmed after all, the retraction
                    // is read from the store, too.
                    batch.flush(&self.context.outbox, received).await?;
                    self.retract(&mut batch, slot, reason, emitted).await?;
                    batch.flush(&self.context.outbox, received).await?;
                }
                Action::Checkpoint { .. } if !served.checkpoints => {}
                Action::Checkpoint { commitment, slot } => {
                    self.forget_owners(commitment, slot);
                    self.checkpoint(&mut batch, commitment, slot, received)
                        .await?;
                }
            }
        }
        batch.flush(&self.context.outbox, received).await?;
        Ok(())
    }

    /// Emits events at confirmed or finalized, together with the checkpoint that follows.
    async fn emit(
        &self,
        subscriptions: &Subscriptions,
        batch: &mut OutboxBatch,
        (commitment, block, events): (Commitment, &Block, (&SlotEvents, &LastOwners)),
    ) -> Result<(), SessionEnd> {
        let idls = &self.context.idls;
        let messages = compose::events(subscriptions, idls, commitment, block, events, self.now());
        batch.messages.extend(messages);
        if commitment == Commitment::Confirmed {
            self.reinstate(subscriptions, batch, block, events).await?;
        }
        Ok(())
    }

    /// Commits what was gathered with the checkpoint that it completes.
    async fn checkpoint(
        &mut self,
        batch: &mut OutboxBatch,
        commitment: Commitment,
        slot: u64,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        if !self.has_checkpoint {
            self.report_gap(batch, received).await?;
            self.has_checkpoint = true;
        }
        if commitment == Commitment::Confirmed {
            batch.resolved.extend(self.resolve_through(slot));
        }
        batch.checkpoint = Some((commitment, slot));
        batch.flush(&self.context.outbox, received).await?;
        if commitment == Commitment::Confirmed {
            self.watermark = Some(slot);
        }
        self.reconnect.recovered();
        Ok(())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.context.outbox.clock.now())
    }
}
