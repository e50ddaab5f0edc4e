//! Load client: kept connections that send prepared requests as fast as they are answered, and what that took.
//!
//! It stands for many users of a service at once, and is stricter than they: an answer that is not of the 200s, that has
//! no length or that goes on past it ends the load. Requests are bytes before the load begins, and of an answer nothing
//! is read but where it ends: the client shares the machine with what it measures, and whatever it did more would make
//! two servers look more alike than they are.

use std::{
    io,
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::HeaderMap;
use bytes::Bytes;
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// Most bytes of one answer.
const MOST_ANSWER_BYTES: usize = 64 * 1024;

/// A GET of this path.
#[must_use]
pub fn get(path: &str) -> Bytes {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into()
}

/// A POST to this path, with these headers beside the length; one of them must be `host`.
#[must_use]
pub fn post(path: &str, headers: &HeaderMap, body: &[u8]) -> Bytes {
    let head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    let mut request = head.into_bytes();
    for (name, value) in headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    request.extend(body);
    request.into()
}

/// What a server did under load.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Time from a request to the last byte of its answer, for each request.
    pub latencies: Vec<Duration>,
    /// How long the load lasted.
    pub lasted: Duration,
    /// Processor time of this whole process meanwhile: unlike the time that passes, it is the same on a machine that
    /// others use too.
    pub processor_time: Duration,
}

impl Load {
    /// Adds another round.
    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.lasted += other.lasted;
        self.processor_time += other.processor_time;
    }

    /// Answers per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        f64::from(self.answers()) / self.lasted.as_secs_f64()
    }

    /// Processor time for each answer.
    #[must_use]
    pub fn processor_time_each(&self) -> Duration {
        self.processor_time / self.answers().max(1)
    }

    /// The latency that this part of a thousand of the answers did not exceed; zero when there was none.
    #[must_use]
    pub fn permille(&self, part: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * part / 1_000).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    fn answers(&self) -> u32 {
        u32::try_from(self.latencies.len()).unwrap_or(u32::MAX)
    }
}

/// The client of one server.
pub struct LoadClient {
    requests: Arc<[Bytes]>,
    connections: Vec<Connection>,
}

impl LoadClient {
    /// One with so many connections to this server, for these requests.
    ///
    /// # Errors
    /// When the server does not listen.
    pub async fn connect(
        server: SocketAddr,
        connections: usize,
        requests: impl Into<Arc<[Bytes]>>,
    ) -> io::Result<Self> {
        let mut client = Self {
            requests: requests.into(),
            connections: Vec::new(),
        };
        for _ in 0..connections {
            client.connections.push(Connection::open(server).await?);
        }
        Ok(client)
    }

    /// Asks for this long over all connections. Each takes the requests in turn and begins at another, so that no two ask
    /// the same at the same time.
    ///
    /// # Errors
    /// When a connection fails, or an answer is not of the 200s.
    pub async fn ask_for(&mut self, duration: Duration) -> io::Result<Load> {
        let until = Instant::now() + duration;
        let (count, connections) = (self.requests.len(), self.connections.len());
        self.load(|number| {
            let mut at = number * count / connections.max(1);
            move || {
                at += 1;
                (Instant::now() < until).then_some((at - 1) % count)
            }
        })
        .await
    }

    /// Sends every request once, over all connections at once.
    ///
    /// # Errors
    /// As [`LoadClient::ask_for`].
    pub async fn send_all(&mut self) -> io::Result<Load> {
        let next = Arc::new(AtomicUsize::new(0));
        let count = self.requests.len();
        self.load(|_| {
            let next = Arc::clone(&next);
            move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count)
        })
        .await
    }

    /// The body that the first request is answered, over the first connection.
    ///
    /// # Errors
    /// As [`LoadClient::ask_for`], and when there is no request or no connection.
    pub async fn answer(&mut self) -> io::Result<Vec<u8>> {
        let missing = || io::Error::other("no request, or no connection");
        let request = self.requests.first().ok_or_else(missing)?;
        let connection = self.connections.first_mut().ok_or_else(missing)?;
        let body = connection.ask(request).await?;
        Ok(connection.buffer[body].to_vec())
    }

    /// Lets each connection ask for what its `next` says until that is nothing.
    async fn load<Next: FnMut() -> Option<usize> + Send + 'static>(
        &mut self,
        next: impl Fn(usize) -> Next,
    ) -> io::Result<Load> {
        let (begun, worked) = (Instant::now(), processor_time()?);
        let mut running = JoinSet::new();
        for (number, mut connection) in self.connections.drain(..).enumerate() {
            let (requests, mut next) = (Arc::clone(&self.requests), next(number));
            running.spawn(async move {
                let mut latencies = Vec::new();
                while let Some(at) = next() {
                    let asked = Instant::now();
                    connection.ask(&requests[at]).await?;
                    latencies.push(asked.elapsed());
                }
                io::Result::Ok((connection, latencies))
            });
        }
        let mut load = Load::default();
        while let Some(finished) = running.join_next().await {
            let (connection, latencies) = finished.map_err(io::Error::other)??;
            self.connections.push(connection);
            load.latencies.extend(latencies);
        }
        load.lasted = begun.elapsed();
        load.processor_time = processor_time()?.saturating_sub(worked);
        Ok(load)
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; MOST_ANSWER_BYTES],
        })
    }

    /// Asks, and returns where the body is.
    async fn ask(&mut self, request: &[u8]) -> io::Result<Range<usize>> {
        self.stream.write_all(request).await?;
        let mut read = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[read..]).await?;
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read += more;
            match body(&self.buffer[..read])? {
                Some(body) if read > body.end => {
                    return Err(io::Error::other("an answer longer than it says"));
                }
                Some(body) if read == body.end => return Ok(body),
                _ => {}
            }
        }
    }
}

