//! Authentication: requests by API key or session, or from a loopback address where the configuration allows it.
//!
//! An API key becomes the [`Access`] that every operation on webhooks needs; so does a session of the console, which was
//! opened with one. In keyless mode (`api.keyless`), until the first is made, a caller on this machine may do everything, and
//! others nothing: the listener is bound to a loopback address, the request must look like one made here, and its connection
//! must be of the user under whom this process runs. What a page in a browser sends that has bound a foreign name to this
//! address does not look so, nor does what a proxy passes on with the name that it was sent or with the headers of proxies. A
//! proxy that hides whom it speaks for is another user's. One that the same user runs cannot be told from a program of theirs, so
//! the mode is never on by itself.

mod caller_limiter;
mod sessions;

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderName, Method, header, request::Parts},
    middleware::Next,
    response::Response,
};
use sluice_store::{AcceptedApiKey, Access, ApiKeyHash, Scope, Scopes, Store};

use crate::{client::Source, error::ApiError};

pub use caller_limiter::{CallerLimiter, RateLimit};
use sessions::Sessions;
pub use sessions::{Session, SessionBytes};

/// Cookie with the name of a console's session.
pub const SESSION_COOKIE: &str = "sluice_session";

/// Header with the token that a request of a session brings when it changes something.
pub const CSRF_TOKEN: HeaderName = HeaderName::from_static("x-csrf-token");

/// Longest key that is looked up. Ours are shorter.
const MAX_KEY_BYTES: usize = 128;

/// What a caller may see, and do.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The webhooks that it may see.
    pub access: Access,
    /// What it may do with them, and beside.
    pub scopes: Scopes,
}

impl Grant {
    /// Refuses a request of this method that the caller's scopes do not allow: what reads needs one, everything else another.
    fn check(&self, method: &Method) -> Result<(), ApiError> {
        let scope = if method.is_safe() {
            Scope::WebhooksRead
        } else {
            Scope::WebhooksWrite
        };
        self.need(scope)
    }

    /// Refuses a request about API keys. Without a key one may see that there is none, and not make the first: that is done on the
    /// server, so that a page that is open to a whole machine can give nobody more than it has itself.
    fn check_for_keys(&self, method: &Method) -> Result<(), ApiError> {
        if method.is_safe() && self.access == Access::All {
            return Ok(());
        }
        self.need(Scope::KeysWrite)
    }

    /// Refuses where this scope is lacking.
    ///
    /// # Errors
    /// [`ApiError::MissingScope`].
    pub fn need(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contain(scope) {
            return Ok(());
        }
        Err(ApiError::MissingScope { scope })
    }
}

impl From<AcceptedApiKey> for Grant {
    fn from(key: AcceptedApiKey) -> Self {
        Self {
            access: Access::Key(key.id),
            scopes: key.scopes,
        }
    }
}

/// Finds the caller of a request by its API key, and counts the request.
#[derive(Clone, Debug)]
pub struct Authenticator {
    store: Store,
    limiter: Arc<CallerLimiter>,
    keyless: bool,
    sessions: Arc<Sessions>,
}

impl Authenticator {
    /// An authenticator that, with `keyless`, admits callers on this machine while no key was ever made.
    #[must_use]
    pub fn new(store: Store, limiter: CallerLimiter, keyless: bool) -> Self {
        Self {
            store,
            limiter: Arc::new(limiter),
            keyless,
            sessions: Arc::default(),
        }
    }

