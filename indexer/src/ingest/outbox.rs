//! By here leaves what is told: it is stored first, and then handed to the dispatcher of this process.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use sluice_store::{
    Commit, Commitment, NewMessage, PendingCommit, Store, StoreError, Timestamp, UnconfirmedSlot,
};
use tokio::{
    sync::{Notify, mpsc},
    try_join,
};

use crate::{
    delivery::capacity::{Places, Room},
    metrics::{Metrics, Stage},
};

/// What is to be stored together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<NewMessage>,
    pub(crate) opened: Vec<UnconfirmedSlot>,
    pub(crate) settled: Vec<u64>,
    pub(crate) checkpoint: Option<(Commitment, u64)>,
}

/// The way out.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) store: Store,
    /// Notified when messages are stored that are not handed over.
    pub(crate) stored: Arc<Notify>,
    pub(crate) room: Room,
    pub(crate) metrics: Metrics,
}

/// What a slot told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nobody anything.
    Nothing,
    /// Only messages that were not known.
    New,
    /// Some that were known.
    Again,
}

/// Messages that are stored, but perhaps not on the disk yet.
struct Waiting {
    staged: PendingCommit,
    places: Option<Places>,
    given: usize,
    commitment: Option<Commitment>,
    checkpoint: Option<Commitment>,
}

impl Outbox {
    /// Stores a batch, all of it or nothing, and hands its messages over. `received` is when the update came that they
    /// are due to.
    pub(crate) async fn send(&self, batch: Batch, received: Instant) -> Result<(), StoreError> {
        let idle = batch.messages.is_empty() && batch.settled.is_empty();
        if idle && batch.checkpoint.is_none() {
            return Ok(());
        }
        let waiting = self.stage(&batch).await?;
        self.hand_over(Some(waiting), received).await?;
        Ok(())
    }

    /// Stores messages of an open slot piece by piece: those of one are on their way while the next is written.
    pub(crate) async fn send_in_pieces(
        &self,
        open: UnconfirmedSlot,
        mut pieces: mpsc::Receiver<Vec<NewMessage>>,
        received: Instant,
    ) -> Result<Told, StoreError> {
        let (mut before, mut given, mut new) = (None, 0, 0);
        let mut opened = vec![open];
        while let Some(messages) = pieces.recv().await {
            let piece = Batch {
                messages,
                // With the first of its messages, so that they can be taken back.
                opened: std::mem::take(&mut opened),
                ..Batch::default()
            };
            given += piece.messages.len();
            let handing_over = self.hand_over(before, received);
            let (waiting, inserted) = try_join!(self.stage(&piece), handing_over)?;
            before = Some(waiting);
            new += inserted;
        }
        new += self.hand_over(before, received).await?;
        Ok(match given {
            0 => Told::Nothing,
            _ if usize::try_from(new) == Ok(given) => Told::New,
            _ => Told::Again,
        })
    }

    async fn stage(&self, batch: &Batch) -> Result<Waiting, StoreError> {
        let commit = Commit {
            messages: &batch.messages,
            checkpoint: batch.checkpoint,
            unconfirmed: &batch.opened,
            resolved: &batch.settled,
            now: Timestamp::from(SystemTime::now()),
        };
        let places = self.room.take(batch.messages.len());
        let claim = places.as_ref().map(Places::claim);
        Ok(Waiting {
            staged: self.store.commit_pending(&commit, claim).await?,
            places,
            given: batch.messages.len(),
            commitment: batch.messages.first().map(|message| message.commitment),
            checkpoint: batch.checkpoint.map(|(commitment, _)| commitment),
        })
    }

    /// Returns how many messages were new.
    async fn hand_over(
        &self,
        waiting: Option<Waiting>,
        received: Instant,
    ) -> Result<u64, StoreError> {
        let Some(waiting) = waiting else {
            return Ok(0);
        };
        let (committed, claimed) = waiting.staged.durable().await?;
        if claimed.len() < waiting.given {
            self.stored.notify_one();
        }
        if let Some(places) = waiting.places {
            self.room.hand_in(places, claimed);
        }
        if let (Some(commitment), Some(slot)) = (waiting.checkpoint, committed.checkpoint) {
            self.metrics.checkpoint(commitment, slot);
        }
        if let Some(commitment) = waiting.commitment.filter(|_| committed.inserted > 0) {
            self.metrics.took(Stage::Stored, received.elapsed());
            self.metrics.stored(commitment, committed.inserted);
        }
        Ok(committed.inserted)
    }
}
