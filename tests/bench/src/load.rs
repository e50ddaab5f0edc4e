//! Load generator: kept connections, one prepared request at a time on each, whole answers read.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// Room for one answer.
const BUFFER: usize = 64 * 1024;

/// What a server did under load.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Time from a request to the last byte of its answer, for each request.
    pub latencies: Vec<Duration>,
    /// How long the load lasted.
    pub lasted: Duration,
}

impl Load {
    /// Adds another round.
    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.lasted += other.lasted;
    }

    /// Answers per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        let answers = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        f64::from(answers) / self.lasted.as_secs_f64()
    }

    /// The latency that this part of a thousand of the answers did not exceed.
    ///
    /// # Panics
    /// When nothing was answered.
    #[must_use]
    pub fn permille(&self, part: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * part / 1_000).min(sorted.len().saturating_sub(1));
        *sorted.get(at).expect("something was answered")
    }
}

/// Asks for `path` over this many connections for this long.
///
/// # Errors
/// When a connection fails, or an answer is not the one of `200 OK`.
pub async fn run(
    server: SocketAddr,
    path: &str,
    connections: usize,
    lasts: Duration,
) -> io::Result<Load> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(Client::connect(server).await?);
    }
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for mut client in clients {
        let request = request.clone();
        running.spawn(async move {
            let mut latencies = Vec::new();
            while begun.elapsed() < lasts {
                let asked = Instant::now();
                client.ask(&request).await?;
                latencies.push(asked.elapsed());
            }
            io::Result::Ok(latencies)
        });
    }
    let mut load = Load::default();
    while let Some(finished) = running.join_next().await {
        load.latencies.extend(finished.map_err(io::Error::other)??);
    }
    load.lasted = begun.elapsed();
    Ok(load)
}

/// The body of one answer.
///
/// # Errors
/// As [`run`].
pub async fn get(server: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let mut client = Client::connect(server).await?;
    let body = client.ask(&request).await?;
    Ok(client.buffer[body].to_vec())
}

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER],
        })
    }

    /// Asks, and returns where the body is.
    async fn ask(&mut self, request: &str) -> io::Result<std::ops::Range<usize>> {
        self.stream.write_all(request.as_bytes()).await?;
        let mut read = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[read..]).await?;
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read += more;
            if let Some(body) = body(&self.buffer[..read])?
                && read >= body.end
            {
                return Ok(body);
            }
        }
    }
}

/// Where the body is, once the head is there.
fn body(answer: &[u8]) -> io::Result<Option<std::ops::Range<usize>>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&answer[..end]).map_err(io::Error::other)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        let text = String::from_utf8_lossy(answer).into_owned();
        return Err(io::Error::other(text));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
    Ok(Some(end + 4..end + 4 + length))
}
