//! Unconfirmed slots of a session: emitted at processed, retracted, reinstated when confirmed after all.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Instant,
};

use sluice_store::{Commitment, MessageId, MessageKind, StoreError, UnconfirmedSlot};
use tokio::sync::mpsc;

use super::{super::outbox::Inserted, OutboxBatch, Served, Session, SessionEnd};
use crate::{
    events::{compose, subscription_index::Subscriptions},
    slots::{Block, LastOwners, RetractReason, SlotEvents},
};

/// Messages of a slot at processed that are committed together. Fewer cost more each, more come later on their way.
const MESSAGES_PER_COMMIT: usize = 64;

impl Session<'_> {
    /// Emits the events of a slot that is sealed. Those who asked for that wait for it: while some messages are
    /// committed, the next are composed.
    pub(super) async fn emit_processed(
        &mut self,
        served: Served<'_>,
        block: Arc<Block>,
        (events, last_owners): (Arc<SlotEvents>, LastOwners),
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let subscriptions = served.subscriptions;
        if subscriptions.at(Commitment::Processed).is_empty() || events.is_empty() {
            return Ok(());
        }
        let slot = block.slot;
        // Stored with the first of its messages, so that they can be retracted. What a side stream reads again may be
        // confirmed, and nothing would ever resolve it.
        let confirmed = Some(slot) <= self.tree.watermark(Commitment::Confirmed);
        let may_be_retracted = served.checkpoints || !confirmed;
        let unconfirmed = may_be_retracted.then(|| UnconfirmedSlot {
            slot,
            blockhash: Some(block.hash.clone()),
        });
        let mut unconfirmed: Vec<_> = unconfirmed.into_iter().collect();
        let (subscriptions, idls) = (Arc::clone(subscriptions), Arc::clone(&self.context.idls));
        let now = self.now();
        let (sender, mut composed) = mpsc::channel(1);
        let composing = tokio::spawn(async move {
            const COMMITMENT: Commitment = Commitment::Processed;
            let events = (&*events, &last_owners);
            let mut messages =
                compose::events(&subscriptions, &idls, COMMITMENT, &block, events, now);
            loop {
                let some: Vec<_> = messages.by_ref().take(MESSAGES_PER_COMMIT).collect();
                // Not received when the session is over.
                if some.is_empty() || sender.send(some).await.is_err() {
                    return;
                }
            }
        });
        let mut pipeline = self.context.outbox.pipeline(received);
        while let Some(messages) = composed.recv().await {
            let batch = OutboxBatch {
                messages,
                unconfirmed: std::mem::take(&mut unconfirmed),
                ..OutboxBatch::default()
            };
            pipeline.push(batch).await?;
        }
        let inserted = pipeline.finish().await?;
        if may_be_retracted {
            self.emitted(slot, inserted);
        }
        match composing.await {
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => Ok(()),
        }
    }

    fn emitted(&mut self, slot: u64, inserted: Inserted) {
        if inserted.given == 0 {
            return;
        }
        let first = self.unconfirmed.insert(slot);
        if inserted.given > inserted.new {
            // Some were stored before, by another connection or an earlier session, which may have retracted them.
            self.never_retracted.remove(&slot);
        } else if first && !self.retracted.contains(&slot) {
            self.never_retracted.insert(slot);
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
        block: &Block,
        events: (&SlotEvents, &LastOwners),
    ) -> Result<(), StoreError> {
        let idls = &self.context.idls;
        let nothing_emitted = subscriptions.at(Commitment::Processed).is_empty();
        let stands = self.never_retracted.contains(&block.slot);
        if nothing_emitted || stands || events.0.is_empty() {
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
            let now = self.now();
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
        std::mem::replace(&mut self.unconfirmed, later)
    }
}
