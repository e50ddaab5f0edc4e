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
    /// The block that it is of; `None` when the source had delivered none, and so no other than was given out.
    blockhash: Option<String>,
    update: Update,
}

/// The bank that was given out.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) blockhash: String,
    /// Slot that it builds on. Its connection may be over by the time that this matters.
    pub(super) parent: Option<u64>,
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
    /// What the server, here or on its side stream, has reported the end of.
    pub(super) ended: Vec<EndedBank>,
    /// It was given up, and nothing of it has come since.
    pub(super) is_dead: bool,
    /// How many slots down its ancestry were reported to be complete before it on this connection, without a gap.
    pub(super) complete_ancestry: Option<u32>,
}

/// A bank of which a server has reported the end.
#[derive(Debug)]
pub(super) struct EndedBank {
    /// Hash of its block.
    pub(super) blockhash: String,
    /// The newest generation sent at that moment.
    pub(super) ended_in: Generation,
}

impl SlotView {
    pub(super) fn freeze(&mut self, source: &Source) {
        self.frozen_in.get_or_insert(source.last_sent());
    }

    /// The bank that content, metadata and statuses of `generation` belong to.
    pub(super) fn bank_for(
        &mut self,
        slot: u64,
        id: Option<u64>,
        generation: Generation,
        source: &Source,
    ) -> Option<&mut CollectedBank> {
        let is_first = self.newest(id).is_none();
        let is_replayed = self.copies(id).count() > 1;
        let opens = self.newest(id).is_none_or(|bank| {
            // What is replayed is collected by itself, and complete by itself.
            let replays = |since| generation > since && source.may_replay(generation, slot);
            match bank.closed_in() {
                Some(closed_in) => replays(closed_in),
                // A bank of which nothing has come but its creation, after another one.
                None => is_replayed && bank.is_empty() && replays(bank.opened_in),
            }
        });
        if opens {
            // A server may number content, and not the creation that came before it.
            let created = self.banks.last_mut();
            let created = created.filter(|bank| is_first && bank.id.is_none() && bank.is_empty());
            match created {
                Some(created) => created.id = id,
                None => self.banks.push(CollectedBank::new(id, generation, None)),
            }
        }
        self.newest(id)
    }

    /// The bank with this number, and replays of it; without a number, all banks.
    pub(super) fn copies(
        &self,
        id: Option<u64>,
    ) -> impl DoubleEndedIterator<Item = &CollectedBank> {
        let banks = self.banks.iter();
        banks.filter(move |bank| id.is_none() || bank.id == id)
    }

    /// The bank with this number, or its newest replay; without a number, the newest bank.
    pub(super) fn newest(&mut self, id: Option<u64>) -> Option<&mut CollectedBank> {
        let mut banks = self.banks.iter_mut().rev();
        banks.find(|bank| id.is_none() || bank.id == id)
    }

    /// Takes out what came after the metadata of a bank for a replay of the slot that did not follow.
    pub(super) fn take_content_after_meta(&mut self) -> Vec<Update> {
        let is_closed = |bank: &CollectedBank| bank.closed_in().is_some();
        let mut content = Vec::new();
        for at in (0..self.banks.len()).rev() {
            let (before, after) = self.banks.split_at(at);
            let Some((bank, after)) = after.split_first() else {
                continue;
            };
            let is_newest = after.iter().all(|later| later.id != bank.id);
            let original = before.iter().rev().find(|before| before.id == bank.id);
            let is_over = is_newest && original.is_some_and(is_closed);
            if is_over && bank.witnessed_in.is_none() && !is_closed(bank) {
                content.extend(self.banks.remove(at).take_content());
            }
        }
        content
    }

    /// Takes out the bank with this number, and replays of it; without a number, all banks.
    pub(super) fn take_banks(&mut self, id: Option<u64>) -> Vec<CollectedBank> {
        let is_of = |bank: &mut CollectedBank| id.is_none() || bank.id == id;
        self.banks.extract_if(.., is_of).collect()
    }

    /// Whether an update came before in any bank, or a later write of the same account did.
    pub(super) fn has_delivered(&self, update: &Update) -> bool {
        self.banks.iter().any(|bank| bank.has_delivered(update))
    }

    /// Whether the newest bank is being collected. One of which only the creation came, after another, may be no bank at all.
    pub(super) fn is_in_progress(&self) -> bool {
        let is_first = self.banks.len() == 1;
        let newest = self.banks.last();
        let numbered = self.banks.iter().filter(|bank| bank.id.is_some());
        newest.is_some_and(|bank| !bank.has_ended() && (is_first || !bank.is_empty()))
            || numbered.into_iter().any(CollectedBank::is_open)
    }

    /// Whether a bank of the slot began under the filter and is being collected.
    pub(super) fn is_witnessed(&self) -> bool {
        let newest = self.banks.last().into_iter();
        let numbered = self.banks.iter().filter(|bank| bank.id.is_some());
        newest
            .chain(numbered)
            .any(|bank| bank.witnessed_in.is_some() && !bank.has_ended())
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

    /// Takes in a commitment above processed: of this block, or, where its source has delivered none, of the one given out.
    pub(super) fn commit(&mut self, blockhash: Option<String>, status: SlotStatus, update: Update) {
        let is_same = |known: &Commitment| known.status == status && known.blockhash == blockhash;
        if self.commitments.iter().any(is_same) {
            return;
        }
        self.commitments.push(Commitment {
            status,
            blockhash,
            update,
        });
    }

    /// Whether this block of the slot, and no other, was reported to be committed.
    pub(super) fn is_committed(&self, blockhash: &str) -> bool {
        let mut commitments = self.commitments.iter();
        commitments.any(|known| known.blockhash.as_deref() == Some(blockhash))
    }

    /// Whether a block was given out and replaced for good: one that was committed since, as the one in its place was not,
    /// comes back.
    pub(super) fn is_lost(&self, blockhash: &str) -> bool {
        let is_given_committed = || {
            let given = self.given.as_ref();
            given.is_some_and(|given| self.is_committed(&given.blockhash))
        };
        self.lost.iter().any(|lost| lost == blockhash)
            && (!self.is_committed(blockhash) || is_given_committed())
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
        let is_stream = main_source(source) == source;
        if main_source(given.source) != main_source(source) || self.owed.is_lost() {
            return Vec::new();
        }
        // The server is lost with its stream, whether its side stream goes on or not.
        let side = self.views.iter().skip(source).take(SOURCES_OF_SERVER);
        let side = side.filter(|_| is_stream).flat_map(|view| &view.banks);
        let copies = banks.iter().chain(side);
        for bank in copies.filter(|bank| bank.is_copy_of(&given.blockhash)) {
            self.owed.keep(bank);
        }
        if is_stream {
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
