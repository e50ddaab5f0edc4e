//! Hub: the task that orders messages by slot and commitment and broadcasts them to the streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::{
    sync::{broadcast, mpsc},
    time::{Instant, sleep},
};

use crate::{
    config::{Config, Lag, Limits},
    intake::Intake,
    message::{Commitment, Event, Slot},
    slots::{ReplayError, RingLimits, SlotRing},
};

/// Messages taken from the intake at once, so that a burst pays for one wake-up.
const BATCH_MESSAGES: usize = 256;

/// What a stream carries.
#[derive(Debug, Clone)]
pub enum Item {
    /// Events in order.
    Batch(Arc<Vec<Event>>),
    /// Messages were lost before they reached the hub.
    Lost,
}

/// See the module.
#[derive(Debug)]
pub struct Hub {
    ring: Mutex<SlotRing>,
    streams: [broadcast::Sender<Item>; 3],
    lag: Option<Lag>,
}

impl Hub {
    /// A hub that has seen nothing.
    pub fn new(config: &Config) -> Self {
        let Limits {
            replay_bytes,
            unfinalized_slots,
            stream_batches,
            ..
        } = config.limits;
        let limits = RingLimits {
            replay_slots: config.replay_stored_slots,
            replay_bytes,
            unfinalized_slots,
        };
        Self {
            ring: Mutex::new(SlotRing::new(limits)),
            streams: std::array::from_fn(|_| broadcast::channel(stream_batches).0),
            lag: config.lag,
        }
    }

    /// Applies what arrives at the intake until it closes.
    pub async fn run(&self, intake: &Intake, mut events: mpsc::Receiver<Event>) {
        let mut messages = Vec::with_capacity(BATCH_MESSAGES);
        let mut known_lost = 0;
        let mut last_stood_still = Instant::now();
        while events.recv_many(&mut messages, BATCH_MESSAGES).await > 0 {
            if let Some(lag) = self.lag
                && last_stood_still.elapsed() >= lag.every()
            {
                sleep(lag.length()).await;
                last_stood_still = Instant::now();
            }
            let (lost, through) = intake.lost();
            if lost != known_lost {
                log::error!(
                    "{} messages of slots up to {through} were lost: the intake queue was full",
                    lost - known_lost
                );
                known_lost = lost;
                self.lose_through(through);
            }
            for event in messages.drain(..) {
                intake.taken(&event);
                self.apply(event);
            }
        }
    }

    /// Takes in one message and emits to the streams what follows from it.
    pub fn apply(&self, event: Event) {
        let mut ring = self.ring();
        let outbox = ring.apply(event);
        for (stream, batch) in self.streams.iter().zip(outbox.0) {
            if !batch.is_empty() {
                // Fails without a subscriber, which is no error.
                let _ = stream.send(Item::Batch(Arc::new(batch)));
            }
        }
    }

    /// Ends all streams, because messages of slots up to `slot` were lost.
    pub fn lose_through(&self, slot: Slot) {
        let mut ring = self.ring();
        ring.lose_through(slot);
        for stream in &self.streams {
            let _ = stream.send(Item::Lost);
        }
    }

    /// Attaches a subscriber to a stream, from its next batch on.
    pub fn subscribe(&self, commitment: Commitment) -> broadcast::Receiver<Item> {
        self.streams[commitment.index()].subscribe()
    }

    /// The frozen blocks since `from_slot` that have reached `commitment`.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] when the replay window does not reach back to `from_slot`.
    pub fn replay(
        &self,
        from_slot: Slot,
        commitment: Commitment,
    ) -> Result<Vec<Event>, ReplayError> {
        self.ring().replay(from_slot, commitment)
    }

    /// The slots, for the unary calls.
    pub fn ring(&self) -> MutexGuard<'_, SlotRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
