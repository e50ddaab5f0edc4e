//! Gathering: several slots in one commit, while a session is behind the stream.

use std::{mem, time::Instant};

use sluice_store::Commitment;

use super::{super::outbox::CommitPipeline, Session, SessionEnd};

/// What is gathered, and whether more is.
#[derive(Default)]
pub(super) struct Gathering {
    /// Whether more slots wait than are done one by one.
    is_behind: bool,
    /// What is not stored yet; all that is committed of it is submitted.
    pipeline: Option<CommitPipeline>,
    /// Slots emitted at processed whose messages may not be stored yet.
    emitted: Vec<EmittedSlot>,
}

/// A slot that was emitted at processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmittedSlot {
    pub(super) slot: u64,
    /// Whether nothing of it was emitted before in this session.
    pub(super) is_first: bool,
}

impl Gathering {
    pub(super) fn emitted(&mut self, slot: u64, is_first: bool) {
        self.emitted.push(EmittedSlot { slot, is_first });
    }
}

impl Session<'_> {
    /// Whether the next slots are gathered: more of them wait than are done one by one. The first of these that is not gathered
    /// any more stores what is.
    pub(in super::super) const fn set_behind(&mut self, is_behind: bool) {
        self.gathering.is_behind = is_behind;
    }

    /// Stores what is gathered.
    pub(super) async fn store_gathered(&mut self) -> Result<(), SessionEnd> {
        match self.gathering.pipeline.take() {
            Some(mut pipeline) => self.store(&mut pipeline).await,
            None => Ok(()),
        }
    }

    /// Whether slots are gathered. The first checkpoint of a session counts on nothing being stored before it.
    pub(super) const fn gathers(&self) -> bool {
        self.gathering.is_behind && self.has_checkpoint
    }

    /// Whether what a pipeline holds is kept for more.
    pub(super) fn keeps(&self, pipeline: &CommitPipeline) -> bool {
        self.gathers() && !pipeline.is_full()
    }

    /// What is gathered so far; `received` is when the update came that the next messages are due to.
    pub(super) fn gathered(&mut self, received: Instant) -> CommitPipeline {
        let gathered = self.gathering.pipeline.take();
        gathered.unwrap_or_else(|| CommitPipeline::new(received))
    }

    /// Keeps what is gathered until there is more of it, or stores it.
    pub(super) async fn gather(&mut self, mut pipeline: CommitPipeline) -> Result<(), SessionEnd> {
        if self.keeps(&pipeline) {
            pipeline.submit().await?;
            self.gathering.pipeline = Some(pipeline);
            return Ok(());
        }
        self.store(&mut pipeline).await
    }

    /// Waits until everything in a pipeline is on the disk and submitted, and does what waited for that.
    pub(super) async fn store(&mut self, pipeline: &mut CommitPipeline) -> Result<(), SessionEnd> {
        let stored = pipeline.flush(&self.context.outbox).await?;
        let emitted = mem::take(&mut self.gathering.emitted);
        self.stored_processed(emitted, stored);
        if let Some(confirmed) = stored.checkpoints.slot(Commitment::Confirmed) {
            self.watermark = Some(confirmed);
            if stored.new > 0 {
                self.stages = stored.is_staged;
            }
        }
        let finality_wanted = !self.subscriptions.at(Commitment::Finalized).is_empty();
        let status = &self.context.status;
        status.stored(&stored.checkpoints, finality_wanted);
        if !stored.checkpoints.is_empty() {
            self.reconnect.recovered();
        }
        Ok(())
    }
}
