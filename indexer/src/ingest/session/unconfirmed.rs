//! Unconfirmed slots of a session: emitted at processed, retracted, reinstated when confirmed after all.

use std::{
    collections::{BTreeSet, HashSet},
    mem,
};

use sluice_store::{Commitment, MessageId, MessageKind, StoreError};

use super::{
    super::outbox::{CommitPipeline, Inserted},
    OutboxBatch, Served, Session, SessionEnd,
    composing::Emission,
    gathering::EmittedSlot,
};
use crate::{
    events::{compose, subscription_index::Subscriptions},
    slots::RetractReason,
};

impl Session<'_> {
    /// Emits the events of a slot that is sealed. Nothing else is in the pipeline, unless slots are gathered.
    pub(super) async fn emit_processed(
        &mut self,
        served: Served<'_>,
        pipeline: &mut CommitPipeline,
        emission: &Emission,
    ) -> Result<(), SessionEnd> {
        let (subscriptions, block) = (served.subscriptions, &emission.block);
        if subscriptions.at(Commitment::Processed).is_empty() || emission.events.is_empty() {
            return Ok(());
        }
        let slot = block.slot;
        // Stored with the first of its messages, so that they can be retracted. What a side stream reads again may be
        // confirmed, and nothing would ever resolve it.
        let confirmed = Some(slot) <= self.tree.watermark(Commitment::Confirmed);
        let may_be_retracted = served.checkpoints || !confirmed;
        let mut unconfirmed = may_be_retracted.then(|| (slot, Some(block.hash.clone())));
        let mut is_empty = true;
        let mut composing = self.compose(subscriptions, emission);
        while let Some(piece) = composing.next().await {
            is_empty = false;
            let is_last = piece.is_last;
            pipeline.batch.add(piece);
            pipeline.batch.unconfirmed.extend(unconfirmed.take());
            if !is_last {
                pipeline.commit(&self.context.outbox).await?;
            }
        }
        if may_be_retracted && !is_empty {
            let is_first = self.unconfirmed.insert(slot);
            self.gathering.emitted(slot, is_first);
        }
        if self.gathers() {
            return Ok(());
        }
        self.store(pipeline).await
    }

    /// Takes note that slots were stored that were emitted at processed, and how many messages were stored with them.
    pub(super) fn stored_processed(&mut self, emitted: Vec<EmittedSlot>, inserted: Inserted) {
        for EmittedSlot { slot, is_first } in emitted {
            if inserted.given > inserted.new {
                // Some were stored before, by another connection or an earlier session, which may have retracted them.
                self.never_retracted.remove(&slot);
            } else if is_first && !self.retracted.contains(&slot) {
                self.never_retracted.insert(slot);
            }
        }
    }

    /// Retracts what was emitted of a slot, at each commitment up to `highest`.
    pub(super) async fn retract(
        &mut self,
        batch: &mut OutboxBatch,
        slot: u64,
        reason: RetractReason,
        highest: Commitment,
    ) -> Result<(), StoreError> {
        self.never_retracted.remove(&slot);
        self.retracted.insert(slot);
        if !self.unconfirmed.remove(&slot) && highest == Commitment::Processed {
            return Ok(());
        }
        tracing::info!(slot, reason = reason.name(), %highest, "events are retracted");
        for commitment in Commitment::ALL.into_iter().filter(|each| *each <= highest) {
            let of_slot = self.context.outbox.store.messages_of_slot(slot, commitment);
            let emitted = of_slot.await?;
            let retractions =
                compose::retractions(&emitted, (slot, commitment), reason, self.now());
            batch.messages.extend(retractions);
        }
        batch.resolved.push(slot);
        Ok(())
    }

    /// Emits again, under other ids, what was retracted of a block that is confirmed now. Not before it is
    /// confirmed, because a server that replays streams dead banks once more, as live ones.
    pub(super) async fn reinstate(
        &self,
        subscriptions: &Subscriptions,
        batch: &mut OutboxBatch,
        emission: &Emission,
    ) -> Result<(), StoreError> {
        let (block, events) = (&*emission.block, &*emission.events);
        let idls = self.context.idls.borrow().clone();
        let idls = &*idls;
        let nothing_emitted = subscriptions.at(Commitment::Processed).is_empty();
        let stands = self.never_retracted.contains(&block.slot);
        if nothing_emitted || stands || events.is_empty() {
            return Ok(());
        }
        let store = &self.context.outbox.store;
        let of_slot = store.messages_of_slot(block.slot, Commitment::Processed);
        let retractions: HashSet<MessageId> = of_slot
            .await?
            .into_iter()
            .filter(|message| message.kind == MessageKind::Reverted)
            .map(|message| message.id)
            .collect();
        if !retractions.is_empty() {
            let (now, events) = (self.now(), (events, &*emission.last_owners));
            let reinstated =
                compose::reinstated(subscriptions, idls, block, events, now, &retractions);
            batch.messages.extend(reinstated);
        }
        Ok(())
    }

    /// The slots that a confirmed checkpoint resolves; they are unconfirmed no more.
    pub(super) fn resolve_through(&mut self, checkpoint: u64) -> BTreeSet<u64> {
        // Events of the checkpoint's own slot may still come, and need to be known as never retracted.
        self.never_retracted = self.never_retracted.split_off(&checkpoint);
        self.retracted = self.retracted.split_off(&checkpoint);
        let later = self.unconfirmed.split_off(&checkpoint.saturating_add(1));
        mem::replace(&mut self.unconfirmed, later)
    }
}
