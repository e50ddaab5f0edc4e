//! Slot by slot: hands out what a stream gives in parts that each end with a status of a slot.
//!
//! A stream that was caught up with gives out hundreds of slots at once, and to store them may take minutes. Whoever takes
//! them part by part sees to everything else in between.

use std::collections::VecDeque;

use sluice_geyser::{Assembled, Body, Generation, JoinedStream, Request, StreamError};

/// Statuses that wait where slots do: those that come with one slot, and with what it confirms and finalizes, are fewer.
const STATUSES_BEHIND: usize = 8;

/// A stream, and what it has given out that was not handed out yet.
pub(super) struct SlotBySlot {
    stream: JoinedStream,
    waiting: VecDeque<Assembled>,
}

impl SlotBySlot {
    /// A stream that has given out this much.
    pub(super) fn new(stream: JoinedStream, given_out: Vec<Assembled>) -> Self {
        Self {
            stream,
            waiting: given_out.into(),
        }
    }

    /// Whether slots wait to be handed out after the last part.
    pub(super) fn is_behind(&self) -> bool {
        let statuses = self.waiting.iter().filter(|each| is_status(each));
        statuses.take(STATUSES_BEHIND).count() == STATUSES_BEHIND
    }

    /// Replaces the filter, as [`JoinedStream::replace`]. It is asked for at once, since the stream may not be read for a while.
    ///
    /// # Errors
    /// As [`JoinedStream::replace`].
    pub(super) async fn replace(&mut self, request: Request) -> Result<Generation, StreamError> {
        let generation = self.stream.replace(request)?;
        self.stream.ask().await;
        Ok(generation)
    }

    /// The next part, at least one item. The stream is not read until all that it has given out is handed out. Cancel-safe.
    ///
    /// # Errors
    /// As [`JoinedStream::next_batch`].
    pub(super) async fn next_part(&mut self) -> Result<Vec<Assembled>, StreamError> {
        if self.waiting.is_empty() {
            self.waiting = self.stream.next_batch().await?.into();
        }
        let last = self.waiting.iter().position(is_status);
        let len = last.map_or(self.waiting.len(), |last| last + 1);
        Ok(self.waiting.drain(..len).collect())
    }
}

/// Whether it is a status of a slot: what follows from those is what takes its time.
const fn is_status(assembled: &Assembled) -> bool {
    match assembled {
        Assembled::Update(update) => matches!(update.body, Body::Slot(_)),
        Assembled::Replaced { .. } => true,
        Assembled::InForce { .. }
        | Assembled::Late { .. }
        | Assembled::Ahead { .. }
        | Assembled::Void { .. } => false,
    }
}
