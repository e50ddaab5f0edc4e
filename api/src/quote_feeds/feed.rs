//! Feed: prices one question at each change of the market, and shows the answer where it is another one.

use std::time::Duration;

use service_kit::CancellationToken;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{Answer, OpenFeeds, Question, Source, board::Board};
use crate::{error::ApiError, stream_end::StreamEnd};

/// How often a feed does what no change of the market makes it do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Shows that it stands while its quote is the same: proxies commonly close a connection on which nothing came for a
    /// minute, some after half of one.
    pub(super) beat: Duration,
    /// Looks whether the market has grown stale.
    pub(super) look: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(15),
            look: Duration::from_secs(1),
        }
    }
}

/// One open feed.
pub(super) struct Feed<S, A, P> {
    pub(super) question: Question,
    pub(super) source: S,
    pub(super) changes: watch::Receiver<()>,
    pub(super) price: P,
    /// What is shown.
    pub(super) last: A,
    pub(super) shown: Board,
    pub(super) open: OpenFeeds,
    pub(super) pace: Pace,
}

impl<S, A, P> Drop for Feed<S, A, P> {
    /// However it ends, the next reader begins another feed, and those of this one have nothing to wait for.
    fn drop(&mut self) {
        self.open.remove(&self.question, &self.shown);
        self.shown.leave();
    }
}

impl<S: Source, A: Answer, P: Fn() -> Result<A, ApiError>> Feed<S, A, P> {
    /// Shows answers until there is none, nobody reads them, or `shutdown`.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let mut look = interval(self.pace.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beat_at = Instant::now() + self.pace.beat;
        loop {
            let looked = tokio::select! {
                () = shutdown.cancelled() => Err(ApiError::Stopping),
                changed = self.changes.changed() => match changed {
                    Ok(()) => self.reprice(&mut beat_at),
                    Err(_) => Err(ApiError::Stopping),
                },
                _ = look.tick() => self.look(&mut beat_at),
            };
            if let Err(reason) = looked {
                // The market ends too, and may have been faster.
                let is_stopping = shutdown.is_cancelled();
                return self.end(if is_stopping {
                    &ApiError::Stopping
                } else {
                    &reason
                });
            }
            if self.open.remove_unread(&self.question, &self.shown) {
                return;
            }
        }
    }

    fn reprice(&mut self, beat_at: &mut Instant) -> Result<(), ApiError> {
        let answer = (self.price)()?;
        if !answer.repeats(&self.last) {
            let (slot, json) = (answer.slot(), answer.json()?);
            self.shown.change(|shown| shown.replace(slot, &json));
            self.last = answer;
            *beat_at = Instant::now() + self.pace.beat;
        }
        Ok(())
    }

    fn look(&self, beat_at: &mut Instant) -> Result<(), ApiError> {
        let slot = self.source.slot(self.question.ask.commitment)?;
        if Instant::now() >= *beat_at {
            self.shown.change(|shown| shown.beat(slot));
            *beat_at = Instant::now() + self.pace.beat;
        }
        Ok(())
    }

    fn end(self, reason: &ApiError) {
        // First, so that who connects again is not given a feed that has ended.
        self.open.remove(&self.question, &self.shown);
        let end = StreamEnd::from(reason);
        self.shown.change(|shown| shown.end(end));
    }
}
