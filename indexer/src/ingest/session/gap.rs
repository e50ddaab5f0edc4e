//! Gap of a session: the slots since the checkpoint that no server replays, reported to all webhooks.

use std::sync::Arc;

use sluice_store::{Commitment, EventKind, OperationKind};

use super::{super::outbox::CommitPipeline, Session, SessionEnd};
use crate::{
    events::{compose, lost::Lost, operations, subscription_index::Subscriptions},
    slots::{Gap, ResumePoint},
};

impl Session<'_> {
    /// Where it began.
    pub(in super::super) const fn resume(&self) -> &ResumePoint {
        &self.resume
    }

    /// The webhooks that it serves.
    pub(in super::super) fn served(&self) -> Arc<Subscriptions> {
        Arc::clone(&self.subscriptions)
    }

    /// Reports the slots of which nothing was emitted: those since the checkpoint, of a session that could not start
    /// there, or those that the server leaves out. They are stored together with the checkpoint that passes them.
    pub(super) async fn report_gap(&self, pipeline: &mut CommitPipeline) -> Result<(), SessionEnd> {
        let now = self.now();
        for commitment in Commitment::ALL {
            let Some(gap) = self.gap(commitment) else {
                continue;
            };
            tracing::error!(
                first = gap.first,
                last = gap.last,
                %commitment,
                "slots were not read completely and cannot be replayed any more: their events are lost"
            );
            if commitment == Commitment::Confirmed {
                self.context.outbox.metrics.gap(gap.slots());
            }
            let lost = Lost::of(EventKind::ALL.into_iter().collect());
            let mut messages = compose::gap(&self.subscriptions, commitment, gap, &lost, now);
            let store = &self.context.outbox.store;
            let recipients = store.operation_recipients(OperationKind::Gap).await?;
            let of_gap = (commitment, gap, &lost);
            messages.extend(operations::gaps(
                &self.subscriptions,
                &recipients,
                of_gap,
                now,
            ));
            // Before what is emitted of the slots after it.
            pipeline.batch.messages.splice(0..0, messages);
        }
        if let Some(gap) = self.gap(Commitment::Finalized) {
            // So that a reconnect before the next finality does not ask for them again. No checkpoint passes a gap that is
            // not stored.
            let outbox = &self.context.outbox;
            pipeline.flush(outbox).await?;
            outbox.checkpoint(Commitment::Finalized, gap.last).await?;
        }
        Ok(())
    }

    /// The slots that are lost at a commitment.
    fn gap(&self, commitment: Commitment) -> Option<Gap> {
        if self.resume.complete {
            return self.resume.gap;
        }
        let confirmed = self.resume.confirmed_checkpoint;
        let checkpoint = match commitment {
            Commitment::Finalized => self.resume.finalized_checkpoint.or(confirmed),
            _ => confirmed,
        }?;
        let last = self.tree.floor()?;
        let first = checkpoint.saturating_add(1);
        (first <= last).then_some(Gap { first, last })
    }
}
