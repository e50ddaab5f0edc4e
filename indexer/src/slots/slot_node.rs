//! One slot of the fork tree: block, events, highest commitment emitted (pure).

use std::sync::Arc;

use sluice_chain_types::Commitment;

use super::{Action, Block, RetractReason, SlotEvent, SlotEvents};

/// A slot.
#[derive(Debug, Default)]
pub(super) struct SlotNode {
    pub(super) block: Option<Arc<Block>>,
    /// Nothing more is written to it.
    pub(super) sealed: bool,
    events: Arc<SlotEvents>,
    /// Events that came after the block was known: they may belong to a replacement block.
    replacement_events: SlotEvents,
    /// A bank was created again since the block was known: what comes belongs to a replacement block.
    replacing: bool,
    /// The highest commitment at which its block was emitted.
    pub(super) emitted: Option<Commitment>,
    /// What is known of its being confirmed.
    confirmation: Confirmation,
    /// What an earlier session emitted of it at processed.
    emitted_earlier: Option<EarlierEmission>,
    /// Memory that its events take, roughly.
    pub(super) bytes: usize,
}

/// What is known of a slot's being confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Confirmation {
    /// Nothing yet.
    #[default]
    Unknown,
    /// A block of it was emitted at confirmed.
    Emitted,
    /// Likewise, and then that block was declared dead.
    Doubted,
}

/// A block that an earlier session emitted at processed.
#[derive(Debug)]
struct EarlierEmission {
    /// Its hash; `None` when it was not stored.
    blockhash: Option<String>,
}

/// What became of an event.
pub(super) struct Admission {
    /// Whether it is held now and was not before.
    pub(super) held: bool,
    /// What is to be emitted at once.
    pub(super) late: Vec<Action>,
}

impl EarlierEmission {
    /// Whether the block of this hash was emitted. Not when the hash is unknown: a true event that is retracted is
    /// emitted again, a false one that is not would stand for ever.
    fn is_of(&self, hash: &str) -> bool {
        self.blockhash.as_deref() == Some(hash)
    }
}

impl SlotNode {
    /// A slot of which an earlier session emitted the block of this hash at processed.
    pub(super) fn emitted_earlier(blockhash: Option<String>) -> Self {
        Self {
            emitted_earlier: Some(EarlierEmission { blockhash }),
            ..Self::default()
        }
    }

    /// Takes an event. `last` is the commitment after which events are not held any more; `None` while they all are.
    pub(super) fn admit(&mut self, event: SlotEvent, last: Option<Commitment>) -> Admission {
        if self.block.is_none() {
            return Admission::early(Arc::make_mut(&mut self.events).add(event));
        }
        if self.replacing {
            return Admission::early(self.replacement_events.add(event));
        }
        if last.is_some() && self.emitted >= last {
            // Nothing is held any more against which it could be compared.
            return Admission {
                held: false,
                late: self.emit_late(event),
            };
        }
        // An event of this block may belong to a replacement of it, too.
        let of_replacement = self.replacement_events.add(event.clone());
        let of_block = Arc::make_mut(&mut self.events).add(event.clone());
        Admission {
            held: of_replacement || of_block,
            late: if of_block {
                self.emit_late(event)
            } else {
                Vec::new()
            },
        }
    }

    /// An event that comes after its slot was emitted is emitted by itself, at every commitment that is over.
    fn emit_late(&self, event: SlotEvent) -> Vec<Action> {
        let (Some(block), Some(emitted)) = (&self.block, self.emitted) else {
            return Vec::new();
        };
        let late = Arc::new(SlotEvents::late(event));
        Commitment::ALL
            .into_iter()
            .filter(|commitment| *commitment <= emitted)
            .map(|commitment| Action::Emit {
                commitment,
                block: Arc::clone(block),
                events: Arc::clone(&late),
            })
            .collect()
    }

    /// A bank was created for the slot. Once its block is known, that is the bank of a replacement block.
    pub(super) fn bank_created(&mut self) {
        if self.block.is_some() {
            self.replacing = true;
            self.replacement_events = SlotEvents::default();
        }
    }

    /// Whether its block, or the one that was emitted earlier, is another than that of this hash.
    pub(super) fn has_other_block(&self, hash: &str) -> bool {
        match (&self.block, &self.emitted_earlier) {
            (Some(known), _) => known.hash != hash,
            (None, Some(earlier)) => !earlier.is_of(hash),
            (None, None) => false,
        }
    }

    /// Whether a block of it was emitted at confirmed, be it the one that it has or one before.
    pub(super) fn was_confirmed(&self) -> bool {
        self.confirmation != Confirmation::Unknown
    }

    /// Its confirmed block was declared dead: what comes belongs to a replacement block, if one comes.
    pub(super) fn doubt(&mut self) {
        if self.emitted < Some(Commitment::Finalized) {
            self.confirmation = Confirmation::Doubted;
            self.bank_created();
        }
    }

