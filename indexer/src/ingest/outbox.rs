//! Outbox: stores messages with their checkpoint, leased to this process's dispatcher.
//!
//! Many messages are committed in [`pieces`](super::pieces). What must not be seen without them, a checkpoint above all, is
//! committed with the last one. What is gathered of several slots is committed in the same way.

use std::{
    mem, panic,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use service_kit::Clock;
use sluice_store::{
    Checkpoints, Commit, Commitment, KnownAccountChanges, NewMessage, PackedMessages,
    PendingCommit, Store, StoreError, Timestamp, UnconfirmedSlots,
};
use tokio::task::JoinHandle;

use super::{pieces::Piece, settling::Settling};
use crate::{
    delivery::capacity::{self, DispatchCapacity, Reservation},
    metrics::{Metrics, Stage},
    to_lease::ToLease,
    traces::{MessageTraces, Moments, Traced},
};

/// Messages of several slots that are gathered: a commit of more costs each of them hardly less.
const MOST_GATHERED: usize = 512;

/// For how long messages of several slots are gathered: the first of them are on their way that much later, and a commit takes less
/// even on a busy machine.
const LONGEST_GATHERING: Duration = Duration::from_secs(1);

/// What is committed together, all of it or nothing.
#[derive(Debug, Default)]
pub(crate) struct OutboxBatch {
    pub(crate) messages: Vec<NewMessage>,
    /// The first of the messages, packed before their commit: of use where there are no others.
    pub(crate) packed: Option<PackedMessages>,
    /// Slots whose first messages at processed are among them. Of several slots that are gathered one may be there twice, as
    /// read by the live stream and, for a webhook that is new, by a side stream.
    pub(crate) unconfirmed: UnconfirmedSlots,
    /// Slots whose outcome is final.
    pub(crate) resolved: Vec<u64>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) known_accounts: KnownAccountChanges,
}

/// The way from the session into the store, and on to the dispatcher.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) store: Store,
    /// Told of the webhooks whose messages are stored and not submitted to the dispatcher.
    pub(crate) stored: Arc<ToLease>,
    /// Told of commits with staged messages.
    pub(crate) settling: Settling,
    pub(crate) capacity: DispatchCapacity,
    pub(crate) metrics: Metrics,
    pub(crate) traces: MessageTraces,
    pub(crate) clock: Clock,
}

/// Commits batches one after the other: one is flushed to the disk and submitted while the next is written.
pub(crate) struct CommitPipeline {
    /// What is committed next.
    pub(crate) batch: OutboxBatch,
    /// When the update came that the first of the messages are due to.
    received: Instant,
    /// The batch before, which waits for the disk and is submitted then.
    submitting: Option<JoinHandle<Result<Submitted, StoreError>>>,
    counts: Inserted,
}

/// What a pipeline was given and has stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// How many messages.
    pub(crate) given: u64,
    /// How many of them were not stored before.
    pub(crate) new: u64,
    /// Whether some of them are staged.
    pub(crate) is_staged: bool,
    /// The checkpoints.
    pub(crate) checkpoints: Checkpoints,
}

/// What became of a batch that was submitted.
#[derive(Clone, Copy, Debug, Default)]
struct Submitted {
    /// How many messages were new.
    new: u64,
    /// Whether some of them are staged.
    is_staged: bool,
}

/// A batch that is committed, but perhaps not on the disk yet.
struct PendingBatch {
    commit: PendingCommit,
    reservation: Option<Reservation>,
    /// The messages whose traces are sent.
    traced: Vec<Traced>,
    /// When the update came that they are due to.
    emitted: SystemTime,
    /// When they were written.
    written: SystemTime,
}

impl OutboxBatch {
    /// Adds the messages of a piece.
    pub(crate) fn add(&mut self, piece: Piece) {
        if self.messages.is_empty() {
            self.packed = piece.packed;
        }
        self.messages.extend(piece.messages);
    }

    fn is_empty(&self) -> bool {
        let has_rows = !self.messages.is_empty() || !self.resolved.is_empty();
        !has_rows && self.checkpoints.is_empty() && self.known_accounts.is_empty()
    }

    /// Commits what is gathered, and leaves the batch empty. `received` is when the update came that it is due to.
    pub(crate) async fn flush(
        &mut self,
        outbox: &Outbox,
        received: Instant,
    ) -> Result<(), StoreError> {
        let mut pipeline = CommitPipeline::new(received);
        pipeline.batch = mem::take(self);
        pipeline.flush(outbox).await.map(drop)
    }
}

impl Outbox {
    /// Moves a checkpoint without messages.
    pub(crate) async fn checkpoint(
        &self,
        commitment: Commitment,
        slot: u64,
    ) -> Result<(), StoreError> {
        let now = Timestamp::from(self.clock.now());
        let commit = Commit::slot(commitment, slot, &[], now);
        self.store.commit(&commit).await.map(drop)
    }

