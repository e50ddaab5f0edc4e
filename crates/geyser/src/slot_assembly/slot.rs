//! Assembled slot: the banks that each source has delivered of one slot, and which of them was given out (pure).

use sluice_chain_types::SlotStatus;

use crate::{
    generation::Generation,
    slot_assembly::{
        SOURCES_OF_SERVER,
        bank::CollectedBank,
        owed::Owed,
        source::{Source, main_source},
    },
    update::Update,
};

/// One slot.
#[derive(Debug, Default)]
pub(super) struct AssembledSlot {
    /// By source.
    pub(super) views: Vec<SlotView>,
    pub(super) given: Option<Given>,
    /// Of the block that was given out.
    pub(super) owed: Owed,
    /// Hashes of blocks that were given out and replaced.
    pub(super) lost: Vec<String>,
    /// Commitments above processed, each once for a block.
    commitments: Vec<Commitment>,
    /// Those that were given out.
    committed: Vec<SlotStatus>,
}

/// A commitment above processed, as a source has reported it.
#[derive(Debug)]
struct Commitment {
    status: SlotStatus,
    /// The block that the source had delivered last; `None` when it had delivered none, and so no other than was given out.
    blockhash: Option<String>,
    update: Update,
}

/// The bank that was given out.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) blockhash: String,
    /// Where it was taken from.
    pub(super) source: usize,
}

