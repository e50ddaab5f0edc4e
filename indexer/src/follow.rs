//! Reading the chain: from the stream, by way of the slot buffer, into the store.
//!
//! A session is one connection. It starts at the slot after the checkpoint and ends with the first
//! fault, of the stream or of the database; then the next one starts from the checkpoint again. What a
//! session held in memory is not needed: it is streamed again, and messages that were stored already
//! are known by their ids.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use service_kit::{Backoff, CancellationToken};
use sluice_geyser::{Body, Endpoint, SlotStatus, SlotUpdate, Stream, StreamError, Update};
use sluice_store::{FilterState, Revision, Store, StoreError, Timestamp};
use thiserror::Error;
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

use crate::{
    incident::Incident,
    project::{BufferFull, SlotBuffer},
    status::Status,
    subscribe::{proved_revision, request},
    webhooks::{compose, match_event::Subscriptions},
};

/// Why a session ended.
#[derive(Debug, Error)]
enum SessionEnd {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Buffer(#[from] BufferFull),
    #[error("nobody watches the webhooks any more")]
    Unwatched,
}

impl SessionEnd {
    /// The kind of fault, for the log.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Stream(StreamError::Refused(_)) => "the stream refuses the subscription",
            Self::Stream(StreamError::ReplayUnavailable { .. }) => {
                "slots can no longer be replayed"
            }
            Self::Stream(_) => "the stream is lost",
            Self::Store(_) => "the database does not take what was read",
            Self::Buffer(_) => "slots are not confirmed",
            Self::Unwatched => "the webhooks are not watched",
        }
    }
}

/// How often a server may refuse to replay without saying from where it could, before the missing slots
/// are given up. A node that has just started refuses so until it has caught up; with the pauses between
/// attempts this gives it about five seconds, which a server that never replays costs at every reconnect.
const UNEXPLAINED_REFUSALS: u32 = 6;

/// Where a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// After the last slot that was stored.
    Checkpoint {
        /// How often this was refused in a row without a reason that helps.
        refusals: u32,
    },
    /// At the first slot the server can still replay. Slots are missing.
    FirstAvailable(u64),
    /// With whatever comes next. Slots may be missing.
    Tip,
}

impl Start {
    const CHECKPOINT: Self = Self::Checkpoint { refusals: 0 };

    /// Where to start after a session that started here ended with `end`. A server that cannot even
    /// replay the slot it named itself is not asked to replay again.
    fn after(self, end: &SessionEnd) -> Self {
        let SessionEnd::Stream(StreamError::ReplayUnavailable {
            first_available, ..
        }) = end
        else {
            // Slots were stored, or another start would not have changed anything.
            return Self::CHECKPOINT;
        };
        match (self, first_available) {
            (Self::Checkpoint { .. }, Some(slot)) => Self::FirstAvailable(*slot),
            (Self::Checkpoint { refusals }, None) if refusals < UNEXPLAINED_REFUSALS => {
                Self::Checkpoint {
                    refusals: refusals.saturating_add(1),
                }
            }
            _ => Self::Tip,
        }
    }
}

/// The task that follows the chain.
#[derive(Debug)]
pub struct Follower {
    /// The stream's server.
    pub endpoint: Endpoint,
    /// Where messages and the checkpoint go.
    pub store: Store,
    /// The live webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// Told what is seen.
    pub status: Status,
    /// Notified when new messages are stored.
    pub stored: Arc<Notify>,
}

impl Follower {
    /// Follows the chain until `shutdown`, through every outage.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut health = Health {
            incident: Incident::new("following the chain"),
            backoff: Backoff::new(),
        };
        let mut start = Start::CHECKPOINT;
        loop {
            // Stopping in the middle of anything is harmless: what is not committed is read again.
            let end = tokio::select! {
                () = shutdown.cancelled() => return,
                end = self.session(start, &mut health) => match end {
                    Err(end) => end,
                    Ok(never) => match never {},
                },
            };
            self.status.disconnected(end.to_string());
            health.incident.failed(end.kind(), &end);
            start = start.after(&end);
            let pause = health.backoff.next_pause(rand::random());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    async fn session(
        &mut self,
        start: Start,
        health: &mut Health,
    ) -> Result<std::convert::Infallible, SessionEnd> {
        let checkpoint = self.store.checkpoint().await?;
        let subscriptions = Arc::clone(&self.subscriptions.borrow_and_update());
        let from_slot = match start {
            Start::Checkpoint { .. } => checkpoint.map(|slot| slot.saturating_add(1)),
            Start::FirstAvailable(slot) => Some(slot),
            Start::Tip => None,
        };
        let mut stream = Stream::open(&self.endpoint, request(&subscriptions, from_slot)).await?;
        let mut session = Session {
            store: &self.store,
            status: &self.status,
            stored: &self.stored,
            health,
            subscriptions,
            buffer: SlotBuffer::default(),
            checkpoint,
            start,
            settled_any: false,
            proved: None,
        };
        // Servers keep only the newest of the requests they have not looked at yet. A filter change sent
        // right after the first request could make them forget its `from_slot`, so the first update is
        // awaited: it shows that the first request was looked at.
        let first = stream.next().await?;
        self.status.connected();
        tracing::info!(from_slot, "the stream is open");
        session.apply(first).await?;
        loop {
            tokio::select! {
                update = stream.next() => session.apply(update?).await?,
                changed = self.subscriptions.changed() => {
                    changed.map_err(|_| SessionEnd::Unwatched)?;
                    session.subscriptions = Arc::clone(&self.subscriptions.borrow_and_update());
                    stream.replace(request(&session.subscriptions, None)).await?;
                }
            }
        }
    }
}

