//! Bare client: sends requests prepared beforehand, headers and signatures included, and keeps no record.
//!
//! It is the HTTP client that a Rust program would be written with, `reqwest`, with nothing around it: one client for all
//! receivers, connections that are kept, as many requests at once to each receiver as Sluice makes. So it is what
//! deliveries are measured against, and no load client: the kit's, which is without a library, shows beside it the most
//! that the machine can do.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use axum::http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, HOST},
};
use bytes::Bytes;
use reqwest::Url;
use service_kit::Clock;
use sluice_store::{DeliveryOptions, NewMessage, Secrets, Timestamp};
use sluice_testkit::load;
use sluice_webhook_client::{WebhookRequest, request};
use tokio::task::JoinSet;

/// Path of the receivers.
const HOOK: &str = "/hook";

/// A request that only needs to be sent.
#[derive(Clone, Debug)]
pub struct Prepared {
    headers: HeaderMap,
    body: Bytes,
}

impl Prepared {
    /// What a delivery of this message sends.
    ///
    /// # Errors
    /// When the message cannot be signed.
    pub fn new(
        message: &NewMessage,
        secrets: &Secrets,
        server: SocketAddr,
    ) -> anyhow::Result<Self> {
        let body = message.body.with_sequence(1);
        let request = WebhookRequest {
            id: &message.id,
            url: "",
            secrets,
            headers: &[],
            gzip: false,
            options: &DeliveryOptions::default(),
            body: &body,
        };
        let built = request::sign(&request, Timestamp::from(Clock::system().now()))?;
        let mut headers = built.headers;
        headers.insert(HOST, HeaderValue::from_str(&server.to_string())?);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        Ok(Self {
            headers,
            body: Bytes::from(built.body),
        })
    }

    /// The same for the kit's load client.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        load::post(HOOK, &self.headers, &self.body)
    }
}

/// What is to be sent to one receiver.
pub struct EndpointRequests {
    url: Url,
    requests: Arc<[Prepared]>,
}

impl EndpointRequests {
    /// These requests to this receiver.
    ///
    /// # Errors
    /// Never: a socket address makes a URL.
    pub fn new(server: SocketAddr, requests: Vec<Prepared>) -> anyhow::Result<Self> {
        Ok(Self {
            url: format!("http://{server}{HOOK}").parse()?,
            requests: requests.into(),
        })
    }
}

/// A client for [`send_all`] that keeps so many connections to each receiver.
///
/// # Errors
/// When the TLS library cannot be set up.
pub fn client(connections: usize) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(connections)
        .build()
}

/// Sends everything through the client, with so many requests at once to each receiver; says how long it took.
///
/// # Errors
/// When an answer is not of the 200s.
pub async fn send_all(
    client: &reqwest::Client,
    endpoints: &[EndpointRequests],
    at_once: usize,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for endpoint in endpoints {
        let next = Arc::new(AtomicUsize::new(0));
        for _ in 0..at_once {
            let (client, url) = (client.clone(), endpoint.url.clone());
            let (requests, next) = (Arc::clone(&endpoint.requests), Arc::clone(&next));
            running.spawn(async move {
                while let Some(prepared) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let request = client
                        .post(url.clone())
                        .headers(prepared.headers.clone())
                        .body(prepared.body.clone());
                    let response = request.send().await?.error_for_status()?;
                    response.bytes().await?;
                }
                anyhow::Ok(())
            });
        }
    }
    while let Some(done) = running.join_next().await {
        done.context("a client panicked")??;
    }
    Ok(begun.elapsed())
}
