//! Source: one connection as the assembler knows it: requests sent, the generation in force, replays due (pure).

use std::collections::BTreeSet;

use crate::{
    generation::Generation,
    slot_assembly::{SOURCES_OF_SERVER, SentRequest},
};

/// Ended slots after which a connection that has reported no new bank counts as one that never will. Longer than the
/// replay that a server commonly keeps would take to be distinguished from news, and short enough to recover by itself.
const SLOTS_WITHOUT_BANKS: u32 = 64;

/// Ended slots, after a request came into force, in which its replay must have come. A replay comes before anything
/// newer, so this only waits for servers that do not keep to that.
const SLOTS_TO_REPLAY: u32 = 4;

/// Complete slots, each the child of the one before, after which the next child counts as delivered whole on a connection
/// without any replay whose server does not report new banks. When the first of them completes, the filters were in force,
/// but its child may have begun before: validators announce a complete slot with a delay, while its child already writes.
/// The child of the second one begins after the second one is complete, and so after the first was announced.
const SLOTS_BEFORE_WHOLE: u32 = 2;

/// The stream of the server to which a source belongs.
pub(super) const fn main_source(source: usize) -> usize {
    source - source % SOURCES_OF_SERVER
}

/// A server's connection.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) connected: bool,
    /// Requests sent on this connection, the oldest first.
    sent: Vec<SentRequest>,
    /// The highest generation that an update has shown.
    shown: Option<Generation>,
    /// Whether a new bank was reported on this connection.
    pub(super) reports_banks: bool,
    ended: u32,
    ended_since_shown: u32,
    /// The highest slot whose metadata came under the newest generation shown.
    closed: Option<u64>,
    /// Slots of which content came, after their metadata, that may be the beginning of a replay.
    pub(super) after_meta: BTreeSet<u64>,
}

/// Whether a replay can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// What was asked for may still come.
    Wait,
    /// It can be asked for on this connection.
    Ask,
    /// This connection does not replay.
    Exhausted,
}

impl Source {
    pub(super) fn connect(&mut self, request: SentRequest) {
        *self = Self {
            connected: true,
            sent: vec![request],
            ..Self::default()
        };
    }

    pub(super) fn disconnect(&mut self) {
        *self = Self::default();
    }

    pub(super) fn send(&mut self, request: SentRequest) {
        self.sent.push(request);
    }

    /// Notes that an update came under `generation`. Returns whether it is the first to show it.
    pub(super) fn show(&mut self, generation: Generation) -> bool {
        let is_new = self.shown.is_none_or(|shown| shown < generation);
        if is_new {
            self.shown = Some(generation);
            self.ended_since_shown = 0;
            self.closed = None;
        }
        is_new
    }

    pub(super) fn note_ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
        self.ended_since_shown = self.ended_since_shown.saturating_add(1);
    }

    /// Whether a slot was delivered whole of which this many ancestors were reported to be complete before.
    pub(super) fn is_whole_after(&self, complete_ancestry: u32) -> bool {
        let replays = self.sent.iter().any(|request| request.from_slot.is_some());
        complete_ancestry >= SLOTS_BEFORE_WHOLE && !self.reports_banks && !replays
    }

    pub(super) const fn shown(&self) -> Option<Generation> {
        self.shown
    }

    /// The newest generation sent.
    pub(super) fn last_sent(&self) -> Generation {
        self.sent
            .last()
            .map(|request| request.generation)
            .unwrap_or_default()
    }

    /// Whether every request sent has shown itself. Servers keep only the newest of those that wait.
    pub(super) fn is_quiet(&self) -> bool {
        self.connected && self.shown.is_some_and(|shown| shown >= self.last_sent())
    }

    fn request(&self, generation: Generation) -> Option<&SentRequest> {
        let mut sent = self.sent.iter();
        sent.find(|request| request.generation == generation)
    }

    /// The filter of a generation.
    pub(super) fn filter(&self, generation: Generation) -> Generation {
        self.request(generation)
            .map_or(generation, |request| request.filter)
    }

    /// Whether the request of this generation asked for a replay of `slot`.
    pub(super) fn replays(&self, generation: Generation, slot: u64) -> bool {
        self.request(generation)
            .and_then(|request| request.from_slot)
            .is_some_and(|from| from <= slot)
    }

    /// Notes that the metadata of a slot came. Returns the slots below of which what came after their metadata is no
    /// replay: that goes upwards, and is past them.
    pub(super) fn close(&mut self, slot: u64) -> BTreeSet<u64> {
        self.closed = self.closed.max(Some(slot));
        self.after_meta.remove(&slot);
        let later = self.after_meta.split_off(&slot);
        std::mem::replace(&mut self.after_meta, later)
    }

    /// Whether the request of this generation asked for a replay of `slot` that may still come.
    pub(super) fn may_replay(&self, generation: Generation, slot: u64) -> bool {
        let is_past = self.shown == Some(generation) && self.closed > Some(slot);
        self.replays(generation, slot) && !is_past
    }

    /// Whether to ask for a replay of `slot`, which was frozen when `frozen_in` was the newest generation sent.
    pub(super) fn patience(&self, slot: u64, frozen_in: Generation, at_rest: bool) -> Patience {
        // Until a new bank is reported, or nothing comes any more, the replay may not be over, and what came of it cannot
        // be judged.
        let is_over = self.reports_banks || at_rest || self.ended >= SLOTS_WITHOUT_BANKS;
        if !self.is_quiet() || !is_over {
            return Patience::Wait;
        }
        let asked = self
            .sent
            .iter()
            .filter(|request| request.generation > frozen_in);
        if !asked
            .clone()
            .any(|request| request.from_slot.is_some_and(|from| from <= slot))
        {
            return Patience::Ask;
        }
        if self.ended_since_shown < SLOTS_TO_REPLAY {
            return Patience::Wait;
        }
        Patience::Exhausted
    }
}
