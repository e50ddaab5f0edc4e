//! Load client: connections that post prepared bodies as fast as they are answered.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request,
    client::conn::http1::{SendRequest, handshake},
    header,
};
use hyper_util::rt::TokioIo;
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinSet};

/// What is asked.
#[derive(Clone)]
pub struct Target {
    /// Port on this machine.
    pub port: u16,
    /// Path of a POST.
    pub path: &'static str,
    /// Bodies, taken in turn.
    pub bodies: Arc<Vec<Bytes>>,
}

/// What came of it.
#[derive(Debug)]
pub struct Measured {
    /// Answers in a second.
    pub per_second: u64,
    /// Processor time of this whole process for each answer: unlike the time that passes, it is the same on a machine
    /// that others use too.
    pub processor_time: Duration,
    /// Every latency, shortest first.
    latencies: Vec<Duration>,
}

impl Measured {
    /// The latency that this share of the answers did not exceed, per mille.
    #[must_use]
    pub fn latency(&self, per_mille: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (self.latencies.len() * per_mille / 1_000).min(last);
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

impl Target {
    /// Asks over this many connections for this long.
    ///
    /// # Errors
    /// When an answer is not 200.
    pub async fn load(&self, connections: usize, duration: Duration) -> anyhow::Result<Measured> {
        let worked = processor_time()?;
        let begun = Instant::now();
        let until = begun + duration;
        let mut crowd = JoinSet::new();
        for first in 0..connections {
            let target = self.clone();
            // Connections start at different bodies, so that no two ask the same at the same time.
            let offset = first * target.bodies.len() / connections;
            crowd.spawn(async move { target.ask(offset, until).await });
        }
        let mut latencies = Vec::new();
        while let Some(asked) = crowd.join_next().await {
            latencies.extend(asked.context("a client panicked")??);
        }
        let elapsed = begun.elapsed().as_micros();
        let worked = processor_time()?.saturating_sub(worked);
        let answers = u128::try_from(latencies.len())?;
        latencies.sort_unstable();
        Ok(Measured {
            per_second: u64::try_from(answers * 1_000_000 / elapsed.max(1))?,
            processor_time: worked / u32::try_from(answers.max(1))?,
            latencies,
        })
    }

    /// What the first body is answered.
    ///
    /// # Errors
    /// When it is no JSON.
    pub async fn answer(&self) -> anyhow::Result<Value> {
        let body = self.bodies.first().context("nothing to ask")?.clone();
        let http = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("http://127.0.0.1:{}{}", self.port, self.path);
        let request = http
            .post(url)
            .header(header::CONTENT_TYPE, "application/json");
        Ok(request.body(body).send().await?.json().await?)
    }

    async fn ask(&self, offset: usize, until: Instant) -> anyhow::Result<Vec<Duration>> {
        let mut connection = self.connect().await?;
        let mut latencies = Vec::new();
        for body in self.bodies.iter().cycle().skip(offset) {
            let begun = Instant::now();
            if begun >= until {
                break;
            }
            let request = Request::builder()
                .method(Method::POST)
                .uri(self.path)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(body.clone()))?;
            let response = connection.send_request(request).await?;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            ensure!(
                status.is_success(),
                "{status}: {}",
                String::from_utf8_lossy(&answer)
            );
            latencies.push(begun.elapsed());
        }
        Ok(latencies)
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// What the processors have done for this process so far.
fn processor_time() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let parts = [usage.user_time(), usage.system_time()];
    let micros = parts.map(|part| part.num_microseconds());
    Ok(Duration::from_micros(u64::try_from(
        micros.iter().sum::<i64>(),
    )?))
}
