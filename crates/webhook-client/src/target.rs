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
mod tests;
