//! Readiness: what the database says of whether events reach their webhooks.

use super::filter_state::FilterState;

/// What the database says of whether events reach their webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The last slot at confirmed of which everything is stored.
    pub checkpoint: Option<u64>,
    /// The newest filter that is in force.
    pub filter: Option<FilterState>,
    /// How many messages wait for delivery, those of switched-off webhooks included; 1,000 when there are more.
    pub pending_deliveries: u64,
    /// Whether nobody leads: the newest leader was silent for longer than its lease, or has given the leadership back, or there
    /// was none yet.
    pub leader_is_silent: bool,
}
