//! Stream handle of the consumer: opens a subscription, yields its updates, replaces its filters.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::sync::{Mutex, oneshot};

use crate::{
    error::StreamError,
    limits,
    reader::{self, Requests},
    request::{Endpoint, Request},
    update::Update,
    update_queue::Receiver,
    wire,
};

/// A live subscription. A thread of its own reads the socket; dropping the stream ends that thread and
/// closes the connection.
pub struct Stream {
    arrived: Receiver,
    /// Updates that were taken and not handed out yet.
    updates: std::vec::IntoIter<Update>,
    requests: Arc<Mutex<Requests>>,
    /// The reader goes on as long as this exists.
    _reading: oneshot::Sender<Infallible>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("waiting", &self.arrived.len())
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Connects and subscribes. The server accepting the subscription does not prove that the
    /// filters work already: updates before that are not sent.
    ///
    /// # Errors
    /// [`StreamError::Connect`], [`StreamError::Refused`], or what the server answered.
    pub async fn open(endpoint: &Endpoint, request: Request) -> Result<Self, StreamError> {
        Self::open_with(endpoint, request, limits::STALL_TIMEOUT).await
    }

    /// Like [`Stream::open`], with a silence of `stall_timeout` ending the stream instead of
    /// [`limits::STALL_TIMEOUT`].
    ///
    /// # Errors
    /// As [`Stream::open`].
    pub async fn open_with(
        endpoint: &Endpoint,
        request: Request,
        stall_timeout: Duration,
    ) -> Result<Self, StreamError> {
        wire::validate(&request)?;
        let (reading, dropped) = oneshot::channel();
        let opened = reader::spawn(endpoint.clone(), request, stall_timeout, dropped)?;
        let opened = opened.await.map_err(|_| StreamError::Closed)??;
        Ok(Self {
            arrived: opened.arrived,
            updates: Vec::new().into_iter(),
            requests: opened.requests,
            _reading: reading,
        })
    }

    /// The next update. Cancel-safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// Why the stream is over. Everything received before is delivered first; afterwards only
    /// [`StreamError::Closed`] comes.
    pub async fn next(&mut self) -> Result<Update, StreamError> {
        loop {
            if let Some(update) = self.updates.next() {
                return Ok(update);
            }
            self.receive().await?;
        }
    }

    /// The updates that have arrived together, at least one. Cancel-safe.
    ///
    /// # Errors
    /// As [`Stream::next`].
    pub async fn next_batch(
        &mut self,
    ) -> Result<impl Iterator<Item = Update> + use<>, StreamError> {
        while self.updates.as_slice().is_empty() {
            self.receive().await?;
        }
        Ok(std::mem::take(&mut self.updates))
    }

    /// Waits for more updates, once the last ones are handed out.
    async fn receive(&mut self) -> Result<(), StreamError> {
        self.updates = self.arrived.take().await?.into_iter();
        Ok(())
    }

    /// Replaces the whole subscription while the stream goes on. There is no acknowledgement: the
    /// proof that the new filters are in force is an update that names one of them, so give a filter
    /// a new name where that matters.
    ///
    /// # Errors
    /// [`StreamError::Refused`] for a request no server accepts, and then the old one stays in force;
    /// [`StreamError::Closed`] when the stream is over.
    pub async fn replace(&mut self, request: Request) -> Result<(), StreamError> {
        wire::validate(&request)?;
        self.requests.lock().await.replace(request).await
    }
}
