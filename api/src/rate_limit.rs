//! Rate limit headers: the names of limits on what clients hold open, and the headers in which answers say what is left.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// What is left of a limit, and the limit itself (draft-ietf-httpapi-ratelimit-headers).
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What clients hold open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Connections.
    Connections,
    /// Streams, each on a connection of its own.
    Streams,
}

impl Opened {
    /// The name of the limit of all.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Streams => "streams",
        }
    }

    /// The name of the limit of one client.
    #[must_use]
    pub const fn name_per_client(self) -> &'static str {
        match self {
            Self::Connections => "connections-per-client",
            Self::Streams => "streams-per-client",
        }
    }
}

/// What is left to a client of what it may hold open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Name of the limit.
    pub name: &'static str,
    /// How many more it may open.
    pub left: usize,
    /// How many it may hold open.
    pub most: usize,
}

impl Share {
    /// Says it in the answer. When there is more of it nobody knows: whenever the client ends one.
    pub fn put(self, headers: &mut HeaderMap) {
        let Self { name, left, most } = self;
        let rest = HeaderValue::from_str(&format!("\"{name}\";r={left}"));
        let policy = format!("\"{name}\";q={most};qu=\"concurrent-requests\"");
        if let Some((rest, policy)) = rest.ok().zip(HeaderValue::from_str(&policy).ok()) {
            headers.append(RATE_LIMIT, rest);
            headers.append(RATE_LIMIT_POLICY, policy);
        }
    }
}
