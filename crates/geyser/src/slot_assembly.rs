//! Slot assembly: collects what connections deliver, and gives a slot out once it is known to be whole (pure).
//!
//! # What a connection delivers
//!
//! A server joins a new connection to its live stream at once, but with an empty filter; what passes before the first
//! request is in force is not sent. `from_slot` is answered from frozen blocks alone: of the slot that is open at that moment
//! nothing is replayed. The rest of it, its block metadata and its `processed` status then arrive live, so that it looks
//! whole and is not. Between the two parts a block may come twice.
//!
//! # When a slot is whole
//!
//! A slot is *witnessed* when the creation of its bank was reported on this connection, by an update that proves the
//! filter, before any of its content: the stream leaves nothing out after that. A slot that was not witnessed is whole when
//! its content came in a replay that was asked for after the same server had reported the end of the same block: its metadata and
//! a commitment. That it has a child proves nothing: the validator had frozen it, but the server may not have had the block yet.
//!
//! Every other slot is *suspect*: it is held back, with all that builds on it, until it has been asked for again
//! ([`SlotAssembler::replay_due`]). One that the chain has left is not asked for: nothing of it can be given out.
//!
//! # Several banks of a slot
//!
//! A validator may write several banks of one slot, in turns. Where the server numbers them, what came of each is collected by
//! itself, and each is witnessed, whole, dead or committed by itself. Where it does not, content that came after a second
//! creation proves nothing, and the slot is suspect.
//!
//! # What is given out
//!
//! One sequence of updates ([`Assembled`]), in which a slot follows its parent and comes all at once: its bank is created,
//! account writes and transactions, block metadata, `processed`, and then the higher commitments. It is taken whole from the
//! source that completes it first, and from no other: write versions of two servers are never mixed. A slot comes a second time
//! only when it is a replacement block, which its descendants or a commitment name; [`Assembled::Replaced`] comes before.
//! Slots of which `dead` was reported go as they came. A consumer that can take back what nobody has seen is given banks as they come,
//! too ([`Assembled::Ahead`]).

mod ahead;
mod bank;
mod giving;
mod intake;
mod judgement;
mod outcome;
mod owed;
mod rooted;
mod slot;
mod source;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    ahead::Ahead,
    rooted::RootedBlocks,
    slot::AssembledSlot,
    source::{Patience, Source},
    work::Work,
};
use crate::{
    generation::Generation,
    update::{Body, Update},
};

/// Most slots that are held back or remembered. A chain finalizes within some 32 slots of its tip. Servers replay 150 slots or
/// thousands: of more than this those after it are dropped, and asked for again when there is room for them.
pub const MAX_SLOTS: usize = 1024;

/// Sources of a server: its stream, and after it the side stream beside it, which number writes alike.
pub(crate) const SOURCES_OF_SERVER: usize = 2;

/// A request as it was sent on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentRequest {
    /// Its own number, which its filter names carry.
    pub generation: Generation,
    /// The generation that brought its filters: lower than `generation` when the same filters were sent again for a replay.
    pub filter: Generation,
    /// The slot that it asked to be replayed from.
    pub from_slot: Option<u64>,
}

/// What is given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assembled {
    /// The next update, safe to be consumed.
    Update(Update),
    /// A replacement block of the one that was given out of a slot follows: as a `dead` status for the first.
    Replaced {
        /// The slot.
        slot: u64,
    },
    /// From this slot on everything is given out as this filter selects it.
    InForce {
        /// The generation that brought the filter: [`SentRequest::filter`].
        filter: Generation,
        /// The first slot.
        slot: u64,
    },
    /// Where that is [wanted](SlotAssembler::give_ahead): of a slot that is not known to be whole, the creation of its bank, or
    /// what that writes. When the slot is given out, only what did not come ahead follows the creation.
    Ahead {
        /// The slot.
        slot: u64,
        /// What there is of it.
        body: Body,
    },
    /// What came ahead of a slot is not given out, at least not as it came.
    Void {
        /// The slot.
        slot: u64,
    },
    /// The server delivered content of a slot after it had reported that the slot is complete, so what was given out of it
    /// is not whole.
    Late {
        /// The slot.
        slot: u64,
        /// The content.
        update: Update,
    },
}

/// What became known of the sources themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A source has delivered a block to its end, as it happened.
    Completed {
        /// The source.
        source: usize,
        /// The slot.
        slot: u64,
    },
    /// What was given out of a slot was taken from this source.
    Taken {
        /// The source.
        source: usize,
        /// The slot.
        slot: u64,
    },
    /// A source has finalized another block of a slot than the one that was given out and is finalized as well.
    Contradicted {
        /// The source.
        source: usize,
        /// The slot.
        slot: u64,
        /// Hash of the block that was given out.
        given: String,
        /// Hash of the block of the source.
        claimed: String,
    },
}

