//! Chain script: random forks, deaths, revivals and replacements of blocks on a scripted chain.
//!
//! It stands for what validators and their leaders do among themselves, only far more often. The same seed and the same calls
//! make the same chain; what happens in a block is its author's business.

use std::collections::BTreeSet;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::scripted_chain::{BlockId, Message, ScriptedChain, Write};

/// How likely things are in one script, in parts of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weather {
    /// Of new blocks, how many build on any block that may be built on, not on the best.
    pub forks: u32,
    /// Of steps, in how many a block is given up, and in how many one comes back.
    pub deaths: u32,
    /// Of steps, in how many a slot gets a replacement block without a word about the first.
    pub replacements: u32,
    /// Of new blocks, how many are written in turns with another bank of their slot, which is given up without a word. Only for
    /// servers that number banks: nothing else would tell which of the two the content is of.
    pub rivals: u32,
    /// Of new blocks, how many have a write that is reported only after they are frozen.
    pub late_writes: u32,
    /// Of new blocks, of how many it is not said that they are processed.
    pub unprocessed: u32,
}

impl Weather {
    /// Some weather: calm, usual or rough in each respect.
    #[must_use]
    pub fn draw(rng: &mut impl Rng) -> Self {
        let mut one_of = |likely: [u32; 3]| *likely.choose(rng).unwrap_or(&0);
        Self {
            forks: one_of([5, 15, 40]),
            deaths: one_of([0, 5, 15]),
            replacements: one_of([0, 0, 8]),
            rivals: one_of([0, 0, 15]),
            late_writes: 20,
            unprocessed: 10,
        }
    }
}

/// Who decides what happens in a block.
pub trait Author {
    /// Lets things happen in a block that was just opened.
    fn fill(&mut self, chain: &ScriptedChain, block: BlockId, rng: &mut StdRng);

    /// Makes one more write in a block, which is reported later.
    fn write_late(&mut self, chain: &ScriptedChain, block: BlockId, rng: &mut StdRng) -> Write;
}

/// A script that is being played.
pub struct ChainScript {
    /// The chain that it is played on.
    pub chain: ScriptedChain,
    /// What everything is drawn from.
    pub rng: StdRng,
    weather: Weather,
    /// Writes of frozen blocks that were not reported yet.
    late: Vec<(BlockId, Write)>,
    /// Slots that were not said to be dead when they got a replacement block: no chain gives them the first one back.
    replaced: BTreeSet<u64>,
}

impl ChainScript {
    /// The script of a seed, in this weather.
    #[must_use]
    pub fn random(seed: u64, weather: Weather, chain: ScriptedChain) -> Self {
        Self {
            chain,
            rng: StdRng::seed_from_u64(seed),
            weather,
            late: Vec::new(),
            replaced: BTreeSet::new(),
        }
    }

    /// Whether something of this likelihood, in parts of a hundred, happens.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    /// One step of the chain.
    pub fn step(&mut self, author: &mut impl Author) {
        if self.chance(self.weather.deaths) {
            self.kill();
        }
        if self.chance(self.weather.deaths) {
            self.revive(author);
        }
        if self.chance(self.weather.replacements) {
            self.replace(author);
        }
        match self.rng.random_range(0..100) {
            0..65 => self.extend(author),
            65..75 => self.report_late(),
            75..92 => self.confirm(),
            _ => self.finalize(),
        }
    }

    /// The chain decides, for good, for a new block on its best one.
    pub fn end(&mut self, author: &mut impl Author) -> u64 {
        self.report_late();
        let (slot, parent) = {
            let record = self.chain.lock();
            (record.tree.last() + 1, record.tree.best())
        };
        let block = self.chain.open(slot, parent);
        author.fill(&self.chain, block, &mut self.rng);
        self.chain.seal(block);
        self.chain.confirm(block);
        self.chain.finalize(block);
        slot
    }

    /// A new block, usually on the best one.
    fn extend(&mut self, author: &mut impl Author) {
        let forks = self.chance(self.weather.forks);
        let skipped = u64::from(self.chance(10));
        let (slot, best, candidates) = {
            let record = self.chain.lock();
            let slot = record.tree.last() + 1 + skipped;
            (slot, record.tree.best(), record.tree.candidates())
        };
        let any = candidates.choose(&mut self.rng).copied();
        let parent = any.filter(|_| forks).unwrap_or(best);
        let block = self.produce(slot, parent, author);
        if self.chance(self.weather.late_writes) {
            let write = author.write_late(&self.chain, block, &mut self.rng);
            self.late.push((block, write));
        }
    }

