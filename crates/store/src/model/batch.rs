//! Batches: how many messages of a webhook one POST carries, and for how long a message waits for others.

use std::time::Duration;

/// Most messages of one batch: as many as are leased in one transaction, whose results are recorded in one.
pub const MAX_BATCH_MESSAGES: u32 = 500;

/// Fewest bytes that a batch may be limited to: less is one message.
pub const MIN_BATCH_BYTES: u32 = 1024;

/// Most bytes of the bodies in one batch: an endpoint reads them at once, within one deadline.
pub const MAX_BATCH_BYTES: u32 = 4 * 1024 * 1024;

/// Longest wait of a message for others.
pub const MAX_BATCH_WAIT: Duration = Duration::from_secs(5);

/// How the messages of a webhook are put together. A message that is longer than a batch may be is one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Most messages.
    pub max_messages: u32,
    /// Most bytes of their bodies.
    pub max_bytes: u32,
    /// How long a message waits for others, whole milliseconds.
    pub max_wait: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            max_messages: 100,
            max_bytes: 1024 * 1024,
            max_wait: Duration::from_secs(1),
        }
    }
}

impl Batch {
    /// Most messages of a batch whose first one was refused so often: half as many each time, so that a message that is
    /// never accepted ends alone.
    #[must_use]
    pub fn messages_after(&self, refusals: u32) -> u32 {
        self.max_messages.checked_shr(refusals).unwrap_or(0).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_half_as_large_after_each_refusal_and_never_empty() {
        let sizes = (0..10).map(|refusals| Batch::default().messages_after(refusals));
        assert_eq!(
            sizes.collect::<Vec<_>>(),
            [100, 50, 25, 12, 6, 3, 1, 1, 1, 1]
        );
        assert_eq!(Batch::default().messages_after(u32::MAX), 1);
    }
}
