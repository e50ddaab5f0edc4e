//! Client: who makes a request, by network address, or by what a trusted proxy says of it (pure but for the look at whose
//! socket it came by).

mod socket_owner;

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};
use ipnet::IpNet;

/// Bits of an IPv6 address that count: a subscriber has all addresses of such a network.
const SUBSCRIBER_BITS: u32 = 64;

/// Headers by which proxies say that they pass on somebody else's request.
const FORWARDED: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The other end of a connection: of every request an extension.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

impl Peer {
    /// The other end of the connection of a request with these extensions. One that came by none was made in this process.
    #[must_use]
    pub fn of(extensions: &Extensions) -> IpAddr {
        let peer = extensions.get::<Self>();
        peer.map_or(Ipv4Addr::LOCALHOST.into(), |Self(address)| address.ip())
    }
}

/// This end of a connection: of every request an extension.
#[derive(Clone, Copy, Debug)]
pub struct Here(pub SocketAddr);

/// A client as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(IpAddr);

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let network = u128::from(address) >> SUBSCRIBER_BITS << SUBSCRIBER_BITS;
                Ipv6Addr::from(network).into()
            }
            address => address,
        })
    }
}

impl Client {
    /// Whether it is on this machine.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.0.is_loopback()
    }
}

/// The proxies that are believed, and the header in which they name the client.
#[derive(Clone, Debug)]
pub struct Proxies {
    trusted: Vec<IpNet>,
    header: HeaderName,
}

impl Proxies {
    /// Proxies in these networks. A name that is none of a header is one that no request has.
    #[must_use]
    pub fn new(trusted: Vec<IpNet>, header: &str) -> Self {
        let header = HeaderName::from_bytes(header.as_bytes());
        Self {
            trusted,
            header: header.unwrap_or(HeaderName::from_static("x-forwarded-for")),
        }
    }

    /// Whether this address is a proxy's.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Who made a request that came from `peer`: the last address in the header that is not a proxy's. What stands before it
    /// was written by the client itself.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let mut client = peer;
        if self.trusts(peer) {
            for address in named(headers, &self.header) {
                // Behind what cannot be read, nothing can be believed.
                let Some(address) = address else { break };
                client = address;
                if !self.trusts(address) {
                    break;
                }
            }
        }
        client.into()
    }
}

/// The addresses that a header names, last first; `None` for what is no address.
fn named<'a>(
    headers: &'a HeaderMap,
    header: &'a HeaderName,
) -> impl Iterator<Item = Option<IpAddr>> + 'a {
    let mut lines: Vec<&HeaderValue> = headers.get_all(header).iter().collect();
    lines.reverse();
    lines
        .into_iter()
        .flat_map(|line| line.to_str().unwrap_or_default().rsplit(','))
        .map(|text| address(text.trim()))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().map(|socket| socket.ip());
    bare.parse().or_else(|_| with_port()).ok()
}

/// Whether a request was made on this machine, as far as can be seen.
#[derive(Clone, Copy, Debug)]
pub struct PeerIsHere(pub bool);

impl<S: Send + Sync> FromRequestParts<S> for PeerIsHere {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<Peer>();
        let is_near = peer.is_some_and(|Peer(address)| address.ip().to_canonical().is_loopback());
        Ok(Self(is_near && from_this_machine(&parts.headers)))
    }
}

/// What shows whether a request was made on this machine, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    looks_local: bool,
    /// The other end of the connection, and this one; `None` for a request that came by none.
    ends: Option<(SocketAddr, Option<SocketAddr>)>,
}

impl Source {
    /// The source of a request with these headers and extensions.
    #[must_use]
    pub fn of(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let here = extensions.get::<Here>().map(|Here(address)| *address);
        let peer = extensions.get::<Peer>();
        Self {
            looks_local: from_this_machine(headers),
            ends: peer.map(|Peer(address)| (*address, here)),
        }
    }

    /// Whether nothing says that the request comes from elsewhere.
    #[must_use]
    pub const fn looks_local(&self) -> bool {
        self.looks_local
    }

    /// Whether the request was made on this machine by the user under whom this process runs, or in this process.
    pub async fn is_ours(&self) -> bool {
        if !self.looks_local {
            return false;
        }
        let (peer, here) = match self.ends {
            None => return true,
            Some((peer, Some(here))) => (peer, here),
            Some((_, None)) => return false,
        };
        // The kernel writes a line for each of the machine's sockets, of which there may be thousands.
        let look = tokio::task::spawn_blocking(move || socket_owner::is_ours(peer, here));
        look.await.unwrap_or(false)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Source {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers, &parts.extensions))
    }
}

/// Whether nothing says that the request comes from elsewhere.
fn from_this_machine(headers: &HeaderMap) -> bool {
    let forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
    let host = headers.get(header::HOST);
    !forwarded && host.is_none_or(|host| host.to_str().is_ok_and(names_loopback))
}

/// Whether the value of a Host header is a loopback address or `localhost`.
fn names_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || literal
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let proxies = Proxies::new(
            ["10.0.0.0/8", "127.0.0.1/32"]
                .map(|net| net.parse().expect("a network"))
                .into(),
            "X-Forwarded-For",
        );
        let lines = lines.iter().map(|line| {
            let value = HeaderValue::from_str(line).expect("a value");
            (HeaderName::from_static("x-forwarded-for"), value)
        });
        let headers = lines.collect();
        let Client(address) = proxies.client(peer.parse().expect("an address"), &headers);
        address.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        assert_eq!(client("192.0.2.1", &["198.51.100.9"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(client("::ffff:10.0.0.1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn what_the_client_writes_itself_is_not_believed() {
        let through_two = ["203.0.113.5, 198.51.100.9", "10.0.0.2"];
        assert_eq!(client("10.0.0.1", &through_two), "198.51.100.9");
        assert_eq!(client("10.0.0.1", &["203.0.113.5, nonsense"]), "10.0.0.1");
        assert_eq!(
            client("10.0.0.1", &["203.0.113.5, x, 10.0.0.2"]),
            "10.0.0.2"
        );
        assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }

    #[test]
    fn addresses_come_with_ports_and_brackets_and_a_subscriber_has_a_network() {
        assert_eq!(client("10.0.0.1", &["198.51.100.9:4711"]), "198.51.100.9");
        assert_eq!(client("10.0.0.1", &["[2001:db8::7]:80"]), "2001:db8::");
        assert_eq!(client("10.0.0.1", &["[2001:db8::7]"]), "2001:db8::");
        assert_eq!(client("2001:db8:0:1:2:3:4:5", &[]), "2001:db8:0:1::");
        assert_eq!(client("::1", &[]), "::1");
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).expect("a value");
            (HeaderName::from_static(name), value)
        });
        pairs.collect()
    }

    #[test]
    fn only_requests_from_this_machine_look_so() {
        for host in [
            "localhost",
            "LOCALHOST:8787",
            "127.0.0.1",
            "127.0.0.2:80",
            "[::1]:8787",
            "[::1]",
        ] {
            assert!(from_this_machine(&headers(&[("host", host)])), "{host}");
        }
        assert!(from_this_machine(&HeaderMap::new()));
        for host in [
            "rebound.example.com:8787",
            "localhost.example.com",
            "10.0.0.1:8787",
            "",
            "[fe80::1]",
        ] {
            assert!(!from_this_machine(&headers(&[("host", host)])), "{host}");
        }
        for name in FORWARDED {
            let proxied = headers(&[("host", "localhost"), (name, "192.0.2.1")]);
            assert!(!from_this_machine(&proxied), "{name}");
        }
    }
}
