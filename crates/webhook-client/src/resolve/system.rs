//! [`SystemResolver`]: asks the name servers that the system is set up with, without a thread of its own for a name.
//!
//! The system's own function blocks a thread for as long as a name server keeps silent, however long ago its caller gave up.

use std::{io, net::IpAddr, time::Duration};

use hickory_resolver::{
    ResolverBuilder, TokioResolver,
    config::LookupIpStrategy,
    net::{NetError, runtime::TokioRuntimeProvider},
};
use tokio::time::timeout;

use super::{Lookup, Resolver};

/// How long a lookup may take in all, more name servers and attempts than one included. Nothing of it is left afterwards.
const DEADLINE: Duration = Duration::from_secs(10);

/// The names of the system: of `/etc/hosts`, and of the name servers and search list of `/etc/resolv.conf`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup(&self, name: &str) -> Lookup {
        let name = name.to_owned();
        Box::pin(async move {
            // Read each time, as the system's own function does: a network that changes is followed.
            lookup(TokioResolver::builder_tokio(), name, DEADLINE).await
        })
    }
}

/// The addresses of a name by a resolver that is made for it.
async fn lookup(
    builder: Result<ResolverBuilder<TokioRuntimeProvider>, NetError>,
    name: String,
    deadline: Duration,
) -> io::Result<Vec<IpAddr>> {
    let mut builder = builder.map_err(io::Error::other)?;
    let options = builder.options_mut();
    // Answers are kept by who asks.
    options.cache_size = 0;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    let resolver = builder.build().map_err(io::Error::other)?;
    match timeout(deadline, resolver.lookup_ip(name)).await {
        Ok(Ok(found)) => Ok(found.iter().collect()),
        Ok(Err(error)) if error.is_no_records_found() => {
            Err(io::Error::new(io::ErrorKind::NotFound, "no such name"))
        }
        Ok(Err(error)) => Err(io::Error::other(error)),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "no name server answered in time",
        )),
    }
}

#[cfg(test)]
mod tests;
