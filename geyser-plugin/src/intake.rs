//! Bounded queue between the validator's threads and the hub.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::{
    config::Limits,
    message::{Event, Slot},
};

/// The side of the queue that the validator's callbacks use. Never waits.
#[derive(Debug)]
pub struct Intake {
    sender: mpsc::Sender<Event>,
    max_bytes: usize,
    queued_bytes: AtomicUsize,
    lost_messages: AtomicU64,
    lost_through: AtomicU64,
}

impl Intake {
    /// Creates the queue.
    pub fn new(limits: &Limits) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(limits.intake_messages);
        let intake = Self {
            sender,
            max_bytes: limits.intake_bytes,
            queued_bytes: AtomicUsize::new(0),
            lost_messages: AtomicU64::new(0),
            lost_through: AtomicU64::new(0),
        };
        (intake, receiver)
    }

    /// Queues an event, or records that its slot lost one when the queue is full.
    pub fn push(&self, event: Event) {
        let (slot, weight) = (event.update.slot(), event.update.weight());
        let queued = self.queued_bytes.fetch_add(weight, Ordering::Relaxed);
        // One event larger than the bound must still pass an empty queue.
        let fits = queued == 0 || queued.saturating_add(weight) <= self.max_bytes;
        if !fits || self.sender.try_send(event).is_err() {
            self.queued_bytes.fetch_sub(weight, Ordering::Relaxed);
            self.lose(slot);
        }
    }

    /// Records that a message of `slot` did not reach the queue.
    pub fn lose(&self, slot: Slot) {
        self.lost_through.fetch_max(slot, Ordering::Relaxed);
        // Released after the slot, so that a reader of the count sees the slot too.
        self.lost_messages.fetch_add(1, Ordering::Release);
    }

    /// Frees the room that an event took; the hub calls it for each event it takes out.
    pub fn taken(&self, event: &Event) {
        self.queued_bytes
            .fetch_sub(event.update.weight(), Ordering::Relaxed);
    }

    /// How many messages were lost so far, and the highest slot among them.
    pub fn lost(&self) -> (u64, Slot) {
        let messages = self.lost_messages.load(Ordering::Acquire);
        (messages, self.lost_through.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use yellowstone_grpc_proto::{geyser::SlotStatus, prost_types::Timestamp};

    use super::*;
    use crate::message::{SlotUpdate, Update};

    fn status(slot: Slot) -> Event {
        Event {
            update: Update::Slot(SlotUpdate {
                slot,
                parent: None,
                status: SlotStatus::SlotProcessed,
                dead_error: None,
            }),
            created_at: Timestamp::default(),
        }
    }

    #[test]
    fn a_full_queue_records_the_highest_lost_slot_and_recovers() {
        let limits = Limits {
            intake_messages: 2,
            ..Limits::default()
        };
        let (intake, mut receiver) = Intake::new(&limits);
        for slot in [1, 2, 9, 3] {
            intake.push(status(slot));
        }
        assert_eq!(intake.lost(), (2, 9));
        intake.taken(&receiver.try_recv().unwrap());
        intake.push(status(10));
        assert_eq!(intake.lost(), (2, 9));
        assert_eq!(receiver.try_recv().unwrap(), status(2));
        assert_eq!(receiver.try_recv().unwrap(), status(10));
    }

    #[test]
    fn bytes_are_bounded_and_given_back() {
        let weight = status(1).update.weight();
        let limits = Limits {
            intake_bytes: weight,
            ..Limits::default()
        };
        let (intake, mut receiver) = Intake::new(&limits);
        intake.push(status(1));
        intake.push(status(2));
        assert_eq!(intake.lost(), (1, 2));
        intake.taken(&receiver.try_recv().unwrap());
        intake.push(status(3));
        assert_eq!(intake.lost(), (1, 2));
    }
}