    /// Whether a replacement block may take the place of its own.
    pub(super) fn may_be_replaced(&self) -> bool {
        self.emitted < Some(Commitment::Confirmed) || self.confirmation == Confirmation::Doubted
    }

    /// Takes out what came since a bank was created again for the block that is known.
    pub(super) fn take_repeated(&mut self) -> Vec<SlotEvent> {
        if !std::mem::take(&mut self.replacing) {
            return Vec::new();
        }
        let repeated = std::mem::take(&mut self.replacement_events);
        repeated.iter().map(SlotEvent::from).collect()
    }

    /// Drops what came for a replacement block.
    pub(super) fn drop_replacement(&mut self) {
        self.replacing = false;
        self.replacement_events = SlotEvents::default();
    }

    /// Drops its block in favour of a replacement, and retracts what was emitted of it.
    pub(super) fn replace_block(&mut self, slot: u64) -> Option<Action> {
        let retraction = self.retraction(slot, RetractReason::Replaced);
        self.emitted_earlier = None;
        if self.block.take().is_some() {
            self.emitted = None;
            self.events = Arc::new(std::mem::take(&mut self.replacement_events));
            self.sealed = false;
        }
        retraction
    }

    /// Takes a block, unless it is the one that is known.
    pub(super) fn accept_block(&mut self, block: Block) {
        self.replacing = false;
        if self.confirmation == Confirmation::Doubted {
            self.confirmation = Confirmation::Emitted;
        }
        self.block.get_or_insert_with(|| Arc::new(block));
    }

    /// What is due when the slot did not happen as it was emitted; `None` when nothing was.
    pub(super) fn retraction(&self, slot: u64, reason: RetractReason) -> Option<Action> {
        let emitted = self.emitted.is_some() || self.emitted_earlier.is_some();
        emitted.then_some(Action::Retract {
            slot,
            reason,
            emitted: self.emitted.unwrap_or(Commitment::Processed),
        })
    }

    /// Its events at each commitment up to this one at which they were not emitted yet, if its block is known.
    pub(super) fn emit_through(&mut self, commitment: Commitment) -> Vec<Action> {
        let due = Commitment::ALL.into_iter();
        due.filter(|each| *each <= commitment)
            .filter_map(|each| {
                (self.emitted < Some(each))
                    .then(|| self.emit(each))
                    .flatten()
            })
            .collect()
    }

    /// Its events, if its block is known.
    pub(super) fn emit(&mut self, commitment: Commitment) -> Option<Action> {
        let block = Arc::clone(self.block.as_ref()?);
        self.emitted = Some(commitment);
        if commitment >= Commitment::Confirmed {
            self.confirmation = Confirmation::Emitted;
        }
        Some(Action::Emit {
            commitment,
            block,
            events: Arc::clone(&self.events),
        })
    }

    /// Its events as far as they are held.
    pub(super) fn events(&self) -> &SlotEvents {
        &self.events
    }

    /// Whether the block of another connection's slot is known, and is this one's.
    pub(super) fn has_same_block(&self, other: &Self) -> bool {
        let hash = |node: &Self| node.block.as_ref().map(|block| block.hash.clone());
        self.block.is_some() && hash(self) == hash(other)
    }

    /// Its events once more, at each commitment at which they were emitted.
    pub(super) fn repeat(&self) -> impl Iterator<Item = Action> {
        let emitted = Commitment::ALL.into_iter();
        let emitted = emitted.filter(|commitment| Some(*commitment) <= self.emitted);
        emitted
            .zip(std::iter::repeat(self.block.as_ref()))
            .filter_map(|(commitment, block)| {
                Some(Action::Emit {
                    commitment,
                    block: Arc::clone(block?),
                    events: Arc::clone(&self.events),
                })
            })
    }

    /// Adds those events of another connection that it does not hold; returns how much memory they take. `last` is the
    /// commitment after which events are not needed any more.
    pub(super) fn supplement(&mut self, events: &SlotEvents, last: Commitment) -> usize {
        if self.emitted >= Some(last) {
            return 0;
        }
        let own = Arc::make_mut(&mut self.events);
        let added: usize = events
            .iter()
            .map(SlotEvent::from)
            .filter_map(|event| {
                let bytes = event.bytes();
                own.add_unless_held(event).then_some(bytes)
            })
            .sum();
        self.bytes = self.bytes.saturating_add(added);
        added
    }

    /// Drops its events; returns how much memory they took.
    pub(super) fn drop_events(&mut self) -> usize {
        self.events = Arc::default();
        self.replacement_events = SlotEvents::default();
        std::mem::take(&mut self.bytes)
    }
}

impl Admission {
    /// Of an event that comes before its slot can be emitted.
    const fn early(held: bool) -> Self {
        Self {
            held,
            late: Vec::new(),
        }
    }
}
