//! Connection pool: connections that are kept open to each endpoint between two attempts.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::sleep;

use crate::connection::Connection;

/// Connections kept open to one endpoint, no fewer than are made to it at once.
const IDLE_CONNECTIONS: usize = 16;

/// How long they are kept: less than the minute after which many servers close theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections kept open to all endpoints together, unless the client is told otherwise: each is an open file, and an owner
/// may have webhooks at as many hosts as he likes. A quarter of the files that a process is given where nobody asks for more.
pub(crate) const MOST_IDLE_BY_DEFAULT: usize = 256;

/// Idle connections by endpoint: scheme, host and port, as they begin a URL.
pub(crate) struct Pool {
    idle: Mutex<Idle>,
    /// Connections kept open to all endpoints together.
    most: usize,
}

#[derive(Default)]
struct Idle {
    /// Those of an endpoint in the order in which they became idle.
    endpoints: HashMap<String, Vec<(Instant, Connection)>>,
    /// Of all endpoints together.
    count: usize,
    /// Whether a task closes those that have been idle for too long.
    is_swept: bool,
}

impl Pool {
    /// A pool that keeps so many connections open to all endpoints together.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            idle: Mutex::default(),
            most,
        }
    }

    /// The connection to an endpoint that became idle last, if one is open.
    pub(crate) fn take(&self, endpoint: &str) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.idle.lock().pop(endpoint)?;
            if since.elapsed() < IDLE_TIMEOUT && connection.is_open() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next attempt, unless enough are kept.
    pub(crate) fn keep(self: &Arc<Self>, endpoint: &str, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.count >= self.most {
            return;
        }
        let kept = (Instant::now(), connection);
        match idle.endpoints.get_mut(endpoint) {
            Some(of_endpoint) if of_endpoint.len() >= IDLE_CONNECTIONS => return,
            Some(of_endpoint) => of_endpoint.push(kept),
            None => {
                idle.endpoints.insert(endpoint.to_owned(), vec![kept]);
            }
        }
        idle.count = idle.count.saturating_add(1);
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what has been idle for too long; returns whether anything is left.
    fn close_old(&self) -> bool {
        let mut idle = self.idle.lock();
        idle.endpoints.retain(|_, of_endpoint| {
            of_endpoint.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
            !of_endpoint.is_empty()
        });
        idle.count = idle.endpoints.values().map(Vec::len).sum();
        idle.is_swept = !idle.endpoints.is_empty();
        idle.is_swept
    }
}

impl Idle {
    fn pop(&mut self, endpoint: &str) -> Option<(Instant, Connection)> {
        let newest = self.endpoints.get_mut(endpoint)?.pop()?;
        self.count = self.count.saturating_sub(1);
        Some(newest)
    }
}

/// Closes old connections for as long as there are any: to most endpoints nothing is sent for hours.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_old()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    const A: &str = "https://a.example:443";

    async fn connection() -> (Connection, DuplexStream) {
        let (here, there) = duplex(1024);
        let connection = Connection::over(TokioIo::new(here)).await;
        (connection.expect("nothing is sent"), there)
    }

    #[tokio::test]
    async fn the_newest_open_connection_of_an_endpoint_is_given_out_once() {
        let pool = Arc::new(Pool::of(MOST_IDLE_BY_DEFAULT));
        let (oldest, _peer) = connection().await;
        let (closed, its_peer) = connection().await;
        pool.keep(A, oldest);
        pool.keep(A, closed);
        drop(its_peer);
        assert!(pool.take("https://b.example:443").is_none());
        assert!(pool.take(A).is_some(), "the one that is open");
        assert!(pool.take(A).is_none());
    }

    #[tokio::test]
    async fn no_more_are_kept_than_are_needed_at_once() {
        let pool = Arc::new(Pool::of(MOST_IDLE_BY_DEFAULT));
        let mut peers = Vec::new();
        for _ in 0..IDLE_CONNECTIONS + 3 {
            let (connection, peer) = connection().await;
            pool.keep(A, connection);
            peers.push(peer);
        }
        let taken = std::iter::from_fn(|| pool.take(A)).count();
        assert_eq!(taken, IDLE_CONNECTIONS);
        assert!(!pool.close_old(), "nothing is left to be swept");
    }

    #[tokio::test]
    async fn no_more_are_kept_of_all_endpoints_together_than_files_are_spared_for_them() {
        let pool = Arc::new(Pool::of(3));
        let mut peers = Vec::new();
        let hosts = ["a", "b", "c", "d"].map(|host| format!("https://{host}.example:443"));
        for host in &hosts {
            let (connection, peer) = connection().await;
            pool.keep(host, connection);
            peers.push(peer);
        }
        assert!(pool.take(&hosts[3]).is_none(), "there was no room");
        let taken = pool.take(&hosts[0]).expect("kept");
        pool.keep(&hosts[3], taken);
        assert!(pool.take(&hosts[3]).is_some(), "one was given out");
    }
}