    /// Who may do what a request of this method, with these headers and from this source asks.
    async fn grant(
        &self,
        method: &Method,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<Grant, ApiError> {
        let (grant, _) = self.grant_by(method, headers, source).await?;
        Ok(grant)
    }

    /// [`Self::grant`], with the session that gives it; none where a key does, or nothing is needed.
    async fn grant_by(
        &self,
        method: &Method,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<(Grant, Option<Session>), ApiError> {
        let refused = |fault| ApiError::Unauthorized {
            fault,
            with_key: true,
        };
        if let Some(key) = bearer_token(headers)? {
            let found = self.by_key(key).await?;
            let grant = found.ok_or(refused(
                "this API key does not exist, was revoked or has expired; `sluice keys list` shows which do",
            ))?;
            return Ok((grant, None));
        }
        let Some(session) = self.session(headers) else {
            return Ok((self.without_key(source).await?, None));
        };
        let brought = headers.get(CSRF_TOKEN);
        if !method.is_safe()
            && brought.is_none_or(|token| token.as_bytes() != session.csrf_token.as_bytes())
        {
            return Err(refused(
                "a request of the console that changes something needs the page's token in x-csrf-token: reload the page",
            ));
        }
        let found = self.by_hash(&session.key).await?;
        let grant = found.ok_or(refused(
            "the API key of this session was revoked or has expired: sign in with another",
        ))?;
        Ok((grant, Some(session)))
    }

    /// What a key allows; nothing when there is no such key.
    async fn by_key(&self, key: &str) -> Result<Option<Grant>, ApiError> {
        if key.len() > MAX_KEY_BYTES {
            return Ok(None);
        }
        self.by_hash(&ApiKeyHash::of(key)).await
    }

    async fn by_hash(&self, hash: &ApiKeyHash) -> Result<Option<Grant>, ApiError> {
        let found = self.store.api_key_by_hash(hash).await;
        let found = found.map_err(|error| ApiError::StoreUnavailable(error.into()))?;
        Ok(found.map(Grant::from))
    }

    /// The session that a request is of.
    fn session(&self, headers: &HeaderMap) -> Option<Session> {
        self.sessions.find(session_cookie(headers)?, Instant::now())
    }

    /// Opens a session for a key, and answers its name; nothing when there is no such key.
    ///
    /// # Errors
    /// [`ApiError::StoreUnavailable`].
    pub async fn sign_in(
        &self,
        key: &str,
        random: SessionBytes,
    ) -> Result<Option<String>, ApiError> {
        let found = self.by_key(key).await?;
        let open = |_| {
            self.sessions
                .open(ApiKeyHash::of(key), random, Instant::now())
        };
        Ok(found.map(open))
    }

    /// Ends the session that a request is of, if it brings the session's token.
    pub fn sign_out(&self, headers: &HeaderMap, csrf_token: &str) {
        if let (Some(name), Some(session)) = (session_cookie(headers), self.session(headers))
            && session.csrf_token == csrf_token
        {
            self.sessions.close(name);
        }
    }

    /// The session under which a page is shown; none where a request brings its key, or callers on this machine need none.
    ///
    /// # Errors
    /// [`ApiError::Unauthorized`] where a key is needed and no session is open, [`ApiError::MissingScope`] where that key may
    /// not read, [`ApiError::StoreUnavailable`].
    pub async fn page_session(
        &self,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<Option<Session>, ApiError> {
        let (grant, session) = self.grant_by(&Method::GET, headers, source).await?;
        grant.check(&Method::GET)?;
        Ok(session)
    }

    async fn without_key(&self, source: Source) -> Result<Grant, ApiError> {
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
        if !self.keyless || !source.looks_local() {
            return refuse(
                "there are no API keys: make one on the server with `sluice keys add NAME` and send it as \
                 Authorization: Bearer; without one only requests made on the server itself are answered, and only \
                 with api.keyless = true",
            );
        }
        if !source.is_ours().await {
            return refuse(
                "without an API key only programs of the user under whom Sluice runs are answered, and this connection is of \
                 another user, such as a proxy: make a key on the server with `sluice keys add NAME` and send it as \
                 Authorization: Bearer",
            );
        }
        Ok(Grant {
            access: Access::All,
            scopes: Scopes::ALL,
        })
    }
}

/// Middleware: passes a request on with its [`Access`], or answers 401, 403 or 429.
///
/// # Errors
/// [`ApiError::Unauthorized`], [`ApiError::MissingScope`], [`ApiError::RateLimited`], [`ApiError::StoreUnavailable`].
pub async fn authenticate(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let source = Source::of(request.headers(), request.extensions());
    let grant = authenticator
        .grant(request.method(), request.headers(), source)
        .await?;
    if grant.access.api_key().is_some() {
        authenticator.limiter.count(&grant.access)?;
    }
    grant.check(request.method())?;
    request.extensions_mut().insert(grant.access);
    Ok(next.run(request).await)
}

/// Like [`authenticate`], for requests about API keys: it passes a request on with its [`Grant`].
///
/// # Errors
/// As there.
pub async fn authenticate_for_keys(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let source = Source::of(request.headers(), request.extensions());
    let grant = authenticator
        .grant(request.method(), request.headers(), source)
        .await?;
    if grant.access.api_key().is_some() {
        authenticator.limiter.count(&grant.access)?;
    }
    grant.check_for_keys(request.method())?;
    request.extensions_mut().insert(grant);
    Ok(next.run(request).await)
}

/// Like [`authenticate`], for requests that are not counted.
///
/// # Errors
/// [`ApiError::Unauthorized`], [`ApiError::MissingScope`], [`ApiError::StoreUnavailable`].
pub async fn authenticate_unmetered(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let source = Source::of(request.headers(), request.extensions());
    let grant = authenticator
        .grant(request.method(), request.headers(), source)
        .await?;
    grant.check(request.method())?;
    request.extensions_mut().insert(grant.access);
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

/// The name of a session in the cookies of a request.
fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter();
    let mut pairs = cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == SESSION_COOKIE).then_some(value))
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
    fn the_session_is_found_among_other_cookies() {
        let of = |value| session_cookie(&headers(&[("cookie", value)])).map(str::to_owned);
        assert_eq!(of("a=b; sluice_session=1f; c=d"), Some("1f".to_owned()));
        assert_eq!(of("xsluice_session=1f"), None);
        assert_eq!(of(""), None);
    }
}
