//! Numbered chain: plays blocks of numbered events on the scripted chain, some of which it drops in the end.

use std::collections::{BTreeSet, VecDeque};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_testkit::scripted_chain::{BlockId, ScriptedChain, State};

use super::events::{Event, NumberedEvents};

/// The first slot, in which nothing happens.
const FIRST_SLOT: u64 = 1_000;

/// How many blocks a block is behind the newest one when it is confirmed. On mainnet one or two.
const CONFIRMED_BEHIND: usize = 2;

/// How many blocks a block is behind the newest one when it is finalized, as on mainnet.
const FINALIZED_BEHIND: usize = 31;

/// Of a hundred slots, how many are skipped, how many are declared dead, how many the chain abandons, and how many
/// are declared dead and then made anew.
const SKIPPED: u32 = 4;
const DEAD: u32 = 4;
const ABANDONED: u32 = 4;
const REPAIRED: u32 = 3;

/// Of a hundred statuses, how many are left out because that of a descendant follows.
const UNREPORTED_STATUS: u32 = 10;

/// Whether a block is part of the chain in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is confirmed and finalized.
    Kept,
    /// It is declared dead, replaced or abandoned.
    Dropped,
}

/// A block that was streamed at processed.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its slot.
    pub slot: u64,
    /// What becomes of it.
    pub fate: Fate,
    /// What happened in it.
    pub events: Vec<Event>,
}

/// What a block is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Kept,
    Dead,
    Abandoned,
}

/// A block of which only the first half was played.
struct OpenBlock {
    id: BlockId,
    course: Course,
    events: Vec<Event>,
    is_eventful: bool,
}

/// An endless chain. The same seed and the same steps give the same one.
pub struct NumberedChain {
    chain: ScriptedChain,
    rng: StdRng,
    numbered: NumberedEvents,
    slot: u64,
    /// The newest block that is meant to be kept.
    tip: BlockId,
    open: Option<OpenBlock>,
    unconfirmed: VecDeque<BlockId>,
    unfinalized: VecDeque<BlockId>,
    /// Blocks to be declared dead.
    dying: Vec<BlockId>,
    /// Every block in which something may have happened.
    played: Vec<(BlockId, Vec<Event>)>,
}

impl NumberedChain {
    /// The chain of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let chain = ScriptedChain::new(FIRST_SLOT, State::new());
        let tip = chain.lock().tree.confirmed();
        Self {
            chain,
            rng: StdRng::seed_from_u64(seed),
            numbered: NumberedEvents::new(seed),
            slot: FIRST_SLOT,
            tip,
            open: None,
            unconfirmed: VecDeque::new(),
            unfinalized: VecDeque::new(),
            dying: Vec::new(),
            played: Vec::new(),
        }
    }

    /// What it is played on.
    #[must_use]
    pub const fn scripted(&self) -> &ScriptedChain {
        &self.chain
    }

    /// The newest slot that began.
    #[must_use]
    pub const fn newest_slot(&self) -> u64 {
        self.slot
    }

    /// Every block with content so far. What does not stand below the newest block is dropped.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        let record = self.chain.lock();
        let kept: BTreeSet<BlockId> = record.tree.ancestry(self.tip).collect();
        let blocks = self.played.iter().map(|(id, events)| Block {
            slot: record.tree.block(*id).slot,
            fate: if kept.contains(id) {
                Fate::Kept
            } else {
                Fate::Dropped
            },
            events: events.clone(),
        });
        blocks.collect()
    }

    /// Half a slot: one begins, or the one that began ends. Clients come and go between the halves too. Without
    /// `is_eventful`, nothing happens in a slot that begins, and its block is kept.
    pub fn step(&mut self, is_eventful: bool) {
        match self.open.take() {
            Some(open) => self.finish(open),
            None => self.begin(is_eventful),
        }
    }

    fn begin(&mut self, is_eventful: bool) {
        for block in std::mem::take(&mut self.dying) {
            self.chain.kill(block, |_| true);
        }
        self.slot += 1;
        let lot = if is_eventful {
            self.rng.random_range(0..100)
        } else {
            u32::MAX
        };
        const DEAD_BELOW: u32 = SKIPPED + DEAD;
        const ABANDONED_BELOW: u32 = DEAD_BELOW + ABANDONED;
        const REPAIRED_BELOW: u32 = ABANDONED_BELOW + REPAIRED;
        let course = match lot {
            0..SKIPPED => return,
            SKIPPED..DEAD_BELOW => Course::Dead,
            DEAD_BELOW..ABANDONED_BELOW => Course::Abandoned,
            ABANDONED_BELOW..REPAIRED_BELOW => {
                let open = self.open(Course::Dead, is_eventful);
                self.finish(open);
                for block in std::mem::take(&mut self.dying) {
                    self.chain.kill(block, |_| true);
                }
                Course::Kept
            }
            _ => Course::Kept,
        };
        self.open = Some(self.open(course, is_eventful));
    }

    /// The first half of a block: its bank and its transactions.
    fn open(&mut self, course: Course, is_eventful: bool) -> OpenBlock {
        let id = self.chain.open(self.slot, self.tip);
        let mut events = Vec::new();
        if is_eventful {
            let (transactions, happened) = self.numbered.transactions(&mut self.rng);
            events = happened;
            for transaction in transactions {
                self.chain.execute(self.slot, transaction);
            }
        }
        OpenBlock {
            id,
            course,
            events,
            is_eventful,
        }
    }

    /// The second half: its writes, by its last transaction, and its end.
    fn finish(&mut self, open: OpenBlock) {
        let OpenBlock { id, mut events, .. } = open;
        if open.is_eventful {
            let by = {
                let record = self.chain.lock();
                let last = record.tree.block(id).transactions.last();
                last.map(|last| last.signature)
            };
            for (event, address, content) in self.numbered.writes(&mut self.rng) {
                self.chain.write(id, address, content, by);
                events.push(event);
            }
            self.played.push((id, events));
        }
        self.chain.freeze(id);
        self.chain.seal(id);
        match open.course {
            Course::Kept => {
                self.tip = id;
                self.unconfirmed.push_back(id);
            }
            Course::Dead => self.dying.push(id),
            Course::Abandoned => {}
        }
        self.decide();
    }

    /// Confirms and finalizes what is far enough behind, and leaves out some of it.
    fn decide(&mut self) {
        while self.unconfirmed.len() > CONFIRMED_BEHIND {
            let block = self.unconfirmed.pop_front().expect("longer than zero");
            self.unfinalized.push_back(block);
            if self.is_reported() {
                self.chain.confirm(block);
            }
        }
        while self.unfinalized.len() > FINALIZED_BEHIND {
            let block = self.unfinalized.pop_front().expect("longer than zero");
            if self.is_reported() {
                self.chain.finalize(block);
            }
        }
    }

    fn is_reported(&mut self) -> bool {
        self.rng.random_range(0..100) >= UNREPORTED_STATUS
    }
}
