//! Servers: the Yellowstone servers of one cluster, and how each of them stands against the others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::request::Endpoint;

/// Servers of one cluster, in no order. Clones count together.
#[derive(Debug, Clone)]
pub struct Servers(Arc<[Server]>);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    /// Host and port, since the rest of an address may hold a key.
    pub(crate) name: String,
    pub(crate) counts: Counts,
}

/// What is counted of a server.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connected: AtomicBool,
    slot: AtomicU64,
    taken: AtomicU64,
    followed: AtomicU64,
    behind_micros: AtomicU64,
    contradictions: AtomicU64,
}

/// How a server stands against the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Host and port.
    pub server: String,
    /// Whether its stream is open.
    pub is_connected: bool,
    /// The newest slot of which it has delivered the block; 0 for none.
    pub slot: u64,
    /// Slots that were taken from it.
    pub taken: u64,
    /// Slots that it completed after another server had.
    pub followed: u64,
    /// Time by which it did so, all of these slots together.
    pub behind: Duration,
    /// Slots that are finalized, of which it has finalized another block than the one that was given out.
    pub contradictions: u64,
}

impl Servers {
    /// Servers at these endpoints.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        let servers = endpoints.into_iter().map(|endpoint| Server {
            name: endpoint.name(),
            endpoint,
            counts: Counts::default(),
        });
        Self(servers.collect())
    }

    /// The same servers, for a stream beside the one that is counted.
    #[must_use]
    pub fn counted_apart(&self) -> Self {
        Self::new(self.endpoints().cloned())
    }

    /// Where they are.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.0.iter().map(|server| &server.endpoint)
    }

    /// How each of them stands, in the order in which they were named.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        self.0.iter().map(Server::standing).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.iter()
    }

    pub(crate) fn get(&self, server: usize) -> Option<&Server> {
        self.0.get(server)
    }
}

impl From<&Servers> for Servers {
    fn from(servers: &Servers) -> Self {
        servers.clone()
    }
}

impl From<&Endpoint> for Servers {
    fn from(endpoint: &Endpoint) -> Self {
        Self::new([endpoint.clone()])
    }
}

impl Server {
    fn standing(&self) -> Standing {
        let counts = &self.counts;
        Standing {
            server: self.name.clone(),
            is_connected: counts.connected.load(Relaxed),
            slot: counts.slot.load(Relaxed),
            taken: counts.taken.load(Relaxed),
            followed: counts.followed.load(Relaxed),
            behind: Duration::from_micros(counts.behind_micros.load(Relaxed)),
            contradictions: counts.contradictions.load(Relaxed),
        }
    }
}

impl Counts {
    pub(crate) fn connected(&self, is_connected: bool) {
        self.connected.store(is_connected, Relaxed);
    }

    pub(crate) fn completed(&self, slot: u64) {
        self.slot.fetch_max(slot, Relaxed);
    }

    pub(crate) fn taken(&self) {
        self.taken.fetch_add(1, Relaxed);
    }

    pub(crate) fn followed(&self, behind: Duration) {
        let micros = u64::try_from(behind.as_micros()).unwrap_or(u64::MAX);
        self.followed.fetch_add(1, Relaxed);
        self.behind_micros.fetch_add(micros, Relaxed);
    }

    /// Returns whether it is the first one.
    pub(crate) fn contradicted(&self) -> bool {
        self.contradictions.fetch_add(1, Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_server_does_not_hold_its_key() {
        let endpoint = Endpoint {
            url: "https://user:s3cret@grpc.example.com/s3cret?api-key=s3cret"
                .parse()
                .unwrap(),
            x_token: None,
        };
        let standings = Servers::from(&endpoint).standings();
        assert_eq!(standings[0].server, "grpc.example.com:443");
    }
}
