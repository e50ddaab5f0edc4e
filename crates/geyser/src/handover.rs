//! The hand-over of updates from the reader to the consumer: what has arrived is taken all at once.
//!
//! A channel hands over one by one and wakes the other side each time; here the consumer that falls
//! behind takes more at a time, and is only woken when it had nothing to do.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{StreamError, Update};

/// Makes the two ends of a hand-over that holds about `capacity` updates.
pub(crate) fn handover(capacity: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Shared {
        capacity,
        waiting: Mutex::default(),
        filled: Notify::new(),
        emptied: Notify::new(),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct Shared {
    capacity: usize,
    waiting: Mutex<Waiting>,
    /// There is something to take.
    filled: Notify,
    /// There is room again, or nobody takes any more.
    emptied: Notify,
}

#[derive(Default)]
struct Waiting {
    updates: Vec<Update>,
    /// Why nothing follows; told once.
    end: Option<StreamError>,
    /// One of the two ends is gone.
    closed: bool,
}

/// The reader's end.
pub(crate) struct Sender(Arc<Shared>);

/// The consumer's end.
pub(crate) struct Receiver(Arc<Shared>);

/// The consumer is gone.
#[derive(Debug)]
pub(crate) struct ConsumerGone;

impl Sender {
    /// Hands over all of `updates`, which is empty afterwards. Waits while the consumer is behind.
    pub(crate) async fn send(&self, updates: &mut Vec<Update>) -> Result<(), ConsumerGone> {
        while !updates.is_empty() {
            match self.try_send(updates) {
                Some(result) => return result,
                None => self.0.emptied.notified().await,
            }
        }
        Ok(())
    }

    /// `None` when there is no room.
    fn try_send(&self, updates: &mut Vec<Update>) -> Option<Result<(), ConsumerGone>> {
        let mut waiting = self.0.waiting.lock();
        if waiting.closed {
            return Some(Err(ConsumerGone));
        }
        if waiting.updates.len() >= self.0.capacity {
            return None;
        }
        let was_empty = waiting.updates.is_empty();
        waiting.updates.append(updates);
        drop(waiting);
        if was_empty {
            self.0.filled.notify_one();
        }
        Some(Ok(()))
    }

    /// Says why nothing follows.
    pub(crate) fn end(self, error: StreamError) {
        self.0.waiting.lock().end = Some(error);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.waiting.lock().closed = true;
        self.0.filled.notify_one();
    }
}

impl Receiver {
    /// Everything that has arrived, at least one update. Cancel-safe.
    ///
    /// # Errors
    /// Why nothing follows, once what came before was taken; afterwards [`StreamError::Closed`].
    pub(crate) async fn take(&self) -> Result<Vec<Update>, StreamError> {
        loop {
            if let Some(result) = self.try_take() {
                return result;
            }
            self.0.filled.notified().await;
        }
    }

    /// `None` when nothing is there yet.
    fn try_take(&self) -> Option<Result<Vec<Update>, StreamError>> {
        let mut waiting = self.0.waiting.lock();
        if waiting.updates.is_empty() {
            let end = waiting.end.take();
            return end
                .or_else(|| waiting.closed.then_some(StreamError::Closed))
                .map(Err);
        }
        let updates = std::mem::take(&mut waiting.updates);
        drop(waiting);
        self.0.emptied.notify_one();
        Some(Ok(updates))
    }

    /// Updates that wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.0.waiting.lock().updates.len()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.waiting.lock().closed = true;
        self.0.emptied.notify_one();
    }
}
