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

/// Idle connections by endpoint: scheme, host and port, as they begin a URL.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// Those of an endpoint in the order in which they became idle.
    endpoints: HashMap<String, Vec<(Instant, Connection)>>,
    /// Whether a task closes those that have been idle for too long.
    is_swept: bool,
}

impl Pool {
    /// The connection to an endpoint that became idle last, if one is open.
    pub(crate) fn take(&self, endpoint: &str) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.0.lock().endpoints.get_mut(endpoint)?.pop()?;
            if since.elapsed() < IDLE_TIMEOUT && connection.is_open() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next attempt, unless enough are kept.
    pub(crate) fn keep(self: &Arc<Self>, endpoint: &str, connection: Connection) {
        let mut idle = self.0.lock();
        let kept = (Instant::now(), connection);
        match idle.endpoints.get_mut(endpoint) {
            Some(of_endpoint) if of_endpoint.len() >= IDLE_CONNECTIONS => {}
            Some(of_endpoint) => of_endpoint.push(kept),
            None => {
                idle.endpoints.insert(endpoint.to_owned(), vec![kept]);
            }
        }
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what has been idle for too long; returns whether anything is left.
    fn close_old(&self) -> bool {
        let mut idle = self.0.lock();
        idle.endpoints.retain(|_, of_endpoint| {
            of_endpoint.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
            !of_endpoint.is_empty()
        });
        idle.is_swept = !idle.endpoints.is_empty();
        idle.is_swept
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
        let pool = Arc::new(Pool::default());
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
        let pool = Arc::new(Pool::default());
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
}
