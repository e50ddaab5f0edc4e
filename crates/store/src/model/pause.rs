//! Pause: the slots that a webhook did not watch because it was switched off.

use sluice_chain_types::Commitment;

use super::id::WebhookId;

/// A pause that is over, and of which its webhook was not told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The webhook.
    pub webhook: WebhookId,
    /// Commitment at which its events are emitted.
    pub commitment: Commitment,
    /// The first slot that was not watched.
    pub first_slot: u64,
    /// The last one: the filter is asked for again from the next on.
    pub last_slot: u64,
}
