//! Client limits: how many requests a client may make, those that ask the RPC node counted once more apart, and what answers
//! say of them.

use std::{
    fmt::Write,
    net::IpAddr,
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::{NoOpMiddleware, StateInformationMiddleware},
    state::keyed::DefaultKeyedStateStore,
};

use crate::{
    auth::RateLimit,
    client::{Client, Proxies},
    error::ApiError,
    metrics::Route,
    rate_limit::{RATE_LIMIT, RATE_LIMIT_POLICY},
};

/// After so many counted requests the clients whose buckets are full again are forgotten, so that memory is held for those
/// alone that came lately.
const FORGET_EVERY: u32 = 4_096;

/// The limits of clients.
pub struct ClientLimits<C: Clock = DefaultClock> {
    requests: Buckets<C>,
    node_requests: Buckets<C>,
    proxies: Proxies,
    limits_loopback: bool,
}

/// A bucket for each client.
struct Buckets<C: Clock> {
    name: &'static str,
    limit: RateLimit,
    limiter: RateLimiter<Client, DefaultKeyedStateStore<Client>, C, StateInformationMiddleware>,
    counted: AtomicU32,
}

/// What a counted request leaves of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    name: &'static str,
    requests: u32,
    /// Until there are as many as after a pause, seconds.
    full_in: u64,
}

/// A request beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the limit.
    pub name: &'static str,
    retry_after_secs: u64,
}

/// What the answer to a counted request says of the limits; nothing where the client has none.
#[derive(Clone, Debug, Default)]
pub struct Standing(Option<(HeaderValue, HeaderValue)>);

impl ClientLimits {
    /// Full buckets on the clock of the system.
    #[must_use]
    pub fn new(
        requests: RateLimit,
        node_requests: RateLimit,
        proxies: Proxies,
        limits_loopback: bool,
    ) -> Self {
        let clock = DefaultClock::default();
        Self::with_clock(requests, node_requests, proxies, limits_loopback, &clock)
    }
}

impl<C: Clock + Clone> ClientLimits<C> {
    fn with_clock(
        requests: RateLimit,
        node_requests: RateLimit,
        proxies: Proxies,
        limits_loopback: bool,
        clock: &C,
    ) -> Self {
        Self {
            requests: Buckets::new("requests", requests, C::clone(clock)),
            node_requests: Buckets::new("node-requests", node_requests, C::clone(clock)),
            proxies,
            limits_loopback,
        }
    }

    /// Counts a request of `route` that came from `peer`.
    ///
    /// # Errors
    /// The limit that it is beyond.
    pub fn count(
        &self,
        route: Route,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> Result<Standing, Refusal> {
        if !route.is_limited() {
            return Ok(Standing::default());
        }
        let client = self.proxies.client(peer, headers);
        if client.is_loopback() && !self.limits_loopback {
            return Ok(Standing::default());
        }
        let requests = self.requests.count(client)?;
        let node_requests = route
            .asks_node()
            .then(|| self.node_requests.count(client))
            .transpose()?;
        let left = [Some(requests), node_requests];
        Ok(self.standing(left.into_iter().flatten()))
    }

    fn standing(&self, left: impl Iterator<Item = Left>) -> Standing {
        let (mut rest, mut policy) = (String::with_capacity(64), String::with_capacity(64));
        for (index, each) in left.enumerate() {
            let buckets = if index == 0 {
                &self.requests
            } else {
                &self.node_requests
            };
            let comma = if index == 0 { "" } else { ", " };
            let Left {
                name,
                requests,
                full_in,
            } = each;
            let _ = write!(rest, "{comma}\"{name}\";r={requests};t={full_in}");
            let (most, window) = (buckets.limit.burst, buckets.window());
            let _ = write!(policy, "{comma}\"{name}\";q={most};w={window}");
        }
        let rest = HeaderValue::from_maybe_shared(bytes::Bytes::from(rest));
        let policy = HeaderValue::from_maybe_shared(bytes::Bytes::from(policy));
        Standing(rest.ok().zip(policy.ok()))
    }
}

impl<C: Clock> Buckets<C> {
    fn new(name: &'static str, limit: RateLimit, clock: C) -> Self {
        let quota = Quota::per_minute(limit.per_minute).allow_burst(limit.burst);
        let store = DefaultKeyedStateStore::default();
        let limiter = RateLimiter::<_, _, C, NoOpMiddleware<C::Instant>>::new(quota, store, clock);
        Self {
            name,
            limit,
            limiter: limiter.with_middleware(),
            counted: AtomicU32::new(0),
        }
    }

    fn count(&self, client: Client) -> Result<Left, Refusal> {
        if self.counted.fetch_add(1, Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.limiter.retain_recent();
        }
        match self.limiter.check_key(&client) {
            Ok(snapshot) => {
                let requests = snapshot.remaining_burst_capacity();
                let used = self.limit.burst.get().saturating_sub(requests);
                Ok(Left {
                    name: self.name,
                    requests,
                    full_in: seconds_for(used, self.limit.per_minute),
                })
            }
            Err(full) => {
                let wait = full.wait_time_from(self.limiter.clock().now());
                Err(Refusal {
                    name: self.name,
                    // Rounded up: a client that comes back then is let in.
                    retry_after_secs: wait.as_secs().saturating_add(1),
                })
            }
        }
    }

