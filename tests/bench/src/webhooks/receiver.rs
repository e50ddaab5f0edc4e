//! Receivers of benchmarks: the kit's, on a thread of their own, that accept everything or hang.
//!
//! They stand for endpoints on other machines, so what they take is not measured; they check no signature, because the
//! time for that would be.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use memchr::memmem;
use parking_lot::Mutex;
use service_kit::CancellationToken;
use sluice_testkit::webhook_receiver::{
    ReceivedRequest, Replies, Reply, RequestHead, WebhookReceiver,
};
use tokio::{runtime, time::sleep};

/// How often it is looked whether enough has come.
const GLANCE: Duration = Duration::from_micros(500);

/// How long nothing may come before that counts as a fault.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that came.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its head was at the socket: on a machine of its own the receiver would read it then.
    pub at: Instant,
    /// What it said.
    pub body: Bytes,
}

/// What the receivers do with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// They count it.
    Count,
    /// They count the messages of each batch.
    CountBatched,
    /// They keep it.
    Everything,
}

/// How receivers answer.
#[derive(Clone, Debug)]
pub struct Manners {
    /// The first so many, whose requests are not counted,
    pub odd: usize,
    /// answer so,
    pub odd_reply: Reply,
    /// and the others so.
    pub reply: Reply,
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
        let all_accept = Manners {
            odd: 0,
            odd_reply: Reply::Accept,
            reply: Reply::Accept,
        };
        Self::start_with(count, &all_accept, keeping)
    }

    /// As [`Receivers::start`], with these manners.
    ///
    /// # Errors
    /// As [`Receivers::start`].
    pub fn start_with(count: usize, manners: &Manners, keeping: Keeping) -> anyhow::Result<Self> {
        let (seen, shutdown) = (Arc::<Seen>::default(), CancellationToken::new());
        let replies = (0..count).map(|number| Counter {
            is_odd: number < manners.odd,
            reply: if number < manners.odd {
                manners.odd_reply.clone()
            } else {
                manners.reply.clone()
            },
            keeping,
            seen: Arc::clone(&seen),
        });
        let (replies, ended) = (replies.collect(), shutdown.clone());
        let (started, addresses) = mpsc::channel();
        thread::Builder::new()
            .name("receivers".to_owned())
            .spawn(move || serve(replies, &started, ended))?;
        let addresses = addresses.recv().context("the receivers panicked")??;
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

    /// How many requests, or messages of batches, came so far.
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

/// Runs a receiver for each of these, and says where they listen.
fn serve(
    replies: Vec<Counter>,
    started: &mpsc::Sender<io::Result<Vec<SocketAddr>>>,
    ended: CancellationToken,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .expect("the system has room for one more thread")
        .block_on(async {
            let mut receivers = Vec::new();
            for replies in replies {
                match WebhookReceiver::listen((Ipv4Addr::LOCALHOST, 0).into(), replies).await {
                    Ok(receiver) => receivers.push(receiver),
                    Err(error) => {
                        let _ = started.send(Err(error));
                        return;
                    }
                }
            }
            let addresses = receivers.iter().map(WebhookReceiver::address).collect();
            // Who started them waits for this.
            let _ = started.send(Ok(addresses));
            ended.cancelled().await;
        });
}

/// What one receiver does.
struct Counter {
    is_odd: bool,
    reply: Reply,
    keeping: Keeping,
    seen: Arc<Seen>,
}

impl Replies for Counter {
    fn reply(&self, _: &RequestHead, _: usize) -> Reply {
        self.reply.clone()
    }

    fn received(&self, request: &ReceivedRequest) {
        if self.is_odd {
            return;
        }
        if self.keeping == Keeping::Everything {
            self.seen.kept.lock().push(Arrival {
                at: request.at,
                body: request.body.clone(),
            });
        }
        let came = if self.keeping == Keeping::CountBatched {
            messages_of(&request.body)
        } else {
            1
        };
        self.seen.count.fetch_add(came, Ordering::Relaxed);
    }

    fn keeps(&self) -> bool {
        false
    }
}

/// How many messages a batch has, by how each begins: to take the JSON apart would be time of another machine.
///
/// # Panics
/// When it is no list: then the sender is broken.
fn messages_of(body: &[u8]) -> u64 {
    let is_list = body.starts_with(b"[") && body.ends_with(b"]");
    assert!(is_list, "a batch is a list");
    let beginnings = memmem::find_iter(body, b"{\"id\":\"msg_");
    u64::try_from(beginnings.count()).expect("a machine's word")
}
