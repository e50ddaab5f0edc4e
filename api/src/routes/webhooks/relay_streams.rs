//! Relay streams: those that are open, and the deliveries sent down them that are not reported yet.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use service_kit::CancellationToken;
use sluice_store::{Lease, LeasedDelivery, MessageId, WebhookId};
use tokio::sync::Notify;

/// The open streams, and the deliveries that went down one of them and are not reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct RelayStreams {
    open: Arc<Mutex<HashMap<WebhookId, CancellationToken>>>,
    unreported: Arc<Mutex<HashMap<MessageId, RelayedDelivery>>>,
    pub(super) reported: Arc<Notify>,
}

/// A delivery that was sent down a stream, as long as its result is not reported.
#[derive(Clone, Debug)]
pub(super) struct RelayedDelivery {
    pub(super) lease: Lease,
    pub(super) url: String,
    pub(super) retry_index: u32,
}

impl RelayStreams {
    /// Notes that a stream is open, and ends the one before it: an owner that connects again has lost it, even if
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

    /// The message, if it was sent for this webhook and is not reported yet; now it is.
    pub(super) fn take_reported(
        &self,
        webhook: &WebhookId,
        message: &MessageId,
    ) -> Option<RelayedDelivery> {
        let mut unreported = self.unreported.lock();
        let ours = unreported
            .get(message)
            .is_some_and(|relayed| relayed.lease.webhook == *webhook);
        ours.then(|| unreported.remove(message)).flatten()
    }

    /// Notes that a delivery goes down a stream.
    pub(super) fn note_sent(&self, delivery: &LeasedDelivery) {
        let relayed = RelayedDelivery {
            lease: delivery.lease.clone(),
            url: delivery.url.clone(),
            retry_index: delivery.retry_index,
        };
        self.unreported
            .lock()
            .insert(delivery.lease.id.clone(), relayed);
    }

    /// Those of `sent` that are not reported, which can be reported no longer.
    pub(super) fn remove_unreported(&self, sent: &[Lease]) -> Vec<Lease> {
        let mut unreported = self.unreported.lock();
        let mut left = sent.to_vec();
        left.retain(|lease| {
            unreported
                .get(&lease.id)
                .is_some_and(|relayed| relayed.lease == *lease)
        });
        for lease in &left {
            unreported.remove(&lease.id);
        }
        left
    }

    /// Keeps of `sent` what is not reported.
    pub(super) fn retain_unreported(&self, sent: &mut Vec<Lease>) {
        let unreported = self.unreported.lock();
        sent.retain(|lease| {
            unreported
                .get(&lease.id)
                .is_some_and(|relayed| relayed.lease == *lease)
        });
    }
}
