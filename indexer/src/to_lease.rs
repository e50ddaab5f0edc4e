//! Webhooks of which there may be something to lease: told by whoever stores messages or records results, asked by the
//! dispatcher.

use parking_lot::Mutex;
use sluice_store::WebhookSet;
use tokio::sync::Notify;

/// Webhooks of which there may be something to lease, until they are looked at.
#[derive(Debug, Default)]
pub struct ToLease {
    webhooks: Mutex<WebhookSet>,
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

    /// Waits until there are some.
    pub(crate) async fn some(&self) {
        self.told.notified().await;
    }

    /// The webhooks since it was last asked.
    pub(crate) fn take(&self) -> WebhookSet {
        std::mem::take(&mut self.webhooks.lock())
    }
}
