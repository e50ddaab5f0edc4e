//! Connections: how many are open, of all clients and of each.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use crate::{
    client::{Client, Proxies},
    metrics::Metrics,
};

/// The most connections.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Of all clients.
    pub of_all: usize,
    /// Of one client.
    pub of_client: usize,
    /// Whether clients on this machine have a limit of their own.
    pub limits_loopback: bool,
}

/// The open connections. Clones count together.
#[derive(Clone)]
pub struct Connections(Arc<Shared>);

struct Shared {
    most: Most,
    proxies: Proxies,
    metrics: Metrics,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    of_client: HashMap<Client, usize>,
}

/// A place of a connection, free again when it is dropped.
pub struct Place {
    shared: Arc<Shared>,
    client: Client,
}

impl Connections {
    /// None is open. Behind a proxy are many clients: the proxy has no limit but that of all.
    #[must_use]
    pub fn new(most: Most, proxies: Proxies, metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            most,
            proxies,
            metrics,
            open: Mutex::default(),
        }))
    }

    /// A place for a connection from this address, if there is one.
    #[must_use]
    pub fn take(&self, peer: IpAddr) -> Option<Place> {
        let shared = &self.0;
        let client = Client::from(peer);
        let most = &shared.most;
        let is_free =
            shared.proxies.trusts(peer) || (client.is_loopback() && !most.limits_loopback);
        let mut open = shared.open.lock();
        if open.all >= most.of_all {
            shared.metrics.refused("connections");
            return None;
        }
        let of_client = open.of_client.entry(client).or_default();
        if *of_client >= most.of_client && !is_free {
            shared.metrics.refused("connections-per-client");
            return None;
        }
        *of_client = of_client.saturating_add(1);
        open.all = open.all.saturating_add(1);
        shared.metrics.connections(open.all);
        drop(open);
        Some(Place {
            shared: Arc::clone(shared),
            client,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock();
        open.all = open.all.saturating_sub(1);
        if let Some(of_client) = open.of_client.get_mut(&self.client) {
            *of_client = of_client.saturating_sub(1);
            if *of_client == 0 {
                open.of_client.remove(&self.client);
            }
        }
        self.shared.metrics.connections(open.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(limits_loopback: bool) -> Connections {
        let most = Most {
            of_all: 4,
            of_client: 2,
            limits_loopback,
        };
        let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
        let proxies = Proxies::new(trusted, "x-forwarded-for");
        Connections::new(most, proxies, Metrics::default())
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_client_has_its_share_and_a_closed_connection_makes_room() {
        let connections = connections(true);
        let (busy, calm) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let first = connections.take(busy).expect("room");
        let _second = connections.take(busy).expect("room");
        assert!(connections.take(busy).is_none());
        let _other = connections.take(calm).expect("room for another client");
        drop(first);
        assert!(connections.take(busy).is_some());
        assert!(connections.0.open.lock().of_client.len() <= 2);
    }

    #[test]
    fn a_proxy_and_this_machine_have_the_limit_of_all_alone() {
        for (limits_loopback, free) in [(true, "10.0.0.1"), (false, "127.0.0.1")] {
            let connections = connections(limits_loopback);
            let taken: Vec<_> = (0..9)
                .filter_map(|_| connections.take(peer(free)))
                .collect();
            assert_eq!(taken.len(), 4, "{free}");
            drop(taken);
            assert!(connections.0.open.lock().of_client.is_empty());
        }
    }
}
