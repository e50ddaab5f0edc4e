//! Places: how many connections or streams are open, of all clients and of each.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use axum::http::HeaderMap;
use parking_lot::Mutex;

use crate::{
    client::{Client, Proxies},
    error::ApiError,
    metrics::Metrics,
    rate_limit::{Opened, Share},
};

/// The most places.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Of all clients.
    pub of_all: usize,
    /// Of one client.
    pub of_client: usize,
    /// Whether clients on this machine have a limit of their own.
    pub limits_loopback: bool,
}

/// Whose places are all taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Those of all clients together.
    All,
    /// Those of the client, which are so many.
    Client(usize),
}

/// The places of connections, or of streams. Clones count together.
#[derive(Clone)]
pub struct Places(Arc<Shared>);

struct Shared {
    of: Opened,
    most: Most,
    proxies: Proxies,
    metrics: Metrics,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of_client: HashMap<Client, usize>,
}

/// A taken place, free again when it is dropped.
pub struct Place {
    shared: Arc<Shared>,
    client: Client,
    share: Option<Share>,
}

impl Places {
    /// None is taken.
    #[must_use]
    pub fn new(of: Opened, most: Most, proxies: Proxies, metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            of,
            most,
            proxies,
            metrics,
            taken: Mutex::default(),
        }))
    }

    /// A place for a connection from this address. Behind a proxy are many clients: the proxy has no limit but that of all.
    ///
    /// # Errors
    /// Whose limit is reached.
    pub fn of_peer(&self, peer: IpAddr) -> Result<Place, Full> {
        self.take(Client::from(peer), self.0.proxies.trusts(peer))
    }

    /// A place for what the client of a request asks for, which came from this address with these headers.
    ///
    /// # Errors
    /// Whose limit is reached.
    pub fn of_request(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Place, Full> {
        self.take(self.0.proxies.client(peer, headers), false)
    }

    /// How many are free, and how many there are.
    pub fn free(&self) -> (usize, usize) {
        let of_all = self.0.most.of_all;
        let taken = self.0.taken.lock().all;
        (of_all.saturating_sub(taken), of_all)
    }

    /// So many give up theirs for others, at the limit of all.
    pub fn given_up(&self, count: usize) {
        let shared = &self.0;
        (0..count).for_each(|_| shared.metrics.refused(shared.of.name()));
    }

    fn take(&self, client: Client, is_proxy: bool) -> Result<Place, Full> {
        let shared = &self.0;
        let most = &shared.most;
        let is_free = is_proxy || (client.is_loopback() && !most.limits_loopback);
        let mut taken = shared.taken.lock();
        if taken.all >= most.of_all {
            shared.metrics.refused(shared.of.name());
            return Err(Full::All);
        }
        let of_client = taken.of_client.entry(client).or_default();
        if *of_client >= most.of_client && !is_free {
            shared.metrics.refused(shared.of.name_per_client());
            return Err(Full::Client(most.of_client));
        }
        *of_client = of_client.saturating_add(1);
        let left = most.of_client.saturating_sub(*of_client);
        taken.all = taken.all.saturating_add(1);
        shared.metrics.opened(shared.of, taken.all);
        drop(taken);
        Ok(Place {
            shared: Arc::clone(shared),
            client,
            share: (!is_free).then_some(Share {
                name: shared.of.name(),
                left,
                most: most.of_client,
            }),
        })
    }
}

impl Place {
    /// What was left to the client when this was taken; `None` where it has no limit of its own.
    #[must_use]
    pub const fn share(&self) -> Option<Share> {
        self.share
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.shared.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(of_client) = taken.of_client.get_mut(&self.client) {
            *of_client = of_client.saturating_sub(1);
            if *of_client == 0 {
                taken.of_client.remove(&self.client);
            }
        }
        self.shared.metrics.opened(self.shared.of, taken.all);
    }
}

impl From<Full> for ApiError {
    fn from(full: Full) -> Self {
        Self::TooManyStreams {
            of_client: match full {
                Full::All => None,
                Full::Client(most) => Some(most),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(limits_loopback: bool) -> Places {
        let most = Most {
            of_all: 4,
            of_client: 2,
            limits_loopback,
        };
        let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
        let proxies = Proxies::new(trusted, "x-forwarded-for");
        Places::new(Opened::Connections, most, proxies, Metrics::default())
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_client_has_its_share_and_a_closed_connection_makes_room() {
        let places = places(true);
        let (busy, calm) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let first = places.of_peer(busy).expect("room");
        let _second = places.of_peer(busy).expect("room");
        assert_eq!(places.of_peer(busy).err(), Some(Full::Client(2)));
        let _other = places.of_peer(calm).expect("room for another client");
        drop(first);
        assert!(places.of_peer(busy).is_ok());
        assert!(places.0.taken.lock().of_client.len() <= 2);
    }

    #[test]
    fn a_proxy_and_this_machine_have_the_limit_of_all_alone() {
        for (limits_loopback, free) in [(true, "10.0.0.1"), (false, "127.0.0.1")] {
            let places = places(limits_loopback);
            let taken: Vec<_> = (0..9)
                .filter_map(|_| places.of_peer(peer(free)).ok())
                .collect();
            assert_eq!(taken.len(), 4, "{free}");
            assert_eq!(places.of_peer(peer(free)).err(), Some(Full::All));
            drop(taken);
            assert!(places.0.taken.lock().of_client.is_empty());
        }
    }

    #[test]
    fn what_a_request_asks_for_counts_for_the_client_that_the_proxy_names() {
        let places = places(true);
        let proxy = peer("10.0.0.1");
        let of = |client: &'static str| {
            let line = axum::http::HeaderValue::from_static(client);
            HeaderMap::from_iter([(axum::http::HeaderName::from_static("x-forwarded-for"), line)])
        };
        let (busy, calm) = (of("192.0.2.1"), of("192.0.2.2"));
        let _taken = [(); 2].map(|()| places.of_request(proxy, &busy).expect("room"));
        let full = places.of_request(proxy, &busy).err();
        assert_eq!(full, Some(Full::Client(2)));
        assert!(places.of_request(proxy, &calm).is_ok());
    }
}
