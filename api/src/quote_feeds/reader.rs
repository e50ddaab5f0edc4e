//! Reader: one stream's place in a feed, and what it has to send next.

use super::{
    board::Onlooker,
    shown::{Event, Seen},
};

/// One reader of a feed.
pub struct Reader {
    onlooker: Onlooker,
    seen: Seen,
    has_ended: bool,
}

impl Reader {
    pub(super) fn new(onlooker: Onlooker) -> Self {
        let seen = onlooker.shown().seen_by_a_new_reader();
        Self {
            onlooker,
            seen,
            has_ended: false,
        }
    }

    /// Goes on after the quote of this slot, which the reader has: where it is the newest, it is not given again.
    pub fn resume_after(&mut self, slot: u64) {
        self.onlooker.shown().resume_after(slot, &mut self.seen);
    }

    /// What it looks at, and what of that it was given.
    pub(super) fn into_parts(self) -> (Onlooker, Seen) {
        (self.onlooker, self.seen)
    }

    /// What is to be sent next, once there is something; `None` when nothing follows.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if self.has_ended {
                return None;
            }
            // Both before it is looked, so that nothing after it is missed.
            let changed = self.onlooker.changed();
            let is_left = self.onlooker.is_left();
            let event = self.onlooker.shown().unseen(&mut self.seen);
            if let Some(event) = event {
                self.has_ended = matches!(event, Event::End(_));
                return Some(event);
            }
            if is_left {
                // It went without a word.
                return None;
            }
            changed.await;
        }
    }
}
