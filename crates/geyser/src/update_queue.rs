//! Update queue between reader and consumer: the consumer takes all that has arrived at once.
//!
//! A channel delivers one by one and wakes the other side each time; here the consumer that falls
//! behind takes more at a time, and is only woken when it had nothing to do.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{error::StreamError, update::Update};

/// Makes the two ends of a queue that holds about `capacity` updates.
pub(crate) fn update_queue(capacity: usize) -> (Sender, Receiver) {
    let queue = Arc::new(UpdateQueue {
        capacity,
        queued: Mutex::default(),
        filled: Notify::new(),
        emptied: Notify::new(),
    });
    (Sender(Arc::clone(&queue)), Receiver(queue))
}

struct UpdateQueue {
    capacity: usize,
    queued: Mutex<Queued>,
    /// There is something to take.
    filled: Notify,
    /// There is room again, or the consumer is gone.
    emptied: Notify,
}

#[derive(Default)]
struct Queued {
    updates: Vec<Update>,
    /// Why nothing follows; reported once.
    end: Option<StreamError>,
    /// One of the two ends is gone.
    closed: bool,
}

/// The reader's end.
pub(crate) struct Sender(Arc<UpdateQueue>);

/// The consumer's end.
pub(crate) struct Receiver(Arc<UpdateQueue>);

/// The consumer is gone.
#[derive(Debug)]
pub(crate) struct ConsumerGone;

impl Sender {
    /// Queues all of `updates`, which is empty afterwards. Waits while the consumer is behind.
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
        let mut queued = self.0.queued.lock();
        if queued.closed {
            return Some(Err(ConsumerGone));
        }
        if queued.updates.len() >= self.0.capacity {
            return None;
        }
        let was_empty = queued.updates.is_empty();
        queued.updates.append(updates);
        drop(queued);
        if was_empty {
            self.0.filled.notify_one();
        }
        Some(Ok(()))
    }

    /// Reports why nothing follows.
    pub(crate) fn end(self, error: StreamError) {
        self.0.queued.lock().end = Some(error);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.queued.lock().closed = true;
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
        let mut queued = self.0.queued.lock();
        if queued.updates.is_empty() {
            let end = queued.end.take();
            return end
                .or_else(|| queued.closed.then_some(StreamError::Closed))
                .map(Err);
        }
        let updates = std::mem::take(&mut queued.updates);
        drop(queued);
        self.0.emptied.notify_one();
        Some(Ok(updates))
    }

    /// Updates that wait to be taken.
    pub(crate) fn len(&self) -> usize {
        self.0.queued.lock().updates.len()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.queued.lock().closed = true;
        self.0.emptied.notify_one();
    }
}
