//! Owed content: what other servers delivered of a block given out, and its own server has not yet (pure).
//!
//! Each server numbers writes in its own way, so a write is the same at two of them when the same transaction wrote the same
//! account. While the server that the block was taken from is connected it delivers itself what it left out; once it is
//! lost, the word of the others is all there is.

use super::bank::{CollectedBank, Delivered};
use crate::{generation::Generation, update::Update};

/// Of one block that was given out.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// The filter that it was given out under. What only a later one selects is not missing.
    filter: Generation,
    /// What connections had delivered of it that are over.
    kept: Delivered,
    /// The stream that it was taken from is over.
    is_lost: bool,
    /// What the others have delivered beyond that.
    updates: Vec<Update>,
}

impl Owed {
    /// Of a block that is given out under a filter.
    pub(super) fn new(filter: Generation) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Whether the stream that the block was taken from is over.
    pub(super) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Keeps what a connection of its server has delivered of the block.
    pub(super) fn keep(&mut self, bank: &CollectedBank) {
        self.kept.merge(bank.delivered());
    }

    /// The stream that the block was taken from is over. Returns what is missing of the block.
    pub(super) fn lose(&mut self) -> Vec<Update> {
        self.is_lost = true;
        let mut missing = std::mem::take(&mut self.updates);
        missing.retain(|update| self.kept.learn(update));
        missing
    }

    /// Takes in what another server has delivered of the block, selected by `filter`. Returns it where it is missing for certain.
    pub(super) fn take(&mut self, update: Update, filter: Generation) -> Option<Update> {
        if self.kept.has(&update) || filter > self.filter {
            return None;
        }
        if self.is_lost {
            self.kept.learn(&update);
            return Some(update);
        }
        self.updates.push(update);
        None
    }

    /// Takes in what the server that the block was taken from has delivered after it was. Returns it where it is missing.
    pub(super) fn take_own(&mut self, update: Update) -> Option<Update> {
        self.updates.retain(|owed| !owed.is_same_content(&update));
        self.kept.add(&update).then_some(update)
    }
}