/// A slot as one connection has delivered it.
#[derive(Debug, Default)]
pub(super) struct SlotView {
    /// In the order in which they began; more than one where a replay or a replacement block followed.
    pub(super) banks: Vec<CollectedBank>,
    /// Whether a creation of a bank was reported, in whatever order.
    pub(super) was_created: bool,
    /// The newest generation sent when the slot was first known to be frozen.
    pub(super) frozen_in: Option<Generation>,
    /// The newest generation sent when the server, here or on its side stream, had first reported the end of a bank.
    pub(super) ended_in: Option<Generation>,
    /// It was given up, and nothing of it has come since.
    pub(super) is_dead: bool,
    /// How many slots down its ancestry were reported to be complete before it on this connection, without a gap.
    pub(super) complete_ancestry: Option<u32>,
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
        let opens = self.banks.last().is_none_or(|bank| {
            // What is replayed is collected by itself, and complete by itself.
            let replays = |since| generation > since && source.may_replay(generation, slot);
            match bank.closed_in() {
                Some(closed_in) => replays(closed_in),
                // A bank of which nothing has come but its creation, after another one.
                None => self.banks.len() > 1 && bank.is_empty() && replays(bank.opened_in),
            }
        });
        if opens {
            self.banks.push(CollectedBank::new(generation, None));
        }
        self.banks.last_mut()
    }

    /// Takes out what came after the metadata of a bank for a replay of the slot that did not follow.
    pub(super) fn take_content_after_meta(&mut self) -> Vec<Update> {
        let [.., before, last] = self.banks.as_mut_slice() else {
            return Vec::new();
        };
        let is_after = before.closed_in().is_some();
        if !is_after || last.witnessed_in.is_some() || last.closed_in().is_some() {
            return Vec::new();
        }
        let content = last.take_content();
        self.banks.pop();
        content
    }

    /// Whether an update came before in any bank, or a later write of the same account did.
    pub(super) fn has_delivered(&self, update: &Update) -> bool {
        self.banks.iter().any(|bank| bank.has_delivered(update))
    }

    /// Whether the newest bank is being collected. One of which only the creation came, after another, may be no bank at all.
    pub(super) fn is_in_progress(&self) -> bool {
        let is_first = self.banks.len() == 1;
        let newest = self.banks.last();
        newest.is_some_and(|bank| !bank.has_ended() && (is_first || !bank.is_empty()))
    }

    /// Whether a bank of the slot began under the filter and is being collected.
    pub(super) fn is_witnessed(&self) -> bool {
        self.banks
            .last()
            .is_some_and(|bank| bank.witnessed_in.is_some() && !bank.has_ended())
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

    /// Takes in a commitment above processed.
    pub(super) fn commit(&mut self, source: usize, status: SlotStatus, update: Update) {
        let banks = self.views.get(source).map_or(&[][..], |view| &view.banks);
        let blockhash = banks.iter().rev().find_map(CollectedBank::blockhash);
        let is_same =
            |known: &&Commitment| known.status == status && known.blockhash.as_deref() == blockhash;
        if self.commitments.iter().any(|known| is_same(&known)) {
            return;
        }
        self.commitments.push(Commitment {
            status,
            blockhash: blockhash.map(str::to_owned),
            update,
        });
    }

    /// Whether this block of the slot, and no other, was reported to be committed.
    pub(super) fn is_committed(&self, blockhash: &str) -> bool {
        let mut commitments = self.commitments.iter();
        commitments.any(|known| known.blockhash.as_deref() == Some(blockhash))
    }

    /// Commitments of the block that was given out.
    fn given_commitments(&self) -> impl Iterator<Item = &Commitment> {
        let given = self.given.as_ref().map(|given| given.blockhash.as_str());
        self.commitments.iter().filter(move |known| {
            given.is_some() && (known.blockhash.is_none() || known.blockhash.as_deref() == given)
        })
    }

    /// Whether the slot was given out and reported to be confirmed, or finalized.
    pub(super) fn is_given_and_committed(&self) -> bool {
        self.given_commitments().next().is_some()
    }

    /// Whether the slot was given out and reported to be finalized.
    pub(super) fn is_given_and_finalized(&self) -> bool {
        self.given_commitments()
            .any(|known| known.status == SlotStatus::Finalized)
    }

    /// The commitments of the block that was given out, each once.
    pub(super) fn take_commitments(&mut self) -> Vec<Update> {
        let mut due = Vec::new();
        let mut statuses = Vec::new();
        for known in self.given_commitments() {
            if !self.committed.contains(&known.status) && !statuses.contains(&known.status) {
                statuses.push(known.status);
                due.push(known.update.clone());
            }
        }
        self.committed.extend(statuses);
        due
    }

    /// Takes back that the slot was given out. Its commitments go with it.
    pub(super) fn withdraw(&mut self) {
        self.given = None;
        self.owed = Owed::default();
        self.committed.clear();
    }

    /// The connection of a source is over: what it has delivered in part is dropped. Returns what is missing for certain of the
    /// block that was given out.
    pub(super) fn disconnect(&mut self, source: usize) -> Vec<Update> {
        let Some(view) = self.views.get_mut(source) else {
            return Vec::new();
        };
        let banks = std::mem::take(view).banks;
        let Some(given) = &self.given else {
            return Vec::new();
        };
        if main_source(given.source) != main_source(source) || self.owed.is_lost() {
            return Vec::new();
        }
        let copies = banks.into_iter();
        for mut bank in copies.filter(|bank| bank.is_copy_of(&given.blockhash)) {
            self.owed.keep(&mut bank);
        }
        if main_source(source) == source {
            self.owed.lose()
        } else {
            Vec::new()
        }
    }

    /// Takes out what has come once more of the block that was given out, with its source. Of the server that the block was
    /// taken from it is what that one has not delivered before, on its stream and its side stream.
    pub(super) fn take_copies(&mut self) -> Vec<(usize, Update)> {
        let Some(given) = &self.given else {
            return Vec::new();
        };
        let mut content = Vec::new();
        for (server, views) in self.views.chunks_mut(SOURCES_OF_SERVER).enumerate() {
            let is_own = given.source / SOURCES_OF_SERVER == server && !self.owed.is_lost();
            let (mut original, mut copies) = (None, Vec::new());
            for (at, view) in views.iter_mut().enumerate() {
                let banks = view.banks.iter_mut();
                for bank in banks.filter(|bank| bank.blockhash() == Some(&given.blockhash)) {
                    if !bank.is_spent() && bank.closed_in().is_some() {
                        let source = server * SOURCES_OF_SERVER + at;
                        let copied = if is_own {
                            bank.take_content()
                        } else {
                            bank.take_last_content()
                        };
                        copies.extend(copied.into_iter().map(|update| (source, update)));
                    } else if bank.is_given() {
                        original.get_or_insert(bank);
                    }
                }
            }
            if let Some(original) = original {
                copies.retain(|(_, update)| original.note_late(update));
            }
            content.extend(copies);
        }
        content
    }

    /// Takes in what came of the block that was given out after it was. Returns it where it is missing for certain.
    pub(super) fn take_late(
        &mut self,
        source: usize,
        update: Update,
        filter: Generation,
    ) -> Option<Update> {
        let given = self.given.as_ref()?;
        let server = main_source(given.source);
        if server == main_source(source) && !self.owed.is_lost() {
            return self.owed.take_own(update);
        }
        let own = self.views.iter().skip(server).take(SOURCES_OF_SERVER);
        let mut own = own.flat_map(|view| &view.banks);
        let is_known = !self.owed.is_lost()
            && own.any(|bank| bank.is_copy_of(&given.blockhash) && bank.has_same(&update));
        if is_known {
            return None;
        }
        self.owed.take(update, filter)
    }

    /// Every bank of every source.
    pub(super) fn banks(&self) -> impl Iterator<Item = &CollectedBank> {
        self.views.iter().flat_map(|view| &view.banks)
    }
}
