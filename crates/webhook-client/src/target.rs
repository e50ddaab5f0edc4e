//! Judges URLs of webhooks (pure).

use std::net::IpAddr;

use thiserror::Error;
use url::{Host, Url};

use crate::address::{self, Own};

/// How far deliveries may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// https to public addresses.
    #[default]
    Public,
    /// Also plain http, to loopback addresses and to no others: for development.
    PublicAndLoopback,
}

/// Why a URL may not be called. No text says which address a name has: a subscriber could map an internal
/// network by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TargetFault {
    /// Not a URL, or one without a host.
    #[error("it is not a URL with a host")]
    NoUrl,
    /// User name or password in the URL.
    #[error("it holds credentials")]
    Credentials,
    /// http where it is not allowed at all.
    #[error("it is plain http, which is not allowed")]
    PlainHttp,
    /// Neither https nor http.
    #[error("it is not an https URL")]
    Scheme,
    /// The address must not be connected to.
    #[error("the receiver's address is not public ({0})")]
    Address(&'static str),
}

/// Which addresses a connection may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// Ordinary public addresses.
    Public,
    /// Loopback addresses.
    Loopback,
}

impl Zone {
    /// Why `address` is outside this zone; `None` when it is inside.
    #[must_use]
    pub fn refusal(self, address: IpAddr) -> Option<TargetFault> {
        let reason = match self {
            Self::Public => address::refusal(address),
            Self::Loopback => {
                (!address.is_loopback()).then_some("plain http is for loopback addresses")
            }
        };
        reason.map(TargetFault::Address)
    }

    /// Judges everything that a name resolved to. One bad address refuses the whole answer: a name that
    /// mixes them is not up to any good.
    ///
    /// # Errors
    /// [`TargetFault::Address`].
    pub fn judge(self, addresses: &[IpAddr]) -> Result<(), TargetFault> {
        match addresses.iter().find_map(|address| self.refusal(*address)) {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

impl Own {
    /// Judges everything that a name resolved to, as [`Zone::judge`] does.
    ///
    /// # Errors
    /// [`TargetFault::Address`].
    pub(crate) fn judge(&self, addresses: &[IpAddr]) -> Result<(), TargetFault> {
        match addresses.iter().find_map(|address| self.refusal(*address)) {
            Some(reason) => Err(TargetFault::Address(reason)),
            None => Ok(()),
        }
    }
}

/// Reads a callback URL and says where its connection may go. A literal address, which no resolver ever
/// sees, is judged here, in whatever spelling: the URL parser has made it an address.
///
/// # Errors
/// [`TargetFault`].
pub fn check(text: &str, reach: Reach) -> Result<(Url, Zone), TargetFault> {
    let url = Url::parse(text).map_err(|_| TargetFault::NoUrl)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(TargetFault::Credentials);
    }
    let zone = match (url.scheme(), reach) {
        ("https", _) => Zone::Public,
        ("http", Reach::PublicAndLoopback) => Zone::Loopback,
        ("http", Reach::Public) => return Err(TargetFault::PlainHttp),
        _ => return Err(TargetFault::Scheme),
    };
    if url.host().is_none() {
        return Err(TargetFault::NoUrl);
    }
    match literal(&url).and_then(|address| zone.refusal(address)) {
        Some(fault) => Err(fault),
        None => Ok((url, zone)),
    }
}

/// The address that a URL has in place of a name, which no resolver ever sees.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(url: &str) -> TargetFault {
        check(url, Reach::PublicAndLoopback).expect_err(url)
    }

    #[test]
    fn literal_addresses_are_judged_in_every_spelling() {
        for url in [
            "https://127.0.0.1/",
            "https://127.0.0.1:8443/hook",
            "https://127.0.0.1./",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://017700000001/",
            "https://127.1/",
            "https://127.0.1/",
            "https://1\u{ff12}7.0.0.1/",
            "https://127\u{3002}0.0.1/",
            "https://%31%32%37.0.0.1/",
            "https://0/",
            "https://0.0.0.0/",
            "https://10.0.0.1:8443/",
            "https://0xa9fea9fe/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::]/",
            "https://[::1]/",
            "https://[0:0:0:0:0:0:0:1]/",
            "https://[::127.0.0.1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[0:0:0:0:0:ffff:7f00:0001]/",
            "https://[::ffff:0:127.0.0.1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001:0:7f00:1::]/",
            "https://[64:ff9b::a9fe:a9fe]/",
            "https://[64:ff9b::127.0.0.1]/",
            "https://[64:ff9b:1::8.8.8.8]/",
            "https://[fe80::1]/",
            "https://[fd00:ec2::254]/",
            "https://[ff02::1]/",
        ] {
            assert!(
                matches!(fault(url), TargetFault::Address(_)),
                "{url}: {}",
                fault(url)
            );
        }
    }

    #[test]
    fn zone_ids_and_malformed_literals_are_no_urls() {
        for url in [
            "https://[fe80::1%25eth0]/",
            "https://[fe80::1%eth0]/",
            "https://[::1/",
            "https://::1/",
            "https://[127.0.0.1]/",
            "https://256.0.0.1/",
            "https://1.2.3.4.5/",
            "https://0x100000000/",
            "https://",
            "",
        ] {
            assert_eq!(fault(url), TargetFault::NoUrl, "{url}");
        }
    }

    #[test]
    fn schemes_and_credentials_are_judged() {
        let strict = |url| check(url, Reach::Public).expect_err(url);
        assert_eq!(strict("http://example.com/"), TargetFault::PlainHttp);
        assert_eq!(strict("http://127.0.0.1/"), TargetFault::PlainHttp);
        for url in [
            "ftp://example.com/",
            "ws://example.com/",
            "file:///etc/passwd",
        ] {
            assert_eq!(strict(url), TargetFault::Scheme, "{url}");
        }
        for url in [
            "https://user:pass@example.com/",
            "https://user@example.com/",
            "https://:pass@example.com/",
            "https://127.0.0.1@example.com/",
        ] {
            assert_eq!(strict(url), TargetFault::Credentials, "{url}");
        }
    }

    #[test]
    fn plain_http_reaches_loopback_addresses_only() {
        for url in [
            "http://10.0.0.1/",
            "http://169.254.169.254/",
            "http://8.8.8.8/",
            "http://[fd00::1]/",
            "http://0.0.0.0/",
        ] {
            assert!(matches!(fault(url), TargetFault::Address(_)), "{url}");
        }
        for url in [
            "http://127.0.0.1:9000/",
            "http://[::1]/",
            "http://localhost/",
        ] {
            let (_, zone) = check(url, Reach::PublicAndLoopback).expect(url);
            assert_eq!(zone, Zone::Loopback, "{url}");
        }
    }

    #[test]
    fn names_and_public_literals_may_be_called() {
        for url in [
            "https://example.com/hook?token=1",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]:8443/",
            "https://[64:ff9b::8.8.8.8]/",
        ] {
            assert_eq!(
                check(url, Reach::Public).map(|(_, zone)| zone),
                Ok(Zone::Public),
                "{url}"
            );
        }
    }

    #[test]
    fn one_bad_address_refuses_the_name() {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (good, bad) = (parse("8.8.8.8"), parse("10.0.0.1"));
        assert_eq!(Zone::Public.judge(&[good]), Ok(()));
        assert!(Zone::Public.judge(&[good, bad]).is_err());
        assert!(Zone::Public.judge(&[bad, good]).is_err());
        assert!(Zone::Loopback.judge(&[good]).is_err());
    }
}
