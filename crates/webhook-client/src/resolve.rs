//! Resolves names to addresses, every one of which is judged.
//!
//! The judge is the HTTP client's resolver itself: the connection goes to the addresses that were judged,
//! and there is no second resolution that could answer differently.

mod cached;
mod system;

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

pub(crate) use self::cached::CachedResolver;
pub use self::system::SystemResolver;
use crate::{address::Own, target::Zone, timeline};

/// A resolution in progress.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names to addresses.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of `name`.
    fn lookup(&self, name: &str) -> Lookup;
}

/// A resolver that gives out addresses of one zone only, and none of this machine's own unless the zone is loopback.
pub(crate) struct Judging {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) zone: Zone,
    pub(crate) own: Own,
}

impl Resolve for Judging {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, zone) = (self.resolver.lookup(name.as_str()), self.zone);
        let own = self.own.clone();
        Box::pin(async move {
            let addresses = lookup.await?;
            timeline::resolved();
            zone.judge(&addresses)?;
            if zone == Zone::Public {
                own.judge(&addresses)?;
            }
            // The port is the client's to fill in.
            let sockets = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(&'static str);

    impl Resolver for Fixed {
        fn lookup(&self, _: &str) -> Lookup {
            let address = self.0.parse().expect("an address");
            Box::pin(async move { Ok(vec![address]) })
        }
    }

    async fn resolves(zone: Zone, address: &'static str, own: &str) -> bool {
        let judging = Judging {
            resolver: Arc::new(Fixed(address)),
            zone,
            own: std::iter::once(own.parse().expect("an address")).collect(),
        };
        let name = "receiver.example".parse().expect("a name");
        judging.resolve(name).await.is_ok()
    }

    #[tokio::test]
    async fn a_public_address_of_this_machine_is_given_to_no_endpoint() {
        assert!(resolves(Zone::Public, "8.8.8.8", "8.8.4.4").await);
        assert!(!resolves(Zone::Public, "8.8.4.4", "8.8.4.4").await);
        assert!(
            resolves(Zone::Loopback, "127.0.0.1", "127.0.0.1").await,
            "allowed for development"
        );
    }
}
