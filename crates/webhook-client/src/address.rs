//! Address judge (pure): lets public addresses alone pass, so that no webhook reaches the inside of a network.
//!
//! IPv4 is judged by a list of what is refused, IPv6 the other way round: only global unicast is
//! accepted, and of that not the parts which tunnel to IPv4 or document. So every spelling of an IPv4
//! address in IPv6 (mapped, compatible, translated, ISATAP, 6to4, Teredo) is refused as such. The one
//! exception is the well-known NAT64 prefix, which resolvers of IPv6-only networks put in front of
//! ordinary public addresses; there the embedded address is judged.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

/// Refused IPv4 networks: base, prefix length, reason.
const REFUSED_V4: [(Ipv4Addr, u32, &str); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by carriers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relays"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "broadcast"),
];

/// Refused parts of IPv6 global unicast: base, prefix length, reason.
const REFUSED_V6: [(Ipv6Addr, u32, &str); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "Teredo"),
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "protocol assignments",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "documentation",
    ),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "documentation",
    ),
];

/// IPv6 global unicast.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Translation to IPv4; the last 32 bits are the IPv4 address.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Why `address` must not be connected to; `None` when it is an ordinary public address.
#[must_use]
pub fn refusal(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => refusal_v4(address),
        IpAddr::V6(address) => refusal_v6(address),
    }
}

/// Addresses of the machine that delivers. Some may be public, and what listens there may trust callers from
/// the machine itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own(Arc<BTreeSet<IpAddr>>);

impl Own {
    /// The addresses that the machine's interfaces have now.
    ///
    /// # Errors
    /// When the system does not answer.
    pub(crate) fn read() -> io::Result<Self> {
        let interfaces = nix::ifaddrs::getifaddrs()?;
        Ok(Self::from_iter(interfaces.filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })))
    }

    /// Why `address` must not be connected to; `None` when it is another machine's.
    pub(crate) fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        let is_own =
            self.0.contains(&address) || embedded(address).is_some_and(|v4| self.0.contains(&v4));
        is_own.then_some("the service's own")
    }
}

impl FromIterator<IpAddr> for Own {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(addresses: I) -> Self {
        Self(Arc::new(addresses.into_iter().collect()))
    }
}

/// The IPv4 address that is meant by one that is translated.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V6(address) if same_prefix_v6(address, NAT64.0, NAT64.1) => {
            let [.., a, b, c, d] = address.octets();
            Some(Ipv4Addr::new(a, b, c, d).into())
        }
        _ => None,
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<&'static str> {
    REFUSED_V4
        .iter()
        .find(|(base, length, _)| same_prefix_v4(address, *base, *length))
        .map(|(_, _, reason)| *reason)
}

fn refusal_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(embedded) = embedded(address.into()) {
        return refusal(embedded);
    }
    if !same_prefix_v6(address, GLOBAL_V6.0, GLOBAL_V6.1) {
        return Some("not global unicast");
    }
    REFUSED_V6
        .iter()
        .find(|(base, length, _)| same_prefix_v6(address, *base, *length))
        .map(|(_, _, reason)| *reason)
}

fn same_prefix_v4(one: Ipv4Addr, other: Ipv4Addr, length: u32) -> bool {
    (one.to_bits() ^ other.to_bits()).leading_zeros() >= length
}

fn same_prefix_v6(one: Ipv6Addr, other: Ipv6Addr, length: u32) -> bool {
    (one.to_bits() ^ other.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests;