    async fn commit(
        &self,
        batch: OutboxBatch,
        received: Instant,
    ) -> Result<PendingBatch, StoreError> {
        let written = self.clock.now();
        let emitted = written.checked_sub(received.elapsed()).unwrap_or(written);
        let commit = Commit {
            messages: &batch.messages,
            packed: batch.packed.as_ref(),
            checkpoints: batch.checkpoints,
            unconfirmed: &batch.unconfirmed,
            resolved: &batch.resolved,
            known_accounts: (!batch.known_accounts.is_empty()).then_some(&batch.known_accounts),
            // From here on a message's age is that of the update: what is told of latency is told end to end.
            now: Timestamp::from(emitted),
        };
        let bytes = batch
            .messages
            .iter()
            .map(|message| message.body.len_at_most());
        let bytes = bytes.fold(0, u64::saturating_add);
        let now = Timestamp::from(written);
        let reservation = self.capacity.reserve(batch.messages.len(), bytes, now);
        let request = reservation.as_ref().map(Reservation::lease_request);
        Ok(PendingBatch {
            commit: self.store.commit_pending(&commit, request).await?,
            reservation,
            traced: self.traces.chosen(&batch.messages),
            emitted,
            written,
        })
    }

    /// Waits until a batch is on the disk, and submits its messages to the dispatcher.
    async fn submit(
        &self,
        pending: PendingBatch,
        received: Instant,
    ) -> Result<Submitted, StoreError> {
        let (committed, leased) = pending.commit.durable().await?;
        capacity::hand_over(&committed, leased, pending.reservation, &self.stored);
        if committed.is_staged {
            self.settling.staged();
        }
        for (commitment, slot) in committed.checkpoints.iter() {
            self.metrics.checkpoint(commitment, slot);
        }
        for (commitment, count) in &committed.inserted_at {
            self.metrics.stored(*commitment, *count);
        }
        let new = committed.inserted();
        if new > 0 {
            self.metrics.took(Stage::Stored, received.elapsed());
            let moments = Moments {
                emitted: pending.emitted,
                written: pending.written,
                stored: self.clock.now(),
            };
            self.traces.stored(&pending.traced, moments);
        }
        Ok(Submitted {
            new,
            is_staged: committed.is_staged,
        })
    }
}

impl CommitPipeline {
    /// A pipeline for what is due to an update that came at `received`.
    pub(crate) fn new(received: Instant) -> Self {
        Self {
            batch: OutboxBatch::default(),
            received,
            submitting: None,
            counts: Inserted::default(),
        }
    }

    /// Whether so much is gathered, or for so long, that more is not waited for.
    pub(crate) fn is_full(&self) -> bool {
        let messages = self.batch.messages.len();
        messages >= MOST_GATHERED || self.received.elapsed() >= LONGEST_GATHERING
    }

    /// Commits the batch, and leaves it empty, while the one before is submitted.
    pub(crate) async fn commit(&mut self, outbox: &Outbox) -> Result<(), StoreError> {
        let batch = mem::take(&mut self.batch);
        let given = u64::try_from(batch.messages.len()).unwrap_or(u64::MAX);
        let checkpoints = batch.checkpoints;
        let pending = outbox.commit(batch, self.received).await;
        // What is stored is sent, also where the next batch cannot be stored.
        self.submit().await?;
        let (pending, outbox, received) = (pending?, outbox.clone(), self.received);
        // On a task of its own: a part of a commit is work that nothing else of this task is done beside.
        let submitting = async move { outbox.submit(pending, received).await };
        self.submitting = Some(tokio::spawn(submitting));
        self.counts.given = self.counts.given.saturating_add(given);
        for (commitment, slot) in checkpoints.iter() {
            self.counts.checkpoints.advance(commitment, slot);
        }
        Ok(())
    }

    /// Commits the batch, unless it is empty, and waits until everything is on the disk and submitted.
    pub(crate) async fn flush(&mut self, outbox: &Outbox) -> Result<Inserted, StoreError> {
        if !self.batch.is_empty() {
            self.commit(outbox).await?;
        }
        self.submit().await?;
        Ok(mem::take(&mut self.counts))
    }

    /// Waits until what is committed is on the disk and submitted.
    pub(crate) async fn submit(&mut self) -> Result<(), StoreError> {
        let Some(submitting) = self.submitting.take() else {
            return Ok(());
        };
        let submitted = match submitting.await {
            Ok(submitted) => submitted?,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => Submitted::default(),
        };
        self.counts.new = self.counts.new.saturating_add(submitted.new);
        self.counts.is_staged |= submitted.is_staged;
        Ok(())
    }
}
