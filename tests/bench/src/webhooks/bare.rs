//! Bare client: sends requests prepared beforehand, headers and signatures included, and keeps no record.
//!
//! It is the HTTP library that Sluice's own client is made with, with nothing around it: one client for all
//! receivers, connections that are kept, as many requests at once to each receiver as Sluice makes. For comparison there
//! is also the most that the machine can do: connections driven one by one, without a client.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Uri,
    client::conn::http1::{SendRequest, handshake},
    header::{ACCEPT, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use service_kit::Clock;
use sluice_store::{NewMessage, Secrets, Timestamp};
use sluice_webhook_client::{WebhookRequest, request};
use tokio::{net::TcpStream, task::JoinSet};

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
}

/// What is to be sent to one receiver.
pub struct EndpointLoad {
    server: SocketAddr,
    url: Url,
    requests: Arc<Vec<Prepared>>,
    connections: Vec<SendRequest<Full<Bytes>>>,
}

impl EndpointLoad {
    /// These requests to this receiver.
    ///
    /// # Errors
    /// Never: a socket address makes a URL.
    pub fn new(server: SocketAddr, requests: Vec<Prepared>) -> anyhow::Result<Self> {
        Ok(Self {
            server,
            url: format!("http://{server}/hook").parse()?,
            requests: Arc::new(requests),
            connections: Vec::new(),
        })
    }

    /// Opens so many connections.
    ///
    /// # Errors
    /// When the receiver does not listen.
    pub async fn connect(&mut self, connections: usize) -> anyhow::Result<()> {
        for _ in 0..connections {
            let stream = TcpStream::connect(self.server).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            // It ends with its sender.
            tokio::spawn(connection);
            self.connections.push(sender);
        }
        Ok(())
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
    lines: &[EndpointLoad],
    at_once: usize,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for line in lines {
        let next = Arc::new(AtomicUsize::new(0));
        for _ in 0..at_once {
            let (client, url) = (client.clone(), line.url.clone());
            let (requests, next) = (Arc::clone(&line.requests), Arc::clone(&next));
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

/// Sends everything over all open connections at once; says how long it took.
///
/// # Errors
/// When an answer is not of the 200s.
pub async fn drive_all(lines: &mut [EndpointLoad]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let next = Arc::new(AtomicUsize::new(0));
        for mut connection in line.connections.drain(..) {
            let (requests, next) = (Arc::clone(&line.requests), Arc::clone(&next));
            running.spawn(async move {
                while let Some(prepared) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    drive(&mut connection, prepared).await?;
                }
                anyhow::Ok((number, connection))
            });
        }
    }
    while let Some(done) = running.join_next().await {
        let (number, connection) = done.context("a connection's task panicked")??;
        lines[number].connections.push(connection);
    }
    Ok(begun.elapsed())
}

async fn drive(
    connection: &mut SendRequest<Full<Bytes>>,
    prepared: &Prepared,
) -> anyhow::Result<()> {
    let mut request =
        Request::post(Uri::from_static("/hook")).body(Full::new(prepared.body.clone()))?;
    *request.headers_mut() = prepared.headers.clone();
    let response = connection.send_request(request).await?;
    let status = response.status();
    response.into_body().collect().await?;
    ensure!(status.is_success(), "answered {status}");
    Ok(())
}
