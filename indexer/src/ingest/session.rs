//! Session: turns the updates of one stream connection into outbox commits.
//!
//! Messages are gathered in a batch that a checkpoint completes. Two actions cannot wait for it: an emission at
//! processed, whose receivers are in a hurry, and a retraction, which reads from the store what was emitted. Both
//! flush the batch first.

mod gap;
mod in_force;
mod unconfirmed;

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use sluice_geyser::{Body, Update};
use sluice_store::{Commitment, Revision, Timestamp};

use super::{
    outbox::{Outbox, OutboxBatch},
    reconnect::Reconnect,
    session_end::SessionEnd,
    subscription::revision_in_force,
};
use crate::{
    events::{
        compose, idl::Idls, program_events::logs_truncated, subscription_index::Subscriptions,
    },
    slots::{Action, Block, ForkTree, ResumePoint, SlotEvent, SlotEvents},
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
    /// The newest slot that any update was about.
    newest: u64,
    /// The slot up to which everything confirmed is stored under this session's filter.
    watermark: Option<u64>,
    /// Whether a checkpoint was stored: the first one also reports the gap before it.
    has_checkpoint: bool,
    /// The revision whose filter is in force.
    in_force: Option<Revision>,
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
            resume,
            newest: 0,
            watermark: None,
            has_checkpoint: false,
            in_force: None,
        }
    }

    /// The webhooks that this session serves.
    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Serves fewer from now on.
    pub(super) fn narrow(&mut self, subscriptions: Arc<Subscriptions>) {
        self.subscriptions = subscriptions;
    }

    /// Does what follows from an update.
    pub(super) async fn apply(&mut self, update: Update) -> Result<(), SessionEnd> {
        let received = Instant::now();
        self.context.outbox.metrics.update();
        let shown = revision_in_force(&update);
        let actions = match update.body {
            // What the validator read from its snapshot at start-up did not happen now.
            Body::Account(account) if account.is_startup => Vec::new(),
            Body::Account(account) => self.tree.event(account.slot, SlotEvent::Account(account))?,
            Body::Transaction(transaction) => {
                if logs_truncated(&transaction) {
                    self.context.outbox.metrics.logs_truncated();
                }
                self.tree
                    .event(transaction.slot, SlotEvent::Transaction(transaction))?
            }
            Body::BlockMeta(block) => self.tree.block(block)?,
            Body::Slot(slot) => {
                self.newest = self.newest.max(slot.slot);
                self.context.status.saw_slot(slot.slot, received);
                self.context.outbox.metrics.slot_seen(slot.slot);
                self.tree.status(&slot)?
            }
        };
        self.perform(actions, received).await?;
        self.record_in_force(shown).await
    }

    async fn perform(&mut self, actions: Vec<Action>, received: Instant) -> Result<(), SessionEnd> {
        let mut batch = OutboxBatch::default();
        for action in actions {
            match action {
                Action::Emit {
                    commitment: Commitment::Processed,
                    block,
                    events,
                } => {
                    batch.flush(&self.context.outbox, received).await?;
                    self.emit_processed(block, events, received).await?;
                }
                Action::Emit {
                    commitment,
                    block,
                    events,
                } => self.emit(&mut batch, commitment, &block, &events).await?,
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
        batch: &mut OutboxBatch,
        commitment: Commitment,
        block: &Block,
        events: &SlotEvents,
    ) -> Result<(), SessionEnd> {
        let (subscriptions, idls) = (&self.subscriptions, &self.context.idls);
        let messages = compose::events(subscriptions, idls, commitment, block, events, self.now());
        batch.messages.extend(messages);
        if commitment == Commitment::Confirmed {
            self.reinstate(batch, block, events).await?;
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
