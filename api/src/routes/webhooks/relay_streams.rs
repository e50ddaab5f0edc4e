//! The open relay streams, and the messages sent down one of them whose result is not reported yet.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use service_kit::CancellationToken;
use sluice_store::{Lease, LeasedDelivery, MessageId, WebhookId};
use tokio::sync::Notify;

/// The open streams, and the messages that are down one of them and not reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Relays {
    open: Arc<Mutex<HashMap<WebhookId, CancellationToken>>>,
    held: Arc<Mutex<HashMap<MessageId, Held>>>,
    pub(super) reported: Arc<Notify>,
}

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) lease: Lease,
    pub(super) url: String,
    pub(super) retry_index: u32,
}

impl Relays {
    /// Notes that a stream is open, and ends the one before it: whoever connects again has lost it, even if
    /// that is not known here yet. Returns what is cancelled when the stream is to end.
    pub(super) fn open(
        &self,
        webhook: &WebhookId,
        shutdown: &CancellationToken,
    ) -> CancellationToken {
        let token = shutdown.child_token();
        let mut open = self.open.lock();
        // Under the lock, so that the stream before does not close this one.
        if let Some(before) = open.insert(webhook.clone(), token.clone()) {
            before.cancel();
        }
        token
    }

    /// Notes that a stream has ended, unless another one has taken its place and thereby cancelled its token.
    pub(super) fn close(&self, webhook: &WebhookId, token: &CancellationToken) {
        let mut open = self.open.lock();
        if !token.is_cancelled() {
            open.remove(webhook);
        }
    }

    /// The message, if it is held for this webhook. It is held no longer.
    pub(super) fn take(&self, webhook: &WebhookId, message: &MessageId) -> Option<Held> {
        let mut held = self.held.lock();
        let ours = held
            .get(message)
            .is_some_and(|held| held.lease.webhook == *webhook);
        ours.then(|| held.remove(message)).flatten()
    }

    pub(super) fn hold(&self, delivery: &LeasedDelivery) {
        let held = Held {
            lease: delivery.lease.clone(),
            url: delivery.url.clone(),
            retry_index: delivery.retry_index,
        };
        self.held.lock().insert(delivery.lease.id.clone(), held);
    }

    /// What is left of `sent`, held no longer.
    pub(super) fn abandon(&self, sent: &[Lease]) -> Vec<Lease> {
        let mut held = self.held.lock();
        let mut left = sent.to_vec();
        left.retain(|lease| held.get(&lease.id).is_some_and(|held| held.lease == *lease));
        for lease in &left {
            held.remove(&lease.id);
        }
        left
    }

    /// Forgets those of `sent` that are not held any more.
    pub(super) fn retain_held(&self, sent: &mut Vec<Lease>) {
        let held = self.held.lock();
        sent.retain(|lease| held.get(&lease.id).is_some_and(|held| held.lease == *lease));
    }
}
