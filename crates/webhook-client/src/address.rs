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
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        refusal(text.parse().expect("an address")).is_some()
    }

    #[test]
    fn every_special_range_is_refused_from_its_first_to_its_last_address() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("::", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert!(refused(first), "{first}");
            assert!(refused(last), "{last}");
        }
    }

    #[test]
    fn the_neighbours_of_the_ranges_are_public() {
        for public in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "8.8.8.8",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "3ffe::1",
            "3fff:1000::",
            "2606:4700::1111",
        ] {
            assert!(!refused(public), "{public}");
        }
    }

    #[test]
    fn ipv4_in_ipv6_is_refused_in_every_form_whatever_it_embeds() {
        for form in [
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "::5efe:127.0.0.1",
            "fe80::5efe:8.8.8.8",
            "2002:7f00:1::",
            "2002:808:808::",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "::1",
            "::",
            "fd00:ec2::254",
        ] {
            assert!(refused(form), "{form}");
        }
    }

    #[test]
    fn nat64_is_judged_by_what_it_embeds() {
        assert!(refused("64:ff9b::127.0.0.1"));
        assert!(refused("64:ff9b::169.254.169.254"));
        assert!(!refused("64:ff9b::8.8.8.8"));
    }

    #[test]
    fn the_machines_own_addresses_are_refused_in_every_spelling() {
        let own: Own = ["8.8.8.8", "2606:4700::1"]
            .map(|text| text.parse().expect("an address"))
            .into_iter()
            .collect();
        let refused = |text: &str| own.refusal(text.parse().expect("an address")).is_some();
        for text in ["8.8.8.8", "2606:4700::1", "64:ff9b::8.8.8.8"] {
            assert!(refused(text), "{text}");
        }
        for text in ["8.8.4.4", "2606:4700::2", "64:ff9b::8.8.4.4"] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn the_machine_knows_its_addresses() {
        let own = Own::read().expect("the system answers");
        assert!(own.refusal(Ipv4Addr::LOCALHOST.into()).is_some());
    }
}
