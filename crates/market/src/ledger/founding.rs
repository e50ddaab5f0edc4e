//! The first root: the first answers, brought to one slot.

use solana_pubkey::Pubkey;

use super::{Answer, Ledger};
use crate::{accounts::ByAddress, bank::Stage, content::Content, state::State};

/// The first answers, collected until they can be brought to one slot.
#[derive(Default)]
pub(super) struct Seed {
    answers: Vec<Answer>,
    complete: bool,
}

impl Ledger {
    /// Takes in one of the first answers.
    pub(crate) fn seed(&mut self, answer: Answer) {
        self.seed.answers.push(answer);
    }

    /// There are no more first answers: the market begins when the stream has reached them.
    pub(crate) fn seeded(&mut self) {
        self.seed.complete = true;
        self.advance();
    }

    /// Makes the first root, once the stream has reached the last of the first answers.
    pub(super) fn found(&mut self) -> Option<()> {
        if !self.seed.complete {
            return None;
        }
        let contexts = || self.seed.answers.iter().map(|answer| answer.context_slot);
        let root = contexts().max()?;
        let path = self.path(contexts().min()?, root)?;
        let mut written = ByAddress::default();
        for slot in path {
            for (pubkey, write) in self.accounts.writes(slot) {
                written.insert(*pubkey, (slot, write.content.clone()));
            }
        }
        self.fill(written);
        self.banks = self.banks.split_off(&root);
        self.accounts.retain(|slot| slot >= root);
        let mut state = State::default();
        let get = |pubkey: &Pubkey| self.accounts.get(root, pubkey);
        for pool in self.index.pools() {
            state.refresh(*pool, get, &mut self.wanted);
        }
        if let Some(Content::Clock(clock)) = get(&cpmm::ids::CLOCK) {
            state.set_clock(*clock);
        }
        self.banks.get_mut(&root)?.stage = Stage::Sealed(state);
        self.root = Some(root);
        self.orphans = 0;
        Some(())
    }

    /// Fills the rooted accounts with the first answers and with what was `written` since, the last
    /// write of each account. Pools come first: what belongs to none is not kept. Answers are moved
    /// from where they were decoded to where they stay, because there is a lot of them.
    fn fill(&mut self, mut written: ByAddress<(u64, Content)>) {
        let answers = std::mem::take(&mut self.seed).answers;
        let contents = || {
            answers
                .iter()
                .flat_map(|answer| &answer.accounts)
                .map(|(_, content)| content)
        };
        self.accounts.reserve(contents());
        let is_pool = |content: &&Content| matches!(content, Content::Pool(_));
        self.index.reserve(contents().filter(is_pool).count());
        let read = answers.iter().flat_map(|answer| &answer.accounts);
        let read = read.map(|(pubkey, content)| (pubkey, content));
        let told = written
            .iter()
            .map(|(pubkey, (_, content))| (pubkey, content));
        for (pubkey, content) in read.chain(told) {
            self.index.register(*pubkey, None, content);
        }
        for answer in answers {
            let context = answer.context_slot;
            for (pubkey, content) in answer.accounts {
                let newer = written.remove(&pubkey).filter(|(slot, _)| *slot >= context);
                self.keep(pubkey, newer.map_or(content, |(_, content)| content));
            }
        }
        for (pubkey, (_, content)) in written {
            self.keep(pubkey, content);
        }
    }

    fn keep(&mut self, pubkey: Pubkey, content: Content) {
        if self.index.is_kept(&pubkey, &content) {
            self.accounts.add(pubkey, content);
        }
    }

    /// The slots that lead from `first` to `last`, both included, oldest first; `None` while `last`
    /// is not complete or a parent is not told.
    fn path(&self, first: u64, last: u64) -> Option<Vec<u64>> {
        self.banks.get(&last).filter(|bank| bank.frozen)?;
        let mut path = vec![last];
        let mut oldest = last;
        while oldest > first {
            oldest = self.banks.get(&oldest)?.parent?;
            // A skipped `first` leaves its parent, whose writes every answer contains.
            if self.banks.contains_key(&oldest) {
                path.push(oldest);
            }
        }
        path.reverse();
        Some(path)
    }
}
