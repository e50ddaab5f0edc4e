//! Set of webhooks, by their ordinals.

use std::collections::BTreeSet;

/// Some webhooks, of which there may be something to lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookSet(pub(crate) BTreeSet<i64>);

impl WebhookSet {
    /// Adds those of another.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Takes away those of another.
    pub fn remove(&mut self, other: &Self) {
        self.0.retain(|webhook| !other.0.contains(webhook));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
