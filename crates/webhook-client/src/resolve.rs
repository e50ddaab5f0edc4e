//! Resolves names to addresses, every one of which is judged.

mod cached;
mod places;
mod system;

use std::{future::Future, io, net::IpAddr, pin::Pin};

pub(crate) use self::cached::CachedResolver;
pub use self::system::SystemResolver;
use crate::{address::Own, error::SendError, target::Zone};

/// A resolution in progress.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names to addresses.
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of `name`.
    fn lookup(&self, name: &str) -> Lookup;
}

/// The addresses of a name, of one zone only, and none of this machine's `own` unless the zone is loopback.
///
/// # Errors
/// [`SendError::Target`] when one of them is refused, [`SendError::Failed`] when the name is not resolved.
pub(crate) async fn judged(
    resolver: &dyn Resolver,
    own: &Own,
    zone: Zone,
    name: &str,
) -> Result<Vec<IpAddr>, SendError> {
    let addresses = resolver.lookup(name).await.map_err(SendError::broken)?;
    zone.judge(&addresses)?;
    if zone == Zone::Public {
        own.judge(&addresses)?;
    }
    Ok(addresses)
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
        let own = std::iter::once(own.parse().expect("an address")).collect();
        let resolver = Fixed(address);
        let addresses = judged(&resolver, &own, zone, "receiver.example").await;
        addresses.is_ok()
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