/// A replay to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayDue {
    /// The slot to replay from.
    pub from_slot: u64,
    /// Whether to ask on the connection as it is, or, where the server has ignored that, on another one beside it.
    pub path: ReplayPath,
}

/// Where a replay is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPath {
    /// By a later request of the same stream.
    SameStream,
    /// By the first request of another connection, which is a source of its own.
    SideStream,
}

/// The state machine. Of each server source 2n is the stream, and source 2n + 1 the side stream.
#[derive(Debug)]
pub struct SlotAssembler {
    sources: Vec<Source>,
    slots: BTreeMap<u64, AssembledSlot>,
    /// Slots by the one that a bank of theirs builds on.
    children: BTreeMap<u64, BTreeSet<u64>>,
    work: Work,
    /// The first slot to be given out; `None` until a connection shows where it begins.
    start: Option<u64>,
    /// The newest slot that was given out and is finalized: what does not build on it is abandoned.
    root: Option<u64>,
    /// The newest slot that was given out and is confirmed.
    confirmed: Option<u64>,
    /// Highest slot that was given out.
    highest_given: Option<u64>,
    /// First slot of each filter in force, the oldest first.
    in_force: Vec<(u64, Generation)>,
    /// The newest generation given to a request.
    newest: Generation,
    rooted: RootedBlocks,
    ahead: Ahead,
    assembled: Vec<Assembled>,
    findings: Vec<Finding>,
    /// Slots looked at, each time.
    #[cfg(test)]
    looks: std::cell::Cell<u64>,
}

