//! Limits the attempts in flight to each endpoint of this process, and how many of them begin in a second where its owner says.
//!
//! More deliveries of a webhook are leased than are attempted at once, so that a fast endpoint does not wait for the
//! database between them. Each attempt needs a permit. When the endpoint pauses, those that wait get none and their
//! leases are released.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::{DeliveryOptions, LeasedDelivery, WebhookId};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout_at},
};

/// The permits of one endpoint. Clones share them.
#[derive(Clone, Debug)]
pub struct EndpointPermits {
    free: Arc<Semaphore>,
    in_flight: usize,
    paused: Arc<AtomicBool>,
    pace: Arc<Pace>,
    per_second: Option<u32>,
}

/// When the next attempt to an endpoint may begin.
#[derive(Debug, Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Takes the next turn: `now`, or when the interval after the turn before is over. A rest saves nothing up, and a turn
    /// after `latest` is left to others.
    fn turn(&self, now: Instant, latest: Instant, per_second: u32) -> Option<Instant> {
        let mut next = self.0.lock();
        let turn = next.map_or(now, |next| next.max(now));
        if turn > latest {
            return None;
        }
        *next = Some(turn + Duration::from_secs(1) / per_second.max(1));
        Some(turn)
    }

    /// Whether an attempt that begins `now` would be too early.
    fn is_owed(&self, now: Instant) -> bool {
        self.0.lock().is_some_and(|next| next > now)
    }
}

impl EndpointPermits {
    /// Waits for a permit and the turn of an attempt, at most for `patience`; `None` when there was none, or the endpoint
    /// paused meanwhile.
    pub async fn acquire(&self, patience: Duration) -> Option<OwnedSemaphorePermit> {
        let latest = Instant::now() + patience;
        let permit = timeout_at(latest, self.acquire_in_turn(latest))
            .await
            .ok()??;
        (!self.paused.load(Ordering::Relaxed)).then_some(permit)
    }

    async fn acquire_in_turn(&self, latest: Instant) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        if let Some(per_second) = self.per_second {
            match self.pace.turn(Instant::now(), latest, per_second) {
                Some(turn) => sleep_until(turn).await,
                // Were it given back at once, it would be leased again at once.
                None => pending().await,
            }
        }
        Some(permit)
    }

    /// As they are for an endpoint with these options: the same ones, unless its owner changed them.
    fn of(&mut self, options: &DeliveryOptions, most: usize) {
        let in_flight = in_flight(options, most);
        if self.in_flight != in_flight {
            // The store leases no more than are asked for, so those of before are over soon.
            self.free = Arc::new(Semaphore::new(in_flight));
            self.in_flight = in_flight;
        }
        self.per_second = options.max_per_second;
    }
}

/// Attempts in flight at once to an endpoint with these options.
fn in_flight(options: &DeliveryOptions, most: usize) -> usize {
    let asked = options.concurrency.map(usize::try_from);
    asked.map_or(most, |asked| asked.unwrap_or(most).clamp(1, most))
}

/// The permits of all endpoints. Clones share them.
#[derive(Clone, Debug)]
pub struct EndpointLimiter {
    in_flight: usize,
    endpoints: Arc<Mutex<HashMap<WebhookId, EndpointPermits>>>,
}

impl EndpointLimiter {
    /// A limiter with `in_flight` permits for each endpoint, or fewer where its owner asks for fewer.
    #[must_use]
    pub fn new(in_flight: usize) -> Self {
        Self {
            in_flight,
            endpoints: Arc::default(),
        }
    }

    /// The permits of the webhook of a delivery that was leased just now. The store leases none while the endpoint
    /// pauses, so it does not.
    #[must_use]
    pub fn resume(&self, delivery: &LeasedDelivery) -> EndpointPermits {
        self.permits(&delivery.lease.webhook, &delivery.options)
    }

    fn permits(&self, webhook: &WebhookId, options: &DeliveryOptions) -> EndpointPermits {
        let mut endpoints = self.endpoints.lock();
        let permits = endpoints
            .entry(webhook.clone())
            .or_insert_with(|| EndpointPermits {
                free: Arc::new(Semaphore::new(self.in_flight)),
                in_flight: self.in_flight,
                paused: Arc::default(),
                pace: Arc::default(),
                per_second: None,
            });
        permits.of(options, self.in_flight);
        permits.paused.store(false, Ordering::Relaxed);
        permits.clone()
    }