/// Whether an answer is there to its end.
///
/// # Errors
/// When it is not of the 200s, or does not say how long it is.
pub fn is_whole(answer: &[u8]) -> io::Result<bool> {
    Ok(body(answer)?.is_some_and(|body| answer.len() >= body.end))
}

/// Where the body is, once the head is there.
fn body(answer: &[u8]) -> io::Result<Option<Range<usize>>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&answer[..end]).map_err(io::Error::other)?;
    if !head.starts_with("HTTP/1.1 2") {
        return Err(io::Error::other(String::from_utf8_lossy(answer)));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
    Ok(Some(end + 4..end + 4 + length))
}

/// What the processors have done for this process so far.
fn processor_time() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let parts = [usage.user_time(), usage.system_time()];
    let micros: i64 = parts.map(|part| part.num_microseconds()).iter().sum();
    Ok(Duration::from_micros(
        u64::try_from(micros).map_err(io::Error::other)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook_receiver::{Reply, WebhookReceiver};

    async fn client(receiver: &WebhookReceiver, requests: usize) -> LoadClient {
        let requests: Vec<Bytes> = (0..requests)
            .map(|n| post("/hook", &HeaderMap::new(), n.to_string().as_bytes()))
            .collect();
        let client = LoadClient::connect(receiver.address(), 3, requests).await;
        client.expect("it listens")
    }

    #[tokio::test]
    async fn every_request_is_sent_once_over_kept_connections() {
        let receiver = WebhookReceiver::always(Reply::Accept)
            .await
            .expect("a port");
        let mut client = client(&receiver, 100).await;
        for round in 1..=2 {
            let load = client.send_all().await.expect("answered");
            assert_eq!(load.latencies.len(), 100);
            let mut bodies: Vec<_> = receiver
                .received()
                .into_iter()
                .map(|one| one.body)
                .collect();
            bodies.sort_unstable();
            bodies.dedup();
            assert_eq!(
                (bodies.len(), receiver.received().len()),
                (100, round * 100)
            );
        }
        assert_eq!(receiver.connections(), 3);
        assert_eq!(client.answer().await.expect("answered"), b"ok");
    }

    #[tokio::test]
    async fn requests_go_on_until_the_time_is_over() {
        let receiver = WebhookReceiver::always(Reply::Accept)
            .await
            .expect("a port");
        let mut client = client(&receiver, 2).await;
        // Until each of the connections has asked more than once, however slow the machine is.
        let mut time = Duration::from_millis(50);
        let mut answered = 0;
        while answered <= 3 {
            let before = receiver.received().len();
            let load = client.ask_for(time).await.expect("answered");
            answered = load.latencies.len();
            assert_eq!(answered, receiver.received().len() - before);
            assert!(load.lasted >= time);
            time *= 2;
        }
    }

    #[tokio::test]
    async fn a_wrong_answer_ends_the_load() {
        let wrong = [
            Reply::Status(503, "no".to_owned()),
            Reply::TooShort,
            Reply::TooLong,
        ];
        for reply in wrong.into_iter().chain([Reply::Reset, Reply::BrokenOff]) {
            let receiver = WebhookReceiver::always(reply.clone())
                .await
                .expect("a port");
            let mut client = client(&receiver, 10).await;
            assert!(client.send_all().await.is_err(), "{reply:?}");
        }
    }
}