impl SlotAssembler {
    /// An assembler of this many sources, none of which is connected.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self {
            sources: std::iter::repeat_with(Source::default)
                .take(sources)
                .collect(),
            slots: BTreeMap::new(),
            children: BTreeMap::new(),
            work: Work::default(),
            start: None,
            root: None,
            confirmed: None,
            highest_given: None,
            in_force: Vec::new(),
            newest: Generation::default(),
            rooted: RootedBlocks::default(),
            ahead: Ahead::default(),
            assembled: Vec::new(),
            findings: Vec::new(),
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
        }
    }

    /// A request of this generation is about to be sent, on whatever connection.
    pub fn sending(&mut self, generation: Generation) {
        self.newest = self.newest.max(generation);
    }

    /// A connection was opened with this request. Where no slot was given out yet, `from_slot` is the first one to be.
    pub fn connected(&mut self, source: usize, request: SentRequest) {
        self.disconnected(source);
        self.sending(request.generation);
        if let Some(source) = self.sources.get_mut(source) {
            source.connect(request);
        }
        self.start = self.start.or(request.from_slot);
    }

    /// A later request was sent on a connection. To be called only when [`SlotAssembler::may_request`].
    pub fn requested(&mut self, source: usize, request: SentRequest) {
        self.sending(request.generation);
        if let Some(source) = self.sources.get_mut(source) {
            source.send(request);
        }
    }

    /// A connection is over: what it has delivered in part is dropped.
    pub fn disconnected(&mut self, source: usize) {
        if let Some(source) = self.sources.get_mut(source) {
            source.disconnect();
        }
        self.work.all_are_due();
        for (slot, entry) in &mut self.slots {
            let missing = entry.disconnect(source).into_iter();
            let slot = *slot;
            self.assembled
                .extend(missing.map(|update| Assembled::Late { slot, update }));
        }
    }

    /// Whether another request may be sent: every one before has come into force. Servers keep only the newest of the requests
    /// that wait, and a `from_slot` among them would be lost.
    #[must_use]
    pub fn may_request(&self, source: usize) -> bool {
        self.sources.get(source).is_some_and(Source::is_quiet)
    }

    /// The slot that a new connection is to replay from: the newest that was given out and is confirmed, since another
    /// block may take the place of any later one. `None` when nothing was given out and nothing was asked for.
    #[must_use]
    pub fn resume_slot(&self) -> Option<u64> {
        self.confirmed.or(self.start)
    }

    /// Takes out what can be given out.
    pub fn take(&mut self) -> Vec<Assembled> {
        self.void_what_is_gone();
        std::mem::take(&mut self.assembled)
    }

    /// Takes out what became known of the sources.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Whether the first slot to be given out is known.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.start.is_some()
    }

    /// Takes in an update of a source.
    pub fn update(&mut self, source: usize, update: Update) {
        self.let_go();
        let Some(from) = self.sources.get_mut(source).filter(|from| from.connected) else {
            return;
        };
        if let Some(generation) = update.generation()
            && from.show(generation)
        {
            self.generation_shown(source, generation);
        }
        // Nothing proves the filter yet.
        let Some(generation) = self.sources.get(source).and_then(Source::shown) else {
            return;
        };
        match &update.body {
            Body::Account(account) => self.content(source, account.slot, generation, update),
            Body::Transaction(transaction) => {
                self.content(source, transaction.slot, generation, update);
            }
            Body::BlockMeta(meta) => {
                let (slot, parent) = (meta.slot, meta.parent_slot);
                self.meta(source, slot, parent, generation, update);
            }
            Body::Slot(status) => {
                let status = status.clone();
                self.status(source, &status, generation, update);
            }
        }
    }

    /// Whether a slot is suspect that this source is to deliver again.
    #[must_use]
    pub fn has_suspect(&self, source: usize) -> bool {
        self.first_suspect(source).is_some()
    }

    /// The first slot that is suspect and that this source is to deliver again.
    #[must_use]
    pub fn first_suspect(&self, source: usize) -> Option<u64> {
        let mut slots = self.work.suspects_from(self.start?);
        slots.find(|slot| self.suspect(source, *slot).is_some())
    }

    /// The replay that a source is to be asked for now. `at_rest` says that nothing has come of it for a while, so that what it
    /// had to replay has come.
    #[must_use]
    pub fn replay_due(&self, source: usize, at_rest: bool) -> Option<ReplayDue> {
        let from = self.sources.get(source).filter(|from| from.is_quiet())?;
        let start = self.start?;
        let slots = self.work.suspects_from(start);
        let mut suspects = slots.filter_map(|slot| {
            let frozen_in = self.suspect(source, slot)?;
            let path = match from.patience(slot, frozen_in, at_rest) {
                Patience::Wait => None,
                Patience::Ask => Some(ReplayPath::SameStream),
                Patience::Exhausted => Some(ReplayPath::SideStream),
            };
            Some((slot, path))
        });
        // Slots that end show what will not come of the lowest. Where none does, those above it need not wait for that.
        let (slot, path) = if at_rest {
            suspects.find_map(|(slot, path)| Some((slot, path?)))?
        } else {
            let (slot, path) = suspects.next()?;
            (slot, path?)
        };
        // Of a slot that was only named, nothing below it may have come either.
        let view = self
            .slots
            .get(&slot)
            .and_then(|entry| entry.views.get(source));
        let is_missing = view.is_none_or(|view| view.banks.is_empty());
        let from_slot = match self.resume_slot().filter(|_| is_missing) {
            Some(resume) => slot.min(resume),
            None => slot,
        };
        Some(ReplayDue { from_slot, path })
    }
}

/// The slots.
impl SlotAssembler {
    /// Whether nothing of a slot is collected any more, or not at all.
    fn is_over(&self, slot: u64) -> bool {
        self.start.is_some_and(|start| slot < start) || self.root.is_some_and(|root| slot < root)
    }

    /// A slot, and the source that something of it came from; `None` while there is no room for the slot.
    fn entry(&mut self, source: usize, slot: u64) -> Option<(&Source, &mut AssembledSlot)> {
        if self.is_beyond_reach(slot) {
            return None;
        }
        let sources = self.sources.len();
        let entry = self.slots.entry(slot).or_insert_with(|| {
            self.work.suspect(slot);
            AssembledSlot::new(sources)
        });
        Some((self.sources.get(source)?, entry))
    }

    /// A bank of a slot builds on another one. What is known of either may follow from the other.
    fn note_child(&mut self, parent: u64, slot: u64) {
        if parent < slot {
            self.children.entry(parent).or_default().insert(slot);
            self.work.is_due(parent);
        }
    }

    /// The slots of which a bank builds on this one, or did.
    fn children_of(&self, slot: u64) -> impl Iterator<Item = (u64, &AssembledSlot)> {
        let children = self.children.get(&slot).into_iter().flatten();
        children.filter_map(|child| Some((*child, self.slots.get(child)?)))
    }

    /// A slot was named as the parent of another one: it is frozen.
    fn name_parent(&mut self, source: usize, parent: u64) {
        if self.start.is_none() || self.is_over(parent) {
            return;
        }
        if let Some((from, entry)) = self.entry(source, parent)
            && let Some(view) = entry.views.get_mut(source)
        {
            view.freeze(from);
        }
    }
}
