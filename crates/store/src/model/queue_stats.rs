//! Counts of messages and deliveries, for metrics and health.

use super::timestamp::Timestamp;

/// Counts of messages and deliveries, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Pending deliveries, those of switched-off webhooks included.
    pub pending: u64,
    /// Leased deliveries.
    pub leased: u64,
    /// When the message of the oldest pending delivery of an active webhook was stored.
    pub oldest_pending: Option<Timestamp>,
    /// Failed deliveries that are still kept.
    pub failed: u64,
    /// Messages kept, finished or not.
    pub kept: u64,
    /// Bytes of bodies and of what attempts brought back.
    pub bytes: u64,
    /// Webhooks whose breaker is not closed.
    pub breakers_open: u64,
}