    /// A block of a slot, from its beginning to its end.
    fn produce(&mut self, slot: u64, parent: BlockId, author: &mut impl Author) -> BlockId {
        let rivals = self.chance(self.weather.rivals);
        let rival = rivals.then(|| self.chain.open(slot, parent));
        if let Some(rival) = rival {
            self.replaced.insert(slot);
            author.fill(&self.chain, rival, &mut self.rng);
        }
        let block = self.chain.open(slot, parent);
        author.fill(&self.chain, block, &mut self.rng);
        if let Some(rival) = rival {
            author.fill(&self.chain, rival, &mut self.rng);
            author.fill(&self.chain, block, &mut self.rng);
        }
        self.chain.freeze(block);
        if !self.chance(self.weather.unprocessed) {
            self.chain.seal(block);
        }
        block
    }

    /// What was not reported of blocks that live is reported now.
    fn report_late(&mut self) {
        for (block, write) in std::mem::take(&mut self.late) {
            let (lives, slot) = {
                let record = self.chain.lock();
                (record.tree.lives(block), record.tree.block(block).slot)
            };
            if lives {
                self.chain.report(Message::write(slot, &write));
            }
        }
    }

    /// Living blocks from the best one down to `floor`, which is not among them.
    fn above(&self, from: BlockId, floor: BlockId) -> Vec<BlockId> {
        let record = self.chain.lock();
        let ancestry = record.tree.ancestry(from);
        ancestry.take_while(|block| *block != floor).collect()
    }

    fn confirm(&mut self) {
        let (best, confirmed) = {
            let record = self.chain.lock();
            (record.tree.best(), record.tree.confirmed())
        };
        let above = self.above(best, confirmed);
        let Some(block) = above.choose(&mut self.rng).copied() else {
            return;
        };
        self.report_late();
        if self.chance(15) {
            self.chain.finalize(block);
        } else {
            self.chain.confirm(block);
        }
    }

    fn finalize(&mut self) {
        let (confirmed, finalized) = {
            let record = self.chain.lock();
            (record.tree.confirmed(), record.tree.finalized())
        };
        let above = self.above(confirmed, finalized);
        if let Some(block) = above.choose(&mut self.rng).copied() {
            self.chain.finalize(block);
        }
    }

    fn kill(&mut self) {
        let unconfirmed: Vec<BlockId> = {
            let record = self.chain.lock();
            let confirmed = record.tree.confirmed();
            let candidates = record.tree.candidates().into_iter();
            candidates.filter(|block| *block != confirmed).collect()
        };
        let Some(block) = unconfirmed.choose(&mut self.rng).copied() else {
            return;
        };
        // Of those that build on a dead one it need not be said.
        let rng = &mut self.rng;
        self.chain
            .kill(block, |victim| victim == block || rng.random_bool(0.5));
    }

    /// A dead slot has a block after all, the same or another one.
    fn revive(&mut self, author: &mut impl Author) {
        let gone = self.chain.lock().tree.revivable();
        let Some(id) = gone.choose(&mut self.rng).copied() else {
            return;
        };
        let block = self.chain.lock().tree.block(id).clone();
        if self.chance(50) && !self.replaced.contains(&block.slot) {
            let late = &self.late;
            let is_late =
                |write: &Write| late.iter().any(|(_, late)| late.version == write.version);
            self.chain.revive(id, |write| !is_late(write));
            if !self.chance(self.weather.unprocessed) {
                self.chain.seal(id);
            }
        } else {
            let parent = block.parent.expect("the first one never dies");
            self.produce(block.slot, parent, author);
        }
    }

    /// A slot turns out to have a replacement block, without a word about the first one.
    fn replace(&mut self, author: &mut impl Author) {
        let leaves: Vec<BlockId> = {
            let record = self.chain.lock();
            let confirmed = record.tree.confirmed();
            let candidates = record.tree.candidates().into_iter();
            candidates
                .filter(|block| *block != confirmed && record.tree.is_leaf(*block))
                .collect()
        };
        let Some(id) = leaves.choose(&mut self.rng).copied() else {
            return;
        };
        let before = self.chain.lock().tree.block(id).clone();
        self.replaced.insert(before.slot);
        let parent = before.parent.expect("the confirmed one is below");
        self.produce(before.slot, parent, author);
    }
}
