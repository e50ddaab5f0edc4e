//! Reading the chain: from the stream, by way of the slot tree, into the store.
//!
//! A session is one connection. It starts at the slot after the checkpoint and ends with the first
//! fault, of the stream or of the database; then the next one starts from the checkpoint again. What a
//! session held in memory is not needed: it is streamed again, and messages that were stored already
//! are known by their ids.
//!
//! A session also ends when webhooks come to watch more than it streams. The next one starts at the slot at
//! which the first of them was written, under the new filter, so that none misses anything.

use std::{sync::Arc, time::Duration};

use service_kit::{Backoff, CancellationToken, OutageLog};
use sluice_geyser::{Endpoint, Stream, StreamError};
use sluice_store::{Commitment, Revision, StoreError, UnconfirmedSlot};
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    outbox::Outbox,
    session::{Origin, Session},
    subscription::request,
};
use crate::{
    events::{idl::Idls, subscription_index::Subscriptions},
    slots::fork_tree::TreeFault,
    status::Status,
};

/// Shortest life of a session that ends because webhooks watch more: many that are written one after the
/// other share one.
const SHORTEST_SESSION: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Debug, Error)]
pub(crate) enum SessionEnd {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tree(#[from] TreeFault),
    #[error("the webhooks watch more than is streamed")]
    FilterGrew,
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
            Self::Tree(TreeFault::Full { .. }) => "slots are not settled",
            Self::Tree(TreeFault::Hole { .. }) => "the stream left out blocks",
            Self::FilterGrew => "the filter grew",
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
    /// After the last slot that was stored; these slots were left out by the last session too.
    Without(u64, u64),
    /// At the first slot the server can still replay. Slots are missing.
    FirstAvailable(u64),
    /// With whatever comes next. Slots may be missing.
    Tip,
}

impl Start {
    const CHECKPOINT: Self = Self::Checkpoint { refusals: 0 };

