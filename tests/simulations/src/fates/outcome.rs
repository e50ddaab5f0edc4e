//! Outcome of a chain: what became of everything that ever happened on it (pure).

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

use sluice_testkit::{
    accounts::Content,
    scripted_chain::{Block, BlockTree},
};

/// Distinguishes one event from every other of the script: an account's lamports after a write, or a transaction's fee.
pub type Mark = u64;

/// What became of everything that ever happened, once the chain is final.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of each event its slot, and whether it happened in the end.
    pub events: BTreeMap<Mark, (u64, bool)>,
    /// What every webhook must have been sent, and the slot.
    pub news: BTreeMap<Mark, u64>,
}

impl Outcome {
    /// The outcome of a chain.
    pub fn of(tree: &BlockTree) -> Self {
        let canonical = tree.canonical();
        let mut outcome = Self::default();
        for (id, block) in tree.blocks() {
            let stands = canonical.contains(&id);
            let marks = marks(block).map(|mark| (mark, (block.slot, stands)));
            outcome.events.extend(marks);
            if stands {
                let news = news(block).into_iter().map(|mark| (mark, block.slot));
                outcome.news.extend(news);
            }
        }
        outcome
    }
}

/// What is emitted of the block in any case: its transactions, and each account as it was last written.
fn news(block: &Block) -> BTreeSet<Mark> {
    let last: BTreeMap<Pubkey, Mark> = writes(block).collect();
    last.into_values().chain(fees(block)).collect()
}

fn marks(block: &Block) -> impl Iterator<Item = Mark> {
    writes(block).map(|(_, mark)| mark).chain(fees(block))
}

fn writes(block: &Block) -> impl Iterator<Item = (Pubkey, Mark)> {
    block.writes.iter().map(|write| match &write.content {
        Content::Other(account) => (write.key, account.lamports),
        other => panic!("the script writes no {other:?}"),
    })
}

fn fees(block: &Block) -> impl Iterator<Item = Mark> {
    block.transactions.iter().map(|executed| executed.fee)
}
