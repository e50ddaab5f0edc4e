//! Rate limits: how many requests a caller may make, counted for each API key.

use std::num::NonZeroU32;

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DefaultKeyedStateStore,
};
use sluice_store::Access;

use crate::error::ApiError;

/// What one caller may ask for.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// Requests per minute in the long run.
    pub per_minute: NonZeroU32,
    /// Requests at once after a pause.
    pub burst: NonZeroU32,
}

/// A bucket for each API key, and one for callers who need none. Only API keys that exist get one, so there are
/// never more than were made.
#[derive(Debug)]
pub struct CallerLimiter<C: Clock = DefaultClock> {
    buckets: RateLimiter<Access, DefaultKeyedStateStore<Access>, C, NoOpMiddleware<C::Instant>>,
}

impl CallerLimiter {
    /// Full buckets on the clock of the system.
    #[must_use]
    pub fn new(limit: RateLimit) -> Self {
        Self::with_clock(limit, DefaultClock::default())
    }
}

impl<C: Clock> CallerLimiter<C> {
    /// Full buckets on this clock.
    #[must_use]
    pub fn with_clock(limit: RateLimit, clock: C) -> Self {
        let quota = Quota::per_minute(limit.per_minute).allow_burst(limit.burst);
        Self {
            buckets: RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock),
        }
    }

    /// Counts a request of `caller`.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] with the seconds after which there is room again.
    pub fn count(&self, caller: &Access) -> Result<(), ApiError> {
        self.buckets.check_key(caller).map_err(|full| {
            let wait = full.wait_time_from(self.buckets.clock().now());
            // Rounded up: a caller that comes back then is let in.
            let retry_after_secs = wait.as_secs().saturating_add(1);
            ApiError::RateLimited { retry_after_secs }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;
    use sluice_store::ApiKeyId;

    use super::*;

    fn limiter(clock: &FakeRelativeClock) -> CallerLimiter<FakeRelativeClock> {
        let limit = RateLimit {
            per_minute: NonZeroU32::new(6).expect("not zero"),
            burst: NonZeroU32::new(2).expect("not zero"),
        };
        CallerLimiter::with_clock(limit, clock.clone())
    }

    fn caller(number: u8) -> Access {
        Access::Key(ApiKeyId::from_random([number; 8]))
    }

    fn wait(limiter: &CallerLimiter<FakeRelativeClock>, caller: &Access) -> Option<u64> {
        match limiter.count(caller) {
            Ok(()) => None,
            Err(ApiError::RateLimited { retry_after_secs }) => Some(retry_after_secs),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_burst_is_followed_by_the_steady_rate() {
        let clock = FakeRelativeClock::default();
        let (limiter, key) = (limiter(&clock), caller(1));
        assert_eq!(wait(&limiter, &key), None);
        assert_eq!(wait(&limiter, &key), None);
        let pause = wait(&limiter, &key).expect("the bucket is empty");
        assert!((1..=11).contains(&pause), "{pause}");
        clock.advance(Duration::from_secs(pause));
        assert_eq!(wait(&limiter, &key), None, "as promised");
        assert!(wait(&limiter, &key).is_some(), "one in ten seconds");
    }

    #[test]
    fn callers_do_not_share_a_bucket() {
        let clock = FakeRelativeClock::default();
        let limiter = limiter(&clock);
        let (one, other) = (caller(1), caller(2));
        while wait(&limiter, &one).is_none() {}
        assert_eq!(wait(&limiter, &other), None);
        assert_eq!(wait(&limiter, &Access::All), None);
    }
}
