//! Retention: which messages may be removed, and which were.

use super::{id::WebhookId, timestamp::Timestamp};

/// The messages that may be removed.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// The time.
    pub now: Timestamp,
    /// Messages finished before are removed. It must lie further back than any replay of the stream
    /// reaches, since a removed message is no longer known.
    pub finished_before: Timestamp,
    /// Messages stored before and still not delivered are removed: their endpoint is never coming back.
    /// `None` keeps them for ever.
    pub undelivered_before: Option<Timestamp>,
    /// When more bytes are kept, finished messages are removed, the oldest first, however young, of the tenants who
    /// have most of them. Pending ones are never removed for their size.
    pub max_bytes: Option<u64>,
}

/// The messages that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Finished messages that were old enough.
    pub finished: u64,
    /// Finished messages that were young, for want of room.
    pub for_room: u64,
    /// Messages of owners who had more of them than their quota says.
    pub for_quotas: u64,
    /// Messages that were not accepted in time, counted per webhook.
    pub undelivered: Vec<(WebhookId, u64)>,
    /// Whether more is kept than allowed, because it is not delivered yet.
    pub too_large: bool,
}
