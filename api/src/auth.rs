//! Authentication: requests by API key, or from a loopback address where the configuration allows it.
//!
//! An API key becomes the [`Access`] that every operation on webhooks needs. In keyless mode (`api.keyless`), until the first
//! is made, a caller on this machine may do everything, and others nothing: the listener is bound to a loopback address, and
//! the request must look like one made here. A page in a browser that has bound a foreign name to this address, or a
//! proxy that passes on what it was sent, does not. A proxy that hides whom it speaks for would, so the mode is never on
//! by itself.

mod caller_limiter;

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::Response,
};
use sluice_store::{Access, ApiKeyHash, Store};

use crate::error::ApiError;

pub use caller_limiter::{CallerLimiter, RateLimit};

/// Longest key that is looked up. Ours are shorter.
const MAX_KEY_BYTES: usize = 128;

/// Headers by which proxies say that they pass on somebody else's request.
const FORWARDED: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Finds the caller of a request by its API key, and counts the request.
#[derive(Clone, Debug)]
pub struct Authenticator {
    store: Store,
    limiter: Arc<CallerLimiter>,
    keyless: bool,
}

impl Authenticator {
    /// An authenticator that, with `keyless`, admits callers on this machine while no key was ever made.
    #[must_use]
    pub fn new(store: Store, limiter: CallerLimiter, keyless: bool) -> Self {
        Self {
            store,
            limiter: Arc::new(limiter),
            keyless,
        }
    }

    async fn access(&self, headers: &HeaderMap) -> Result<Access, ApiError> {
        let Some(key) = bearer_token(headers)? else {
            return self.without_key(headers).await;
        };
        let found = if key.len() <= MAX_KEY_BYTES {
            self.store
                .api_key_by_hash(&ApiKeyHash::of(key))
                .await
                .map_err(|error| ApiError::StoreUnavailable(error.into()))?
        } else {
            None
        };
        let key = found.ok_or(ApiError::Unauthorized {
            fault: "this API key does not exist or was revoked; `sluice keys list` shows which do",
            with_key: true,
        })?;
        Ok(Access::Key(key))
    }

    async fn without_key(&self, headers: &HeaderMap) -> Result<Access, ApiError> {
        let refuse = |fault| {
            Err(ApiError::Unauthorized {
                fault,
                with_key: false,
            })
        };
        let api_keys_in_use = self.store.api_keys_in_use().await;
        if api_keys_in_use.map_err(|error| ApiError::StoreUnavailable(error.into()))? {
            return refuse("send an API key: Authorization: Bearer sluice_…");
        }
        if !self.keyless || !from_this_machine(headers) {
            return refuse(
                "there are no API keys: make one on the server with `sluice keys add NAME` and send it as \
                 Authorization: Bearer; without one only requests made on the server itself are answered, and only \
                 with api.keyless = true",
            );
        }
        Ok(Access::All)
    }
}

/// Middleware: passes a request on with its [`Access`], or answers 401 or 429.
///
/// # Errors
/// [`ApiError::Unauthorized`], [`ApiError::RateLimited`], [`ApiError::StoreUnavailable`].
pub async fn authenticate(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let access = authenticator.access(request.headers()).await?;
    if access.api_key().is_some() {
        authenticator.limiter.count(&access)?;
    }
    request.extensions_mut().insert(access);
    Ok(next.run(request).await)
}

/// Like [`authenticate`], for requests that are not counted.
///
/// # Errors
/// [`ApiError::Unauthorized`], [`ApiError::StoreUnavailable`].
pub async fn authenticate_unmetered(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let access = authenticator.access(request.headers()).await?;
    request.extensions_mut().insert(access);
    Ok(next.run(request).await)
}

/// The caller of a request, as the webhooks that it may see.
#[derive(Clone, Debug)]
pub struct Caller(pub Access);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let access = parts.extensions.get::<Access>().cloned();
        access.map(Self).ok_or_else(|| {
            ApiError::Internal(anyhow::anyhow!(
                "a route that needs a key is not authenticated"
            ))
        })
    }
}

/// The bearer token, if there is an Authorization header.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| token.trim_start())
    });
    match token {
        Some(token) if !token.is_empty() => Ok(Some(token)),
        _ => Err(ApiError::Unauthorized {
            fault: "the Authorization header must be of the form: Bearer sluice_…",
            with_key: true,
        }),
    }
}

/// Whether nothing says that the request comes from elsewhere.
pub(crate) fn from_this_machine(headers: &HeaderMap) -> bool {
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
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name: HeaderName = name.parse().expect("a name");
                (name, HeaderValue::from_str(value).expect("a value"))
            })
            .collect()
    }

    #[test]
    fn the_bearer_token_is_read() {
        let token = |value| {
            bearer_token(&headers(&[("authorization", value)]))
                .map(|token| token.map(str::to_owned))
                .map_err(|error| error.code())
        };
        assert_eq!(token("Bearer a"), Ok(Some("a".to_owned())));
        assert_eq!(token("bearer  a"), Ok(Some("a".to_owned())));
        for bad in ["", "Bearer", "Bearer ", "Basic YTpi", "a"] {
            assert_eq!(token(bad), Err("unauthorized"), "{bad:?}");
        }
        assert!(bearer_token(&HeaderMap::new()).is_ok_and(|token| token.is_none()));
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
