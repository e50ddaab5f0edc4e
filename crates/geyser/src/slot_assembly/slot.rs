//! Assembled slot: the banks that each source has delivered of one slot, and which of them was given out (pure).

use sluice_chain_types::SlotStatus;

use crate::{
    generation::Generation,
    slot_assembly::{bank::CollectedBank, source::Source},
    update::{Body, Update},
};

/// One slot.
#[derive(Debug, Default)]
pub(super) struct AssembledSlot {
    /// By source.
    pub(super) views: Vec<SlotView>,
    pub(super) given: Option<Given>,
    /// Commitments above processed, as they were reported.
    commitments: Vec<Update>,
    /// How many of them were given out.
    commitments_given: usize,
    /// Whether one was reported since the newest bank began.
    pub(super) confirms_newest: bool,
}

/// The bank that was given out.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) blockhash: Option<String>,
}

/// A slot as one connection has delivered it.
#[derive(Debug, Default)]
pub(super) struct SlotView {
    /// In the order in which they began; more than one where a replay or another block followed.
    pub(super) banks: Vec<CollectedBank>,
    /// Whether a creation of a bank was reported, in whatever order.
    pub(super) was_created: bool,
    /// The newest generation sent when the slot was first known to be frozen.
    pub(super) frozen_in: Option<Generation>,
}

impl SlotView {
    pub(super) fn freeze(&mut self, source: &Source) {
        self.frozen_in.get_or_insert(source.last_sent());
    }

    /// The bank that content, metadata and statuses of `generation` belong to.
    pub(super) fn bank_for(
        &mut self,
        slot: u64,
        generation: Generation,
        source: &Source,
    ) -> Option<&mut CollectedBank> {
        let ended_in = self.banks.last().map(CollectedBank::ended_in);
        let opens = match ended_in {
            None => true,
            Some(None) => false,
            // It is replayed: that is collected by itself, and complete by itself.
            Some(Some(ended_in)) => generation > ended_in && source.replays(generation, slot),
        };
        if opens {
            self.banks.push(CollectedBank::new(generation, None));
        }
        self.banks.last_mut()
    }

    /// Whether the newest bank is being collected.
    pub(super) fn is_in_progress(&self) -> bool {
        self.banks
            .last()
            .is_some_and(|bank| bank.ended_in().is_none())
    }

    /// Whether a bank of the slot began under the filter and is being collected.
    pub(super) fn is_witnessed(&self) -> bool {
        self.banks
            .last()
            .is_some_and(|bank| bank.witnessed_in.is_some() && bank.ended_in().is_none())
    }
}

impl AssembledSlot {
    pub(super) fn new(sources: usize) -> Self {
        Self {
            views: std::iter::repeat_with(SlotView::default)
                .take(sources)
                .collect(),
            ..Self::default()
        }
    }

    /// Takes in a commitment above processed, each once.
    pub(super) fn commit(&mut self, update: Update, status: SlotStatus) {
        self.confirms_newest = true;
        if !self.has(status) {
            self.commitments.push(update);
        }
    }

    fn has(&self, status: SlotStatus) -> bool {
        let is_this =
            |update: &Update| matches!(&update.body, Body::Slot(slot) if slot.status == status);
        self.commitments.iter().any(is_this)
    }

    /// Whether the slot was given out and reported to be confirmed, or finalized.
    pub(super) fn is_given_and_committed(&self) -> bool {
        self.given.is_some() && !self.commitments.is_empty()
    }

    /// Whether the slot was given out and reported to be finalized.
    pub(super) fn is_given_and_finalized(&self) -> bool {
        self.given.is_some() && self.has(SlotStatus::Finalized)
    }

    /// The commitments of a slot that was given out, each once.
    pub(super) fn take_commitments(&mut self) -> Vec<Update> {
        if self.given.is_none() {
            return Vec::new();
        }
        let due = self
            .commitments
            .get(self.commitments_given..)
            .unwrap_or_default();
        let due = due.to_vec();
        self.commitments_given = self.commitments.len();
        due
    }

    /// Takes back that the slot was given out. Its commitments go with it.
    pub(super) fn withdraw(&mut self) {
        self.given = None;
        self.commitments_given = 0;
    }

    /// Every bank of every source.
    pub(super) fn banks(&self) -> impl Iterator<Item = &CollectedBank> {
        self.views.iter().flat_map(|view| &view.banks)
    }
}
