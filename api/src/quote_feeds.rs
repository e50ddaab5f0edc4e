//! Quote feeds: each distinct question of the quote stream, priced once per published state for all its readers.
//!
//! A feed shows the newest quote and keeps none before it, so a slow reader skips what came between, and how many readers
//! there are costs nothing but the sending. It begins with its first reader and ends with its last, or with the reason for
//! which there is no quote any more.

mod board;
mod crowd;
mod feed;
mod reader;
mod shown;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use cpmm::BasisPoints;
use parking_lot::Mutex;
use service_kit::CancellationToken;
use sluice_market::{Market, NotReady, QuoteCommitment};
use tokio::sync::watch;

use self::{
    board::Board,
    feed::{Feed, Pace},
    shown::Shown,
};
pub use self::{crowd::Crowds, reader::Reader};
use crate::{error::ApiError, pricing::Ask};

/// What is asked: streams that ask the same share a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// What is asked of the market.
    pub ask: Ask,
    /// The slippage of the quote.
    pub slippage: BasisPoints,
}

/// The answer to a question in one slot.
pub trait Answer: Send + 'static {
    /// The slot that it is of.
    fn slot(&self) -> u64;
    /// Whether a reader of `before` learns nothing by this one.
    fn repeats(&self, before: &Self) -> bool;
    /// The answer as one line of JSON.
    ///
    /// # Errors
    /// When it cannot be written.
    fn json(&self) -> Result<Bytes, ApiError>;
}

/// What feeds follow.
pub trait Source: Clone + Send + Sync + 'static {
    /// What changes whenever another quote may be made.
    fn changes(&self) -> watch::Receiver<()>;
    /// The slot that quotes are made from.
    ///
    /// # Errors
    /// Why none can be made.
    fn slot(&self, commitment: QuoteCommitment) -> Result<u64, NotReady>;
}

impl Source for Market {
    fn changes(&self) -> watch::Receiver<()> {
        Self::changes(self)
    }

    fn slot(&self, commitment: QuoteCommitment) -> Result<u64, NotReady> {
        self.view(commitment).map(|view| view.slot().get())
    }
}

/// The open feeds. Clones share them.
#[derive(Clone)]
pub struct QuoteFeeds<S = Market> {
    source: S,
    shutdown: CancellationToken,
    open: OpenFeeds,
    pace: Pace,
}

/// The feeds that can be read, by what they answer.
#[derive(Clone, Default)]
struct OpenFeeds(Arc<Mutex<HashMap<Question, Board>>>);

impl<S: Source> QuoteFeeds<S> {
    /// None is open. All end at `shutdown`.
    #[must_use]
    pub fn new(source: S, shutdown: CancellationToken) -> Self {
        Self {
            source,
            shutdown,
            open: OpenFeeds::default(),
            pace: Pace::default(),
        }
    }

    /// A reader of the answers to a question, each of which `price` makes of the market as it is then.
    ///
    /// # Errors
    /// Why there is no answer now.
    pub fn read<A: Answer>(
        &self,
        question: Question,
        price: impl Fn() -> Result<A, ApiError> + Send + 'static,
    ) -> Result<Reader, ApiError> {
        // Held while the first answer is priced, in microseconds: all who connect again at once share that one too.
        let mut open = self.open.0.lock();
        if let Some(feed) = open.get(&question) {
            return Ok(Reader::new(feed.onlooker()));
        }
        if self.shutdown.is_cancelled() {
            return Err(ApiError::Stopping);
        }
        // Before the market is looked at, so that no change after it is missed.
        let changes = self.source.changes();
        let first = price()?;
        let shown = Board::new(Shown::first(first.slot(), &first.json()?));
        let reader = Reader::new(shown.onlooker());
        open.insert(question, shown.clone());
        drop(open);
        let feed = Feed {
            question,
            source: self.source.clone(),
            changes,
            price,
            last: first,
            shown,
            open: self.open.clone(),
            pace: self.pace,
        };
        tokio::spawn(feed.run(self.shutdown.clone()));
        Ok(reader)
    }

    /// How many feeds are open.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.open.0.lock().len()
    }
}

impl OpenFeeds {
    /// Takes a feed away, so that the next reader begins another.
    fn remove(&self, question: &Question, feed: &Board) {
        let mut open = self.0.lock();
        if open.get(question).is_some_and(|known| known.is(feed)) {
            open.remove(question);
        }
    }

    /// Takes a feed away that nobody reads any more; whether it was.
    fn remove_unread(&self, question: &Question, feed: &Board) -> bool {
        // Under the lock, so that no reader joins between the two.
        let mut open = self.0.lock();
        let is_unread = !feed.has_onlookers();
        if is_unread {
            open.remove(question);
        }
        is_unread
    }
}