    /// Gives no more permits for a webhook whose endpoint pauses.
    pub fn pause(&self, webhook: &WebhookId) {
        if let Some(permits) = self.endpoints.lock().get(webhook) {
            permits.paused.store(true, Ordering::Relaxed);
        }
    }

    /// Drops the endpoints that have no deliveries here, and whose next attempt could begin at once.
    pub fn drop_idle(&self) {
        let now = Instant::now();
        self.endpoints
            .lock()
            .retain(|_, permits| Arc::strong_count(&permits.pace) > 1 || permits.pace.is_owed(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn permits_are_as_many_as_they_are_and_none_while_the_endpoint_pauses() {
        let (limiter, webhook) = (EndpointLimiter::new(2), WebhookId::from_random([1; 16]));
        let options = DeliveryOptions::default();
        let permits = limiter.permits(&webhook, &options);
        let first = permits.acquire(SOON).await;
        let second = permits.acquire(SOON).await;
        assert!(first.is_some() && second.is_some());
        assert!(permits.acquire(SOON).await.is_none(), "all are in use");
        let other = limiter.permits(&WebhookId::from_random([2; 16]), &options);
        assert!(other.acquire(SOON).await.is_some(), "others have their own");
        drop(first);
        limiter.pause(&webhook);
        assert!(permits.acquire(SOON).await.is_none(), "paused");
        let again = limiter.permits(&webhook, &options);
        assert!(again.acquire(SOON).await.is_some());
        drop((permits, again, second));
        limiter.drop_idle();
        assert_eq!(
            limiter.endpoints.lock().len(),
            1,
            "the other one is still held"
        );
    }

    #[tokio::test]
    async fn an_owner_may_ask_for_fewer_at_once_and_change_that() {
        let (limiter, webhook) = (EndpointLimiter::new(16), WebhookId::from_random([1; 16]));
        let asking = |concurrency| DeliveryOptions {
            concurrency: Some(concurrency),
            ..DeliveryOptions::default()
        };
        let one = limiter.permits(&webhook, &asking(1));
        let first = one.acquire(SOON).await;
        assert!(first.is_some());
        assert!(one.acquire(SOON).await.is_none(), "one at a time");
        let two = limiter.permits(&webhook, &asking(2));
        let more = (two.acquire(SOON).await, two.acquire(SOON).await);
        assert!(more.0.is_some() && more.1.is_some());
        assert!(two.acquire(SOON).await.is_none());
    }

    #[test]
    fn attempts_begin_evenly_spread_and_a_rest_saves_none_up() {
        let (pace, began) = (Pace::default(), Instant::now());
        let after = |millis| began + Duration::from_millis(millis);
        let at = |millis| Some(after(millis));
        let turns: Vec<_> = (0..6).map(|_| pace.turn(began, after(1000), 4)).collect();
        let in_time = [0, 250, 500, 750, 1000].map(at);
        assert_eq!(turns[..5], in_time);
        assert_eq!(turns[5], None, "what is too late is not taken");
        assert!(pace.is_owed(after(1249)) && !pace.is_owed(after(1250)));
        let late = after(90_000);
        let rested = [(); 2].map(|()| pace.turn(after(60_000), late, 4));
        assert_eq!(rested, [60_000, 60_250].map(at));
        let slower = [(); 2].map(|()| pace.turn(after(60_400), late, 1));
        assert_eq!(slower, [60_500, 61_500].map(at), "what is owed stays owed");
    }

    #[tokio::test]
    async fn the_pace_of_an_endpoint_is_kept_until_nothing_is_owed() {
        let (limiter, webhook) = (EndpointLimiter::new(2), WebhookId::from_random([1; 16]));
        let options = DeliveryOptions {
            max_per_second: Some(1),
            ..DeliveryOptions::default()
        };
        let kept = |limiter: &EndpointLimiter| limiter.endpoints.lock().len();
        let permits = limiter.permits(&webhook, &options);
        assert!(permits.acquire(SOON).await.is_some(), "the first at once");
        let far = Instant::now() + Duration::from_secs(3600);
        *permits.pace.0.lock() = Some(far);
        assert!(permits.acquire(SOON).await.is_none(), "not before its turn");
        drop(permits);
        limiter.drop_idle();
        assert_eq!(kept(&limiter), 1);
        *limiter.permits(&webhook, &options).pace.0.lock() = None;
        limiter.drop_idle();
        assert_eq!(kept(&limiter), 0);
    }
}
