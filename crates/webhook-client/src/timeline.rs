//! Timeline: measures when the parts of an attempt were done.
//!
//! The connector and the resolver run inside the task that sends a request, but know nothing of the
//! request. So the times are noted in a value that belongs to the task; where the connection is made by
//! another task, or taken from the pool, nothing is noted.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use parking_lot::Mutex;
use reqwest::Url;
use sluice_store::Timings;
use tower::{Layer, Service, ServiceExt};

tokio::task_local! {
    static TIMELINE: Timeline;
}

/// Notes times since its making.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    begun: Instant,
    encrypted: bool,
    timings: Arc<Mutex<Timings>>,
}

impl Timeline {
    /// Starts the clock for a request to `url`.
    pub(crate) fn start(url: &Url) -> Self {
        Self {
            begun: Instant::now(),
            encrypted: url.scheme() == "https",
            timings: Arc::default(),
        }
    }

    /// Lets `future` note its times here.
    pub(crate) async fn during<F: Future>(&self, future: F) -> F::Output {
        TIMELINE.scope(self.clone(), future).await
    }

    /// What was noted.
    pub(crate) fn timings(&self) -> Timings {
        *self.timings.lock()
    }

    /// The first byte of the answer is there.
    pub(crate) fn answered(&self) {
        self.timings.lock().first_byte = Some(self.begun.elapsed());
    }

    fn note(change: impl FnOnce(&Self, &mut Timings)) {
        // Fails only outside of an attempt.
        let _ = TIMELINE.try_with(|timeline| change(timeline, &mut timeline.timings.lock()));
    }
}

/// The name of the current attempt is resolved.
pub(crate) fn resolved() {
    Timeline::note(|timeline, timings| timings.resolved = Some(timeline.begun.elapsed()));
}

/// The connection of the current attempt stands. The connector does not show when TCP stood before TLS.
fn connected() {
    Timeline::note(|timeline, timings| {
        let now = Some(timeline.begun.elapsed());
        if timeline.encrypted {
            timings.secured = now;
        } else {
            timings.connected = now;
        }
    });
}

/// Notes when a connector is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedConnector;

impl<S> Layer<S> for TimedConnector {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed {
            inner: Arc::new(Mutex::new(inner)),
        }
    }
}

/// A connector that notes when it is done. The client clones its connector for every request, needed or not, so the
/// connector proper, a stack of boxes, is cloned for connections only.
#[derive(Debug)]
pub(crate) struct Timed<S> {
    inner: Arc<Mutex<S>>,
}

impl<S> Clone for Timed<S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<S, R> Service<R> for Timed<S>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: 'static,
    S::Error: 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: R) -> Self::Future {
        let inner = self.inner.lock().clone();
        Box::pin(async move {
            let connection = inner.oneshot(target).await?;
            connected();
            Ok(connection)
        })
    }
}
