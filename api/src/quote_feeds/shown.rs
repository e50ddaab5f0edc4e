//! Shown: what a feed shows, and what of it a reader was not given yet.

use std::mem;

use bytes::Bytes;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::{sockets::SocketEvent, stream_end::StreamEnd};

/// What a feed shows: always the newest alone.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// How many quotes there were; rises with each.
    number: u64,
    quote: Event,
    /// Highest slot of any quote so far.
    highest: u64,
    /// Whether no quote before was of this slot or of a later one, which a reader may have seen.
    names_one_quote: bool,
    /// How many signs of life there were.
    beats: u64,
    /// The slot up to which the quote is known to be true.
    true_at: u64,
    /// Why there is no quote any more.
    end: Option<StreamEnd>,
}

/// What is sent down a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A quote that differs from the one before.
    Quote {
        /// The slot in which it first was true.
        slot: u64,
        /// The whole of a server-sent event.
        sse: Bytes,
        /// The same as a message of a WebSocket.
        message: Utf8Bytes,
        /// The message in the one frame in which it is sent.
        frame: Bytes,
    },
    /// The stream stands, and the quote is still true.
    Beat {
        /// The slot up to which it is.
        slot: u64,
    },
    /// The last event.
    End(StreamEnd),
}

impl Event {
    /// A quote, written once for all readers; `json` is one line.
    fn quote(slot: u64, json: &[u8]) -> Self {
        let json = String::from_utf8_lossy(json);
        let message: Utf8Bytes = format!(r#"{{"event":"quote","id":{slot},"data":{json}}}"#).into();
        Self::Quote {
            slot,
            sse: format!("event: quote\nid: {slot}\ndata: {json}\n\n").into(),
            frame: SocketEvent::Message(message.clone()).into_frame(),
            message,
        }
    }

    /// The event as it goes down a stream of server-sent events.
    #[must_use]
    pub fn into_sse(self) -> Bytes {
        match self {
            Self::Quote { sse, .. } => sse,
            // A comment, which a reader need not know of.
            Self::Beat { slot } => format!(": true in slot {slot}\n\n").into(),
            Self::End(end) => end.sse(),
        }
    }

    /// The event as the frame that goes down a WebSocket; of the end the message alone.
    #[must_use]
    pub fn into_frame(self) -> Bytes {
        match self {
            Self::Quote { frame, .. } => frame,
            other => other.into_socket().into_frame(),
        }
    }

    /// The event as it goes down a WebSocket.
    #[must_use]
    pub fn into_socket(self) -> SocketEvent {
        match self {
            Self::Quote { message, .. } => SocketEvent::Message(message),
            Self::Beat { slot } => SocketEvent::Beat(format!("true in slot {slot}").into()),
            Self::End(end) => SocketEvent::End(end),
        }
    }
}

impl Shown {
    /// The first quote.
    pub(super) fn first(slot: u64, json: &[u8]) -> Self {
        Self {
            number: 1,
            quote: Event::quote(slot, json),
            highest: slot,
            names_one_quote: true,
            beats: 0,
            true_at: slot,
            end: None,
        }
    }

    /// Another quote takes the place of the one before.
    pub(super) fn replace(&mut self, slot: u64, json: &[u8]) {
        self.number = self.number.saturating_add(1);
        self.quote = Event::quote(slot, json);
        // After a reorg a slot may come again, with another block.
        self.names_one_quote = slot > self.highest;
        self.highest = self.highest.max(slot);
        self.true_at = slot;
    }

    /// The quote is still true in this slot.
    pub(super) const fn beat(&mut self, slot: u64) {
        self.beats = self.beats.saturating_add(1);
        self.true_at = slot;
    }

    /// There is no quote any more.
    pub(super) fn end(&mut self, end: StreamEnd) {
        self.end = Some(end);
    }

    /// Of a reader that was given nothing; signs of life before it came are none of its.
    pub(super) const fn seen_by_a_new_reader(&self) -> Seen {
        Seen {
            number: 0,
            beats: self.beats,
        }
    }

    /// A reader has the quote of this slot: where it is the newest, it is not given again.
    pub(super) fn resume_after(&self, slot: u64, seen: &mut Seen) {
        let is_newest = matches!(&self.quote, Event::Quote { slot: newest, .. } if *newest == slot);
        if is_newest && self.names_one_quote {
            seen.number = self.number;
        }
    }

    /// What a reader was not given yet: a quote before the end, and a sign of life where there is nothing else.
    pub(super) fn unseen(&self, seen: &mut Seen) -> Option<Event> {
        let beats = mem::replace(&mut seen.beats, self.beats);
        if self.number != seen.number {
            seen.number = self.number;
            return Some(self.quote.clone());
        }
        if let Some(end) = &self.end {
            return Some(Event::End(end.clone()));
        }
        (beats != self.beats).then_some(Event::Beat { slot: self.true_at })
    }
}

/// What a reader was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The newest quote.
    number: u64,
    beats: u64,
}
