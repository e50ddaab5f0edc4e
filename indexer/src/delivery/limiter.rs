//! Limits the attempts in flight to each endpoint of this process.
//!
//! More deliveries of a webhook are leased than are attempted at once, so that a fast endpoint does not wait for the
//! database between them. Each attempt needs a permit. When the endpoint pauses, those that wait get none and their
//! leases are released.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::WebhookId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The permits of one endpoint. Clones share them.
#[derive(Clone, Debug)]
pub struct EndpointPermits {
    free: Arc<Semaphore>,
    paused: Arc<AtomicBool>,
}

impl EndpointPermits {
    /// Waits for a permit, at most for `patience`; `None` when there was none, or the endpoint paused meanwhile.
    pub async fn acquire(&self, patience: Duration) -> Option<OwnedSemaphorePermit> {
        let permit = timeout(patience, Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.ok()?.ok()?;
        (!self.paused.load(Ordering::Relaxed)).then_some(permit)
    }
}

/// The permits of all endpoints. Clones share them.
#[derive(Clone, Debug)]
pub struct EndpointLimiter {
    in_flight: usize,
    endpoints: Arc<Mutex<HashMap<WebhookId, EndpointPermits>>>,
}

impl EndpointLimiter {
    /// A limiter with `in_flight` permits for each endpoint.
    #[must_use]
    pub fn new(in_flight: usize) -> Self {
        Self {
            in_flight,
            endpoints: Arc::default(),
        }
    }

    /// The permits of a webhook of which deliveries were leased just now. The store leases none while the endpoint
    /// pauses, so it does not.
    #[must_use]
    pub fn resume(&self, webhook: &WebhookId) -> EndpointPermits {
        let mut endpoints = self.endpoints.lock();
        let permits = endpoints
            .entry(webhook.clone())
            .or_insert_with(|| EndpointPermits {
                free: Arc::new(Semaphore::new(self.in_flight)),
                paused: Arc::default(),
            });
        permits.paused.store(false, Ordering::Relaxed);
        permits.clone()
    }

    /// Gives no more permits for a webhook whose endpoint pauses.
    pub fn pause(&self, webhook: &WebhookId) {
        if let Some(permits) = self.endpoints.lock().get(webhook) {
            permits.paused.store(true, Ordering::Relaxed);
        }
    }

    /// Drops the endpoints that have no deliveries here.
    pub fn drop_idle(&self) {
        self.endpoints
            .lock()
            .retain(|_, permits| Arc::strong_count(&permits.free) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn permits_are_as_many_as_they_are_and_none_while_the_endpoint_pauses() {
        let (limiter, webhook) = (EndpointLimiter::new(2), WebhookId::from_random([1; 16]));
        let permits = limiter.resume(&webhook);
        let first = permits.acquire(SOON).await;
        let second = permits.acquire(SOON).await;
        assert!(first.is_some() && second.is_some());
        assert!(permits.acquire(SOON).await.is_none(), "all are in use");
        let other = limiter.resume(&WebhookId::from_random([2; 16]));
        assert!(other.acquire(SOON).await.is_some(), "others have their own");
        drop(first);
        limiter.pause(&webhook);
        assert!(permits.acquire(SOON).await.is_none(), "paused");
        let again = limiter.resume(&webhook);
        assert!(again.acquire(SOON).await.is_some());
        drop((permits, again, second));
        limiter.drop_idle();
        assert_eq!(
            limiter.endpoints.lock().len(),
            1,
            "the other one is still held"
        );
    }
}
