//! Backlog: webhooks of which more is due than may be leased, so that it waits for results to be recorded.

use sluice_store::{Lease, WebhookSet};

/// What was found due the last time that it was looked for.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The process has no capacity left: whatever is recorded makes room for something.
    of_all: bool,
    webhooks: WebhookSet,
}

impl Backlog {
    /// Something was due of the webhooks `due` among these, or among all.
    pub(super) fn found(&mut self, among: Option<&WebhookSet>, due: &WebhookSet) {
        self.of_all = false;
        match among {
            None => self.webhooks = WebhookSet::default(),
            Some(among) => self.webhooks.remove(among),
        }
        self.webhooks.extend(due);
    }

    /// Nothing could be leased: the process holds all that it may.
    pub(super) const fn without_capacity(&mut self) {
        self.of_all = true;
    }

    /// Whether more may be due of the webhook of this lease, and be leased as soon as the result is recorded.
    pub(super) fn waits_for(&self, lease: &Lease) -> bool {
        self.of_all || lease.is_of(&self.webhooks)
    }
}