    /// The time in which the bucket fills, seconds.
    fn window(&self) -> u64 {
        seconds_for(self.limit.burst.get(), self.limit.per_minute).max(1)
    }
}

/// The time in which so many requests come back, seconds, rounded up.
fn seconds_for(requests: u32, per_minute: NonZeroU32) -> u64 {
    let minute = Duration::from_secs(60).as_secs();
    (u64::from(requests) * minute).div_ceil(u64::from(per_minute.get()))
}

impl Standing {
    /// Says it in the answer, beside what that says of a share already: several lines are one list.
    pub fn put(self, headers: &mut HeaderMap) {
        if let Some((rest, policy)) = self.0 {
            headers.append(RATE_LIMIT, rest);
            headers.append(RATE_LIMIT_POLICY, policy);
        }
    }
}

impl Refusal {
    /// What the answer says of the limit.
    #[must_use]
    pub fn standing<C: Clock>(self, limits: &ClientLimits<C>) -> Standing {
        let buckets = [&limits.requests, &limits.node_requests];
        let of = buckets
            .into_iter()
            .find(|buckets| buckets.name == self.name);
        Standing(of.and_then(|buckets| {
            let Self {
                name,
                retry_after_secs,
            } = self;
            let (most, window) = (buckets.limit.burst, buckets.window());
            let rest = HeaderValue::from_str(&format!("\"{name}\";r=0;t={retry_after_secs}"));
            let policy = HeaderValue::from_str(&format!("\"{name}\";q={most};w={window}"));
            rest.ok().zip(policy.ok())
        }))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::TooManyRequests {
            limit: refusal.name,
            retry_after_secs: refusal.retry_after_secs,
        }
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const BUSY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const CALM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn limit(per_minute: u32, burst: u32) -> RateLimit {
        RateLimit {
            per_minute: NonZeroU32::new(per_minute).expect("not zero"),
            burst: NonZeroU32::new(burst).expect("not zero"),
        }
    }

    fn limits(clock: &FakeRelativeClock, loopback: bool) -> ClientLimits<FakeRelativeClock> {
        let proxies = Proxies::new(Vec::new(), "x-forwarded-for");
        ClientLimits::with_clock(limit(60, 3), limit(60, 1), proxies, loopback, clock)
    }

    fn count(
        limits: &ClientLimits<FakeRelativeClock>,
        route: Route,
        peer: IpAddr,
    ) -> Result<String, Refusal> {
        let Standing(standing) = limits.count(route, peer, &HeaderMap::new())?;
        let (rest, policy) = standing.unwrap_or((
            HeaderValue::from_static("none"),
            HeaderValue::from_static("none"),
        ));
        let text = |value: HeaderValue| value.to_str().expect("text").to_owned();
        Ok(format!("{} of {}", text(rest), text(policy)))
    }

    #[test]
    fn a_client_is_refused_beyond_its_burst_and_let_in_again_as_promised() {
        let clock = FakeRelativeClock::default();
        let limits = limits(&clock, false);
        let first = count(&limits, Route::Quote, BUSY);
        assert_eq!(
            first.as_deref(),
            Ok("\"requests\";r=2;t=1 of \"requests\";q=3;w=3")
        );
        while count(&limits, Route::Quote, BUSY).is_ok() {}
        let refusal = count(&limits, Route::Quote, BUSY).expect_err("beyond");
        assert_eq!(refusal.name, "requests");
        assert!(count(&limits, Route::Quote, CALM).is_ok(), "another client");
        assert!(count(&limits, Route::Health, BUSY).is_ok());
        clock.advance(Duration::from_secs(refusal.retry_after_secs));
        assert!(count(&limits, Route::Quote, BUSY).is_ok());
    }

    #[test]
    fn requests_that_ask_the_node_are_counted_once_more() {
        let clock = FakeRelativeClock::default();
        let limits = limits(&clock, false);
        let first = count(&limits, Route::Transaction, BUSY).expect("the first");
        assert!(first.contains("\"node-requests\";r=0;t=1"), "{first}");
        let refusal = count(&limits, Route::Instruction, BUSY).expect_err("beyond");
        assert_eq!(refusal.name, "node-requests");
        assert!(count(&limits, Route::Quote, BUSY).is_ok());
    }

    #[test]
    fn clients_on_this_machine_are_limited_where_it_is_set() {
        let clock = FakeRelativeClock::default();
        let free = limits(&clock, false);
        for _ in 0..9 {
            let free = count(&free, Route::Transaction, HERE);
            assert_eq!(free.as_deref(), Ok("none of none"));
        }
        let limited = limits(&clock, true);
        assert!((0..9).any(|_| count(&limited, Route::Quote, HERE).is_err()));
    }
}
