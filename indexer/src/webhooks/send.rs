//! One HTTP request to a receiver, and everything that keeps it from being misused.
//!
//! - Every resolved address is judged, one bad address refuses the name, and the connection goes to the
//!   judged addresses only: the check is the resolver itself, so there is no second resolution that
//!   could answer differently.
//! - Literal addresses never reach a resolver and are judged before.
//! - No redirects, no proxy from the environment, https only; plain http to a loopback address when the
//!   configuration allows it.
//! - One deadline from resolution to the last byte of the answer, of which a bounded part is read.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use reqwest::{
    Client, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use thiserror::Error;
use tokio::time::timeout;
use url::{Host, Url};

use super::{address, retry::parse_retry_after};

/// How Sluice introduces itself.
const USER_AGENT: &str = concat!("Sluice/", env!("CARGO_PKG_VERSION"), " (webhooks)");

/// Most bytes of an answer that are read. Nothing in it matters but its status; what is short enough is
/// read to its end so that the connection can be used again.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Connections kept open to one receiver between deliveries.
const IDLE_CONNECTIONS: usize = 8;

/// How long they are kept: less than the minute after which many servers close theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a receiver answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// What it asked for with Retry-After.
    pub retry_after: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// The stored URL is not one that may be called.
    #[error("the URL may not be called: {0}")]
    BadUrl(&'static str),
    /// The address must not be connected to.
    #[error(transparent)]
    Forbidden(#[from] ForbiddenAddress),
    /// The deadline passed.
    #[error("no complete answer within {} s", deadline.as_secs_f64())]
    TimedOut {
        /// The deadline.
        deadline: Duration,
    },
    /// Name resolution, connection, TLS or the protocol failed.
    #[error("{0}")]
    Failed(String),
}

/// An address that deliveries must not go to. The text does not say which address a name has: a
/// subscriber could map an internal network by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the receiver's address is not public ({0})")]
pub struct ForbiddenAddress(&'static str);

/// Sends deliveries. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sender {
    public: Client,
    /// `None` unless the configuration allows it.
    loopback: Option<Client>,
    deadline: Duration,
}

impl Sender {
    /// A sender with this deadline per delivery; `allow_http_loopback` admits plain http to loopback
    /// addresses, and to no others.
    ///
    /// # Errors
    /// When the TLS library cannot be set up.
    pub fn new(deadline: Duration, allow_http_loopback: bool) -> Result<Self, reqwest::Error> {
        let public = client(public_refusal).https_only(true).build()?;
        let loopback = if allow_http_loopback {
            Some(client(loopback_refusal).build()?)
        } else {
            None
        };
        Ok(Self {
            public,
            loopback,
            deadline,
        })
    }

    /// Posts `body` with `headers` to `url`.
    ///
    /// # Errors
    /// [`SendError`] when no complete answer came. An answer that refuses is an answer.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, SendError> {
        let deadline = self.deadline;
        timeout(deadline, self.exchange(url, headers, body))
            .await
            .unwrap_or(Err(SendError::TimedOut { deadline }))
    }

    async fn exchange(
        &self,
        url: &str,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, SendError> {
        let url = Url::parse(url).map_err(|_| SendError::BadUrl("it is not a URL"))?;
        let client = self.client_for(&url)?;
        let request = client
            .post(url)
            .headers(headers)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        let response = request.send().await.map_err(|error| failure(&error))?;
        let answer = Answer {
            status: response.status().as_u16(),
            retry_after: response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .and_then(|value| parse_retry_after(value, SystemTime::now())),
        };
        drain(response).await?;
        Ok(answer)
    }

    /// The client whose rules fit the URL's scheme, after judging a literal address.
    fn client_for(&self, url: &Url) -> Result<&Client, SendError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SendError::BadUrl("it holds credentials"));
        }
        let (client, refusal): (_, Refusal) = match (url.scheme(), &self.loopback) {
            ("https", _) => (&self.public, public_refusal),
            ("http", Some(loopback)) => (loopback, loopback_refusal),
            ("http", None) => return Err(SendError::BadUrl("plain http is not allowed")),
            _ => return Err(SendError::BadUrl("it is not an https URL")),
        };
        let literal: Option<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
            None => return Err(SendError::BadUrl("it has no host")),
        };
        match literal.and_then(refusal) {
            Some(reason) => Err(ForbiddenAddress(reason).into()),
            None => Ok(client),
        }
    }
}

