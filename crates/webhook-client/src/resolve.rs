//! Names become addresses, and every address is judged.
//!
//! The judge is the HTTP client's resolver itself: the connection goes to the addresses that were judged,
//! and there is no second resolution that could answer differently.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{target::Zone, timeline};

/// A resolution under way.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Whoever knows the addresses of names.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of `name`.
    fn lookup(&self, name: &str) -> Lookup;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup(&self, name: &str) -> Lookup {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver that gives out addresses of one zone only.
pub(crate) struct Judging {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) zone: Zone,
}

impl Resolve for Judging {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, zone) = (self.resolver.lookup(name.as_str()), self.zone);
        Box::pin(async move {
            let addresses = lookup.await?;
            timeline::resolved();
            zone.judge(&addresses)?;
            // The port is the client's to fill in.
            let sockets = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}
