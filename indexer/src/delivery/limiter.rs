//! How many attempts to one receiver are under way in this process.
//!
//! More messages are claimed of a webhook than are sent at once, so that a fast receiver does not wait for the
//! database between them. Those that wait pass a gate. It closes when the receiver is given up or slowed
//! down: what has not passed goes back to the queue.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::WebhookId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The gate of one receiver.
#[derive(Clone, Debug)]
pub struct Gate {
    room: Arc<Semaphore>,
    closed: Arc<AtomicBool>,
}

impl Gate {
    /// Waits for a place, for as long as given; `None` when there was none, or the gate closed meanwhile.
    pub async fn pass(&self, patience: Duration) -> Option<OwnedSemaphorePermit> {
        let place = timeout(patience, Arc::clone(&self.room).acquire_owned()).await;
        let place = place.ok()?.ok()?;
        (!self.closed.load(Ordering::Relaxed)).then_some(place)
    }
}

/// The gates of all receivers. Clones share them.
#[derive(Clone, Debug)]
pub struct Gates {
    width: usize,
    gates: Arc<Mutex<HashMap<WebhookId, Gate>>>,
}

impl Gates {
    /// Gates that let so many pass at once.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self {
            width,
            gates: Arc::default(),
        }
    }

    /// The gate of a webhook of which messages were claimed just now. The store hands out none while the
    /// receiver pauses, so it is open.
    #[must_use]
    pub fn open(&self, webhook: &WebhookId) -> Gate {
        let mut gates = self.gates.lock();
        let gate = gates.entry(webhook.clone()).or_insert_with(|| Gate {
            room: Arc::new(Semaphore::new(self.width)),
            closed: Arc::default(),
        });
        gate.closed.store(false, Ordering::Relaxed);
        gate.clone()
    }

    /// Closes the gate of a webhook whose receiver pauses.
    pub fn close(&self, webhook: &WebhookId) {
        if let Some(gate) = self.gates.lock().get(webhook) {
            gate.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets gates at which nobody is.
    pub fn tidy(&self) {
        self.gates
            .lock()
            .retain(|_, gate| Arc::strong_count(&gate.room) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn a_gate_is_as_wide_as_it_is_and_closes() {
        let (gates, webhook) = (Gates::new(2), WebhookId::from_random([1; 16]));
        let gate = gates.open(&webhook);
        let first = gate.pass(SOON).await;
        let second = gate.pass(SOON).await;
        assert!(first.is_some() && second.is_some());
        assert!(gate.pass(SOON).await.is_none(), "full");
        let other = gates.open(&WebhookId::from_random([2; 16]));
        assert!(other.pass(SOON).await.is_some(), "others have their own");
        drop(first);
        gates.close(&webhook);
        assert!(gate.pass(SOON).await.is_none(), "closed");
        let again = gates.open(&webhook);
        assert!(again.pass(SOON).await.is_some());
        drop((gate, again, second));
        gates.tidy();
        assert_eq!(gates.gates.lock().len(), 1, "the other one is still held");
    }
}