/// Why an address must not be connected to.
type Refusal = fn(IpAddr) -> Option<&'static str>;

fn public_refusal(address: IpAddr) -> Option<&'static str> {
    address::refusal(address)
}

fn loopback_refusal(address: IpAddr) -> Option<&'static str> {
    (!address.is_loopback()).then_some("plain http is for loopback addresses")
}

fn client(refusal: Refusal) -> reqwest::ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .dns_resolver(Arc::new(JudgingResolver { refusal }))
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE_TIMEOUT)
}

/// The system's resolver, with every address judged.
struct JudgingResolver {
    refusal: Refusal,
}

impl Resolve for JudgingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let refusal = self.refusal;
        Box::pin(async move {
            // The port is the client's to fill in.
            let addresses: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            judge(&addresses, refusal)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// One bad address refuses the whole answer: a name that mixes them is not up to any good.
fn judge(addresses: &[SocketAddr], refusal: Refusal) -> Result<(), ForbiddenAddress> {
    match addresses.iter().find_map(|address| refusal(address.ip())) {
        Some(reason) => Err(ForbiddenAddress(reason)),
        None => Ok(()),
    }
}

/// Reads the answer to its end, or to [`MAX_ANSWER_BYTES`]; dropping it beyond closes the connection.
async fn drain(mut response: Response) -> Result<(), SendError> {
    let mut read: usize = 0;
    while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
        read = read.saturating_add(chunk.len());
        if read > MAX_ANSWER_BYTES {
            break;
        }
    }
    Ok(())
}

/// A refused address is found among the causes; otherwise their texts are joined, since the outermost
/// one says little. The URL is left out: it may hold a token.
fn failure(error: &reqwest::Error) -> SendError {
    let mut texts = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(forbidden) = error.downcast_ref::<ForbiddenAddress>() {
            return (*forbidden).into();
        }
        texts.push(error.to_string());
        cause = error.source();
    }
    if texts.is_empty() {
        return SendError::Failed("the request failed".to_owned());
    }
    SendError::Failed(texts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(5);

    async fn refused(url: &str, allow_http_loopback: bool) -> SendError {
        let sender = Sender::new(DEADLINE, allow_http_loopback).expect("TLS");
        sender
            .post(url, HeaderMap::new(), String::new())
            .await
            .expect_err(url)
    }

    #[tokio::test]
    async fn literal_addresses_are_judged_in_every_spelling() {
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://169.254.169.254/latest/meta-data",
            "https://10.0.0.1:8443/",
            "https://0.0.0.0/",
            "https://[64:ff9b::a9fe:a9fe]/",
            "https://[fe80::1]/",
            "https://１２７.0.0.1/",
        ] {
            let error = refused(url, true).await;
            assert!(matches!(error, SendError::Forbidden(_)), "{url}: {error}");
        }
        let zone = refused("https://[fe80::1%25eth0]/", true).await;
        assert!(matches!(zone, SendError::BadUrl(_)), "{zone}");
    }

    #[tokio::test]
    async fn names_are_judged_by_what_they_resolve_to() {
        let error = refused("https://localhost/", true).await;
        assert!(matches!(error, SendError::Forbidden(_)), "{error}");
    }

    #[tokio::test]
    async fn schemes_and_credentials_are_judged() {
        for url in [
            "http://example.com/",
            "http://127.0.0.1/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "",
        ] {
            let error = refused(url, false).await;
            assert!(matches!(error, SendError::BadUrl(_)), "{url}: {error}");
        }
        let error = refused("https://user:pass@example.com/", false).await;
        assert!(matches!(error, SendError::BadUrl(_)), "{error}");
    }

    #[tokio::test]
    async fn plain_http_reaches_loopback_addresses_only() {
        for url in [
            "http://10.0.0.1/",
            "http://169.254.169.254/",
            "http://8.8.8.8/",
            "http://[fd00::1]/",
        ] {
            let error = refused(url, true).await;
            assert!(matches!(error, SendError::Forbidden(_)), "{url}: {error}");
        }
    }

    #[test]
    fn one_bad_address_refuses_the_name() {
        let parse = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (good, bad) = (parse("8.8.8.8:0"), parse("10.0.0.1:0"));
        assert_eq!(judge(&[good], public_refusal), Ok(()));
        assert!(judge(&[good, bad], public_refusal).is_err());
        assert!(judge(&[bad, good], public_refusal).is_err());
    }
}