    /// Where to start after a session that started here ended with `end`. A server that cannot even
    /// replay the slot it named itself is not asked to replay again. One that leaves out blocks is asked for
    /// them once more; `left_out` are those that the last session missed.
    fn after(self, end: &SessionEnd, left_out: &mut Option<(u64, u64)>) -> Self {
        if let SessionEnd::Tree(TreeFault::Hole { first, last }) = end {
            let hole = (*first, *last);
            if left_out.replace(hole) == Some(hole) {
                return Self::Without(*first, *last);
            }
            return Self::CHECKPOINT;
        }
        let SessionEnd::Stream(StreamError::ReplayUnavailable {
            first_available, ..
        }) = end
        else {
            // Slots were stored, or another start would not have changed anything.
            return Self::CHECKPOINT;
        };
        match (self, first_available) {
            (Self::Checkpoint { .. } | Self::Without(..), Some(slot)) => {
                Self::FirstAvailable(*slot)
            }
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
    pub(crate) outbox: Outbox,
    /// The live webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// The programs whose events are decoded.
    pub idls: Arc<Idls>,
    /// Told what is seen.
    pub status: Status,
}

impl Follower {
    /// Follows the chain until `shutdown`, through every outage.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut health = Health {
            outage: OutageLog::new("following the chain"),
            backoff: Backoff::new(),
        };
        let mut start = Start::CHECKPOINT;
        let mut left_out = None;
        loop {
            // Stopping in the middle of anything is harmless: what is not committed is read again.
            let end = tokio::select! {
                () = shutdown.cancelled() => return,
                end = self.session(start, &mut health) => match end {
                    Err(end) => end,
                    Ok(never) => match never {},
                },
            };
            self.outbox.metrics.session_ended(end.kind());
            start = start.after(&end, &mut left_out);
            if matches!(end, SessionEnd::FilterGrew) {
                continue;
            }
            self.status.disconnected(end.to_string());
            health.outage.failed(end.kind(), &end);
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
        let subscriptions = Arc::clone(&self.subscriptions.borrow_and_update());
        let origin = self.origin(start, &subscriptions).await?;
        let from_slot = origin.from_slot;
        let mut stream = Stream::open(&self.endpoint, request(&subscriptions, from_slot)).await?;
        let mut session = Session::new(self, subscriptions, origin, health);
        // Servers keep only the newest of the requests they have not looked at yet. A filter change sent
        // right after the first request could make them forget its `from_slot`, so the first update is
        // awaited: it shows that the first request was looked at.
        let first = stream.next().await?;
        self.status.connected();
        tracing::info!(from_slot, "the stream is open");
        session.apply(first).await?;
        let earliest_end = Instant::now() + SHORTEST_SESSION;
        let mut grew = false;
        let mut changes = self.subscriptions.clone();
        loop {
            tokio::select! {
                update = stream.next() => session.apply(update?).await?,
                changed = changes.changed(), if !grew => {
                    changed.map_err(|_| SessionEnd::Unwatched)?;
                    let subscriptions = Arc::clone(&changes.borrow_and_update());
                    grew = subscriptions.grew_since(session.subscriptions());
                    if !grew {
                        stream.replace(request(&subscriptions, None)).await?;
                        session.narrow(subscriptions);
                    }
                }
                () = sleep_until(earliest_end), if grew => return Err(SessionEnd::FilterGrew),
            }
        }
    }

    /// What the store knows about where to begin.
    async fn origin(
        &self,
        start: Start,
        subscriptions: &Subscriptions,
    ) -> Result<Origin, StoreError> {
        let confirmed = self.outbox.store.checkpoint(Commitment::Confirmed).await?;
        let finalized = self.outbox.store.checkpoint(Commitment::Finalized).await?;
        let finality_wanted = !subscriptions.at(Commitment::Finalized).is_empty();
        let proved = self.outbox.store.filter_state().await?;
        let known = proved.map_or(Revision(0), |state| state.revision);
        let unproved = self.outbox.store.filter_changes(known).await?;
        // A session at least goes on where the last one was; it goes further back for finality, and for
        // webhooks that were written since and that it did not serve.
        let resume = confirmed.map(|slot| slot.saturating_add(1));
        let for_finality = finalized
            .filter(|_| finality_wanted)
            .map(|slot| slot.saturating_add(1));
        let for_changes = unproved
            .iter()
            .filter(|change| change.revision <= subscriptions.revision())
            .filter(|change| change.in_force_slot.is_none())
            .filter_map(|change| change.requested_slot)
            .min();
        let needed = resume
            .into_iter()
            .chain(resume.and(for_finality))
            .chain(resume.and(for_changes))
            .min();
        let open: Vec<UnconfirmedSlot> = self.outbox.store.unconfirmed_slots().await?;
        Ok(Origin {
            confirmed,
            finalized,
            from_slot: match start {
                Start::Checkpoint { .. } | Start::Without(..) => needed,
                Start::FirstAvailable(slot) => Some(slot.max(needed.unwrap_or(0))),
                Start::Tip => None,
            },
            missing: match start {
                Start::Without(first, last) => Some((first, last)),
                _ => None,
            },
            complete: matches!(start, Start::Checkpoint { .. } | Start::Without(..)),
            finality_wanted,
            open,
        })
    }
}

/// What outlives a session.
pub(crate) struct Health {
    outage: OutageLog,
    backoff: Backoff,
}

impl Health {
    /// Something was stored: the connection has proved useful.
    pub(crate) fn recovered(&mut self) {
        self.outage.recovered();
        self.backoff.reset();
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

    fn after(start: Start, end: &SessionEnd) -> Start {
        start.after(end, &mut None)
    }

    #[test]
    fn a_lost_replay_window_leads_to_what_is_left_of_it_and_then_to_the_tip() {
        let rest = after(Start::CHECKPOINT, &gone(Some(9)));
        assert_eq!(rest, Start::FirstAvailable(9));
        assert_eq!(after(rest, &gone(Some(11))), Start::Tip);
        let closed = SessionEnd::Stream(StreamError::Closed);
        assert_eq!(after(rest, &closed), Start::CHECKPOINT);
        assert_eq!(after(Start::Tip, &closed), Start::CHECKPOINT);
    }

    #[test]
    fn a_server_that_may_only_be_starting_is_asked_again_before_slots_are_given_up() {
        let mut start = Start::CHECKPOINT;
        for _ in 0..UNEXPLAINED_REFUSALS {
            start = after(start, &gone(None));
            assert!(matches!(start, Start::Checkpoint { .. }), "{start:?}");
        }
        assert_eq!(after(start, &gone(None)), Start::Tip);
        let closed = SessionEnd::Stream(StreamError::Closed);
        assert_eq!(
            after(start, &closed),
            Start::CHECKPOINT,
            "the count starts anew"
        );
    }

    #[test]
    fn blocks_that_were_left_out_are_asked_for_once_more() {
        let hole = |first, last| SessionEnd::Tree(TreeFault::Hole { first, last });
        let mut left_out = None;
        let again = Start::CHECKPOINT.after(&hole(12, 13), &mut left_out);
        assert_eq!(again, Start::CHECKPOINT);
        let other = again.after(&hole(20, 20), &mut left_out);
        assert_eq!(other, Start::CHECKPOINT);
        let without = other.after(&hole(20, 20), &mut left_out);
        assert_eq!(without, Start::Without(20, 20));
        let rest = without.after(&gone(Some(30)), &mut left_out);
        assert_eq!(rest, Start::FirstAvailable(30));
    }
}
