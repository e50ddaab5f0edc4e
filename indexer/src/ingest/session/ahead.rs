//! Ahead: composes and packs what a slot emits at confirmed while its confirmation is still to come (speculation).
//!
//! Nothing of it is stored before, and it is used only where it was made of the very same: a slot that was replaced, or of which more
//! came, and a filter that was changed have it composed again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sluice_store::{Commitment, NewMessage, PackedMessages, Timestamp};
use tokio::{
    task::{JoinSet, yield_now},
    time::sleep,
};

use super::{super::pieces::Piece, Served, Session, composing::Emission};
use crate::events::{compose, idl::Idls, subscription_index::Subscriptions};

/// How long after a slot is sealed it is waited: in the same moment an earlier one is confirmed, whose messages are sent first.
const PAUSE: Duration = Duration::from_millis(100);

/// Most slots of which messages are kept. A slot is confirmed two later, mostly, and what is kept of it takes some MiB at worst.
const MOST_SLOTS: usize = 4;

/// Messages composed without letting others run: some hundred microseconds.
const AT_ONCE: usize = 32;

/// Messages of the first piece. While it waits for the disk the rest is committed, and while it is sent that waits; nothing has to be
/// composed between them, so it is longer than the first of those that do, and the second is the last.
const FIRST_PIECE: usize = 128;

/// What is composed ahead.
#[derive(Default)]
pub(super) struct Ahead {
    composing: JoinSet<Option<Composed>>,
    composed: BTreeMap<u64, Composed>,
}

/// What messages are made of.
#[derive(Clone)]
pub(super) struct Source {
    emission: Emission,
    subscriptions: Arc<Subscriptions>,
    idls: Arc<Idls>,
}

/// All messages of a slot.
struct Composed {
    source: Source,
    pieces: Vec<Piece>,
}

impl Ahead {
    /// Begins to compose, unless so much is kept already, or the block's time is not known: then messages tell when they were emitted.
    fn begin(&mut self, source: Source) {
        let slots = self.composing.len().saturating_add(self.composed.len());
        if slots < MOST_SLOTS
            && let Some(time) = source.emission.block.time
        {
            self.composing.spawn(async move {
                sleep(PAUSE).await;
                source.compose(Timestamp::from_unix_seconds(time)).await
            });
        }
    }

    fn keep(&mut self, composed: Option<Composed>) {
        self.composed
            .extend(composed.map(|composed| (composed.source.emission.block.slot, composed)));
    }

    /// The messages that are made of this, if they are composed. What was composed of earlier slots is dropped.
    fn take(&mut self, source: &Source) -> Option<Vec<Piece>> {
        while let Some(ended) = self.composing.try_join_next() {
            // Where it panicked the slot is composed again, and the fault is seen then.
            self.keep(ended.unwrap_or_default());
        }
        let slot = source.emission.block.slot;
        let composed = self.composed.remove(&slot);
        // They are confirmed already, or never will be.
        self.composed = self.composed.split_off(&slot);
        composed
            .filter(|composed| composed.source.is(source))
            .map(|composed| composed.pieces)
    }
}

impl Source {
    /// Whether both make the same messages.
    fn is(&self, other: &Self) -> bool {
        let (own, others) = (&self.emission, &other.emission);
        own.commitment == others.commitment
            && Arc::ptr_eq(&own.block, &others.block)
            && Arc::ptr_eq(&own.events, &others.events)
            && own.last_owners == others.last_owners
            && Arc::ptr_eq(&self.subscriptions, &other.subscriptions)
            && Arc::ptr_eq(&self.idls, &other.idls)
    }

    /// All messages; `None` where there are none, or more than are staged.
    async fn compose(self, time: Timestamp) -> Option<Composed> {
        let emission = &self.emission;
        let (commitment, block) = (emission.commitment, &*emission.block);
        let events = (&*emission.events, &*emission.last_owners);
        let all = compose::events(
            &self.subscriptions,
            &self.idls,
            commitment,
            block,
            events,
            time,
        );
        let (mut messages, mut bytes) = (Vec::new(), 0_u64);
        for message in all {
            bytes = bytes.saturating_add(message.body.len_at_most());
            if messages.len() == PackedMessages::MOST || bytes > PackedMessages::MOST_BYTES {
                return None;
            }
            messages.push(message);
            if messages.len().is_multiple_of(AT_ONCE) {
                yield_now().await;
            }
        }
        let pieces = pieces(messages);
        (!pieces.is_empty()).then_some(Composed {
            source: self,
            pieces,
        })
    }
}

/// Messages in at most two pieces, each packed.
fn pieces(mut messages: Vec<NewMessage>) -> Vec<Piece> {
    let rest = messages.split_off(messages.len().min(FIRST_PIECE));
    let is_all = rest.is_empty();
    let pieces = [(messages, is_all), (rest, true)].into_iter();
    let pieces = pieces.filter(|(messages, _)| !messages.is_empty());
    let pieces = pieces.map(|(messages, is_last)| Piece {
        packed: PackedMessages::pack(&messages),
        messages,
        is_last,
    });
    pieces.collect()
}

impl Session<'_> {
    /// Begins to compose what a sealed slot will emit at confirmed, unless that would not be staged.
    pub(super) fn compose_ahead(&mut self, served: Served<'_>, processed: &Emission) {
        let confirmed = served.subscriptions.at(Commitment::Confirmed);
        let events = &processed.events;
        let emits = !confirmed.is_empty() && !events.is_empty() && !events.are_late();
        if emits && served.checkpoints && self.stages && !self.gathers() {
            let emission = Emission {
                commitment: Commitment::Confirmed,
                ..processed.clone()
            };
            let source = self.source(served, &emission);
            self.ahead.begin(source);
        }
    }

    /// All messages of an emission, where they were composed ahead.
    pub(super) fn composed_ahead(
        &mut self,
        served: Served<'_>,
        emission: &Emission,
    ) -> Option<Vec<Piece>> {
        if emission.commitment != Commitment::Confirmed || !served.checkpoints {
            return None;
        }
        let source = self.source(served, emission);
        self.ahead.take(&source)
    }

    fn source(&self, served: Served<'_>, emission: &Emission) -> Source {
        Source {
            emission: emission.clone(),
            subscriptions: Arc::clone(served.subscriptions),
            idls: Arc::clone(&self.context.idls.borrow()),
        }
    }
}

#[cfg(test)]
mod tests;
