//! Webhooks of which there may be something to lease: told by whoever stores messages or records results, asked by the
//! dispatcher.

use parking_lot::Mutex;
use sluice_store::{Lease, WebhookSet};
use tokio::sync::Notify;

/// Webhooks of which there may be something to lease, until they are looked at.
#[derive(Debug, Default)]
pub struct ToLease {
    webhooks: Mutex<WebhookSet>,
    /// Those of which something waits for a result.
    full: Mutex<WebhookSet>,
    told: Notify,
}

impl ToLease {
    /// Tells of these webhooks, if there are any.
    pub fn tell(&self, webhooks: &WebhookSet) {
        if !webhooks.is_empty() {
            self.webhooks.lock().extend(webhooks);
            self.told.notify_one();
        }
    }

    /// Tells of webhooks of which nothing can be leased before a result is recorded, which then tells of them.
    pub fn tell_full(&self, webhooks: &WebhookSet) {
        if !webhooks.is_empty() {
            self.full.lock().extend(webhooks);
        }
    }

    /// Whether something is to be leased of the webhook of this lease as soon as its result is recorded.
    pub(crate) fn waits_for(&self, lease: &Lease) -> bool {
        lease.is_of(&self.full.lock())
    }

    /// Waits until there are some that can be looked at.
    pub(crate) async fn some(&self) {
        self.told.notified().await;
    }

    /// Those, since it was last asked.
    pub(crate) fn take(&self) -> WebhookSet {
        let webhooks = std::mem::take(&mut *self.webhooks.lock());
        self.full.lock().remove(&webhooks);
        webhooks
    }

    /// All are about to be looked at.
    pub(crate) fn forget_full(&self) {
        *self.full.lock() = WebhookSet::default();
    }
}