/// What outlives a session.
struct Health {
    incident: Incident,
    backoff: Backoff,
}

struct Session<'a> {
    store: &'a Store,
    status: &'a Status,
    stored: &'a Notify,
    health: &'a mut Health,
    subscriptions: Arc<Subscriptions>,
    buffer: SlotBuffer,
    checkpoint: Option<u64>,
    start: Start,
    settled_any: bool,
    proved: Option<Revision>,
}

impl Session<'_> {
    async fn apply(&mut self, update: Update) -> Result<(), SessionEnd> {
        let proved = proved_revision(&update);
        match update.body {
            // What the validator read from its snapshot at start-up did not happen now.
            Body::Account(account) if account.is_startup => {}
            Body::Account(account) => self.buffer.account(account)?,
            Body::Transaction(transaction) => self.buffer.transaction(*transaction)?,
            Body::BlockMeta(block) => self.buffer.block_meta(block.slot, block.block_time),
            Body::Slot(slot) => self.slot(&slot, proved).await?,
        }
        Ok(())
    }

    async fn slot(
        &mut self,
        update: &SlotUpdate,
        proved: Option<Revision>,
    ) -> Result<(), SessionEnd> {
        self.status.saw_slot(update.slot, Instant::now());
        match update.status {
            SlotStatus::Confirmed => {
                self.settle(update.slot).await?;
                self.prove(update.slot, proved).await
            }
            // Only matters where a confirmation was left out.
            SlotStatus::Finalized => self.settle(update.slot).await,
            SlotStatus::Dead => {
                self.buffer.discard(update.slot);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stores what is settled now that `slot` is.
    async fn settle(&mut self, slot: u64) -> Result<(), SessionEnd> {
        let settled = self.buffer.take_settled(slot);
        if settled.is_empty() && self.checkpoint.is_some_and(|checkpoint| checkpoint >= slot) {
            return Ok(());
        }
        let first = settled.first().map_or(slot, |(first, _)| *first);
        self.report_gap(first);
        let now = Timestamp::from(SystemTime::now());
        let messages: Vec<_> = settled
            .iter()
            .flat_map(|(slot, content)| compose::messages(&self.subscriptions, *slot, content, now))
            .collect();
        let committed = self.store.commit_slot(slot, &messages, now).await?;
        self.checkpoint = Some(committed.checkpoint);
        if committed.inserted > 0 {
            tracing::debug!(slot, messages = committed.inserted, "stored");
            self.stored.notify_one();
        }
        self.health.incident.recovered();
        self.health.backoff.reset();
        Ok(())
    }

    /// Says once, at the first slot of a session that could not start where the last one ended, which
    /// slots nobody was told about.
    fn report_gap(&mut self, first: u64) {
        if std::mem::replace(&mut self.settled_any, true) {
            return;
        }
        let Some(checkpoint) = self.checkpoint else {
            return;
        };
        if first <= checkpoint {
            tracing::warn!(
                first,
                checkpoint,
                "the stream is behind the checkpoint; is it another chain?"
            );
            return;
        }
        let last_missing = match self.start {
            Start::Checkpoint { .. } => return,
            Start::FirstAvailable(_) => first.saturating_sub(1),
            // The connection may have begun in the middle of this slot's content.
            Start::Tip => first,
        };
        let first_missing = checkpoint.saturating_add(1);
        if first_missing <= last_missing {
            tracing::error!(
                first_missing,
                last_missing,
                "slots were not read completely and cannot be replayed any more: their events are lost"
            );
        }
    }

    /// Records that the filter of `proved` is in force. The proof came with the confirmation of `slot`,
    /// which follows that slot's content, so the first slot that passed the filter whole is the next.
    async fn prove(&mut self, slot: u64, proved: Option<Revision>) -> Result<(), SessionEnd> {
        let Some(revision) = proved.filter(|revision| self.proved != Some(*revision)) else {
            return Ok(());
        };
        let since_slot = slot.saturating_add(1);
        self.store
            .record_filter_state(FilterState {
                revision,
                since_slot,
            })
            .await?;
        self.proved = Some(revision);
        tracing::info!(
            revision = revision.0,
            since_slot,
            "the stream's filter is in force"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(first_available: Option<u64>) -> SessionEnd {
        SessionEnd::Stream(StreamError::ReplayUnavailable {
            first_available,
            message: String::new(),
        })
    }

    #[test]
    fn a_lost_replay_window_leads_to_what_is_left_of_it_and_then_to_the_tip() {
        let rest = Start::CHECKPOINT.after(&gone(Some(9)));
        assert_eq!(rest, Start::FirstAvailable(9));
        assert_eq!(rest.after(&gone(Some(11))), Start::Tip);
        let closed = SessionEnd::Stream(StreamError::Closed);
        assert_eq!(rest.after(&closed), Start::CHECKPOINT);
        assert_eq!(Start::Tip.after(&closed), Start::CHECKPOINT);
    }

    #[test]
    fn a_server_that_may_only_be_starting_is_asked_again_before_slots_are_given_up() {
        let mut start = Start::CHECKPOINT;
        for _ in 0..UNEXPLAINED_REFUSALS {
            start = start.after(&gone(None));
            assert!(matches!(start, Start::Checkpoint { .. }), "{start:?}");
        }
        assert_eq!(start.after(&gone(None)), Start::Tip);
        let closed = SessionEnd::Stream(StreamError::Closed);
        assert_eq!(
            start.after(&closed),
            Start::CHECKPOINT,
            "the count starts anew"
        );
    }
}
