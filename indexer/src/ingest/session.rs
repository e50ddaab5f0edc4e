//! Session: turns the updates of one stream connection into outbox commits.
//!
//! Messages are gathered in a batch that a checkpoint completes. Two actions cannot wait for it: an emission at
//! processed, whose receivers are in a hurry, and a retraction, which reads from the store what was emitted. Both
//! flush the batch first.

mod gap;
mod hand_over;
mod in_force;
mod unconfirmed;

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use sluice_geyser::{Body, SlotStatus, Update};
use sluice_store::{Commitment, Revision, Timestamp};

use super::{
    filter_round::FilterRound,
    outbox::{Outbox, OutboxBatch},
    reconnect::Reconnect,
    session_end::SessionEnd,
    subscription::revision_in_force,
};
use crate::{
    events::{
        compose, idl::Idls, program_events::logs_truncated, subscription_index::Subscriptions,
    },
    slots::{Action, Block, ForkTree, ResumePoint, SlotEvents},
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
    /// The newest slot that any update was about.
    newest: u64,
    /// The slots that have begun and are not confirmed.
    begun: BTreeSet<u64>,
    /// The slot up to which everything confirmed is stored under this session's filter.
    watermark: Option<u64>,
    /// Whether a checkpoint was stored: the first one also reports the gap before it.
    has_checkpoint: bool,
    /// The revision whose filter is in force.
    in_force: Option<Revision>,
    /// The change of the filter under way.
    round: Option<FilterRound>,
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
            subscriptions,
            tree: ForkTree::new(&resume),
            unconfirmed: resume.unconfirmed.keys().copied().collect(),
            never_retracted: BTreeSet::new(),
            retracted: BTreeSet::new(),
            resume,
            newest: 0,
            begun: BTreeSet::new(),
            watermark: None,
            has_checkpoint: false,
            in_force: None,
            round: None,
        }
    }

    /// The webhooks that the live stream serves.
    pub(super) const fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// Does what follows from an update of the live stream.
    pub(super) async fn apply(&mut self, update: Update) -> Result<(), SessionEnd> {
        let received = Instant::now();
        self.context.outbox.metrics.update();
        let shown = revision_in_force(&update);
        let status = match &update.body {
            Body::Slot(slot) => {
                self.newest = self.newest.max(slot.slot);
                self.context.status.saw_slot(slot.slot, received);
                self.context.outbox.metrics.slot_seen(slot.slot);
                Some((slot.slot, slot.status))
            }
            Body::Transaction(transaction) if logs_truncated(transaction) => {
                self.context.outbox.metrics.logs_truncated();
                None
            }
            _ => None,
        };
        if let Some(revision) = shown {
            self.shown_by(revision, status);
        }
        let actions = self.tree.take(update)?;
        let subscriptions = Arc::clone(&self.subscriptions);
        let live = Served {
            subscriptions: &subscriptions,
            checkpoints: true,
        };
        self.perform(live, actions, received).await?;
        self.record_in_force(shown, status).await?;
        if let Some((slot, status)) = status {
            self.note_begun(slot, status);
        }
        if self.round.is_some() {
            self.advance_side(received).await?;
        }
        Ok(())
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
                    self.emit_processed(served, block, events, received).await?;
                }
                Action::Emit {
                    commitment,
                    block,
                    events,
                } => {
                    let emission = (commitment, &*block, &*events);
                    self.emit(served.subscriptions, &mut batch, emission)
                        .await?;
                }
                Action::Retract {
                    slot,
                    reason,
                    emitted,
                } => {
                    // What is retracted may be in the batch. And when the slot is confirmed after all, the retraction
                    // is read from the store, too.
                    batch.flush(&self.context.outbox, received).await?;
                    self.retract(&mut batch, slot, reason, emitted).await?;
                    batch.flush(&self.context.outbox, received).await?;
                }
                Action::Checkpoint { .. } if !served.checkpoints => {}
                Action::Checkpoint { commitment, slot } => {
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
        (commitment, block, events): (Commitment, &Block, &SlotEvents),
    ) -> Result<(), SessionEnd> {
        let idls = &self.context.idls;
        let messages = compose::events(subscriptions, idls, commitment, block, events, self.now());
        batch.messages.extend(messages);
        if commitment == Commitment::Confirmed {
            self.reinstate(subscriptions, batch, block, events).await?;
        }
        Ok(())
    }

    /// Takes note of a slot that has begun, dies or is confirmed.
    fn note_begun(&mut self, slot: u64, status: SlotStatus) {
        match status {
            // Nothing is executed before the bank is created.
            SlotStatus::FirstShredReceived => {}
            SlotStatus::Dead => {
                self.begun.remove(&slot);
                if let Some(round) = &mut self.round {
                    round.dead(slot);
                }
            }
            _ => {
                self.begun.insert(slot);
            }
        }
        if let Some(confirmed) = self.tree.watermark(Commitment::Confirmed) {
            self.begun = self.begun.split_off(&confirmed.saturating_add(1));
        }
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
            self.report_gap(batch).await?;
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
