//! Receivers of benchmarks: HTTP servers on a thread of their own that accept everything or hang.
//!
//! They stand for endpoints on other machines, and cost as little as an HTTP server can: what they take is not
//! measured.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use axum::{Router, body::Bytes, extract::Request, http::StatusCode};
use parking_lot::Mutex;
use service_kit::CancellationToken;
use tokio::{runtime, time::sleep};

/// How often it is looked whether enough has come.
const GLANCE: Duration = Duration::from_micros(500);

/// How long nothing may come before that counts as a fault.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that came.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its first bytes were there.
    pub at: Instant,
    /// What it said.
    pub body: Bytes,
}

/// What the receivers do with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// They count it.
    Count,
    /// They keep it.
    Everything,
}

/// The receivers. Dropping them ends them.
#[derive(Debug)]
pub struct Receivers {
    addresses: Vec<SocketAddr>,
    seen: Arc<Seen>,
    shutdown: CancellationToken,
}

#[derive(Debug, Default)]
struct Seen {
    count: AtomicU64,
    kept: Mutex<Vec<Arrival>>,
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Receivers {
    /// So many receivers, each on a port of its own, because connections are kept per receiver.
    ///
    /// # Errors
    /// When no port can be bound.
    pub fn start(count: usize, keeping: Keeping) -> anyhow::Result<Self> {
        Self::start_with(count, 0, keeping)
    }

    /// As [`Receivers::start`]; the first `hanging` take a request and never answer.
    ///
    /// # Errors
    /// As [`Receivers::start`].
    pub fn start_with(count: usize, hanging: usize, keeping: Keeping) -> anyhow::Result<Self> {
        let mut listeners = Vec::new();
        for _ in 0..count {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let addresses = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<_, _>>()?;
        let (seen, shutdown) = (Arc::<Seen>::default(), CancellationToken::new());
        let (kept, ended) = (Arc::clone(&seen), shutdown.clone());
        thread::Builder::new()
            .name("receivers".to_owned())
            .spawn(move || serve(listeners, hanging, keeping, kept, ended))?;
        Ok(Self {
            addresses,
            seen,
            shutdown,
        })
    }

    /// Where they listen.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The same as callback URLs.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.addresses
            .iter()
            .map(|address| format!("http://{address}/hook"))
            .collect()
    }

    /// How many requests came so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }

    /// What was kept since it was last asked.
    #[must_use]
    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut self.seen.kept.lock())
    }

    /// Waits until so many requests have come in all.
    ///
    /// # Errors
    /// When nothing comes for a long time.
    pub async fn until(&self, count: u64) -> anyhow::Result<()> {
        let (mut last, mut since) = (self.count(), Instant::now());
        while self.count() < count {
            sleep(GLANCE).await;
            if self.count() > last {
                (last, since) = (self.count(), Instant::now());
            }
            ensure!(
                since.elapsed() < PATIENCE,
                "only {last} of {count} messages have arrived"
            );
        }
        Ok(())
    }
}

fn serve(
    listeners: Vec<TcpListener>,
    hanging: usize,
    keeping: Keeping,
    seen: Arc<Seen>,
    ended: CancellationToken,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .expect("the system has room for one more thread")
        .block_on(async {
            for (number, listener) in listeners.into_iter().enumerate() {
                let seen = Arc::clone(&seen);
                let hangs = number < hanging;
                let take =
                    move |request: Request| receive(Arc::clone(&seen), request, keeping, hangs);
                let listener = tokio::net::TcpListener::from_std(listener)
                    .expect("it does not block, and a runtime is there");
                let router = Router::new().fallback(take);
                tokio::spawn(async move { axum::serve(listener, router).await });
            }
            ended.cancelled().await;
        });
}

async fn receive(
    seen: Arc<Seen>,
    request: Request,
    keeping: Keeping,
    hangs: bool,
) -> Result<StatusCode, StatusCode> {
    // The head is there, which is in the first bytes.
    let at = Instant::now();
    if hangs {
        return std::future::pending().await;
    }
    let body = axum::body::to_bytes(request.into_body(), usize::MAX)
        .await
        .map_err(|_| StatusCode::BAD_REQUEST)?;
    if keeping == Keeping::Everything {
        seen.kept.lock().push(Arrival { at, body });
    }
    seen.count.fetch_add(1, Ordering::Relaxed);
    Ok(StatusCode::OK)
}
