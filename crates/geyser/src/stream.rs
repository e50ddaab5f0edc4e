//! One connection with one subscription.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, SinkExt, StreamExt};
use tokio::{sync::Mutex, task::AbortHandle, time::timeout};
use tonic::Status;
use yellowstone_grpc_client::{
    ClientTlsConfig, GeyserGrpcBuilder, GeyserGrpcClient, GeyserGrpcClientError, GeyserStream,
    SubscribeRequestSink,
};
use yellowstone_grpc_proto::prelude::{SubscribeRequest, SubscribeUpdate};

use crate::{
    Endpoint, Request, StreamError, Update,
    classify::classify,
    convert::{Incoming, incoming},
    handover::{Receiver, Sender, handover},
    limits, wire,
};

/// A live subscription. A task of its own reads the socket; dropping the stream ends that task and
/// closes the connection.
pub struct Stream {
    arrived: Receiver,
    /// Updates that were taken and not handed out yet.
    updates: std::vec::IntoIter<Update>,
    requests: Arc<Mutex<Requests>>,
    reader: AbortHandle,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("waiting", &self.arrived.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
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
        let mut client = connect(endpoint).await?;
        let replay_asked = request.from_slot.is_some();
        let subscription = client.subscribe_with_request(Some(wire::subscribe(&request)));
        let (sink, messages) = timeout(limits::SUBSCRIBE_TIMEOUT, subscription)
            .await
            .map_err(|_| {
                StreamError::Connect(format!(
                    "no answer to the subscription in {:?}",
                    limits::SUBSCRIBE_TIMEOUT
                ))
            })?
            .map_err(|error| match error {
                GeyserGrpcClientError::TonicStatus(status) => classify(&status, replay_asked),
                GeyserGrpcClientError::TransportError(error) => StreamError::Connect(chain(&error)),
            })?;
        let requests = Arc::new(Mutex::new(Requests {
            sink,
            current: request,
            replay_asked,
        }));
        let (sender, arrived) = handover(limits::WAITING_UPDATES);
        let reader = Reader {
            messages,
            requests: Arc::clone(&requests),
            arrived: sender,
            stall_timeout,
        };
        Ok(Self {
            arrived,
            updates: Vec::new().into_iter(),
            requests,
            reader: tokio::spawn(reader.run()).abort_handle(),
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
        let mut requests = self.requests.lock().await;
        let message = wire::subscribe(&request);
        requests.replay_asked |= request.from_slot.is_some();
        requests.current = request;
        requests.send(message).await
    }
}

/// The sending half. Held as long as the stream lives, since a server takes its loss for the end.
/// One lock orders filter changes and ping answers, so that an answer never restores old filters.
struct Requests {
    sink: SubscribeRequestSink,
    current: Request,
    replay_asked: bool,
}

impl Requests {
    async fn send(&mut self, message: SubscribeRequest) -> Result<(), StreamError> {
        self.sink
            .send(message)
            .await
            .map_err(|_| StreamError::Closed)
    }
}

/// The receiving half.
struct Reader {
    messages: GeyserStream,
    requests: Arc<Mutex<Requests>>,
    arrived: Sender,
    stall_timeout: Duration,
}

impl Reader {
    /// Reads until the stream ends or the consumer goes.
    async fn run(mut self) {
        let mut updates = Vec::new();
        loop {
            let end = self.read(&mut updates).await.err();
            if self.arrived.send(&mut updates).await.is_err() {
                return;
            }
            if let Some(error) = end {
                tracing::debug!(%error, "stream over");
                return self.arrived.end(error);
            }
        }
    }

    /// Reads what has arrived. Waiting for the consumer is not silence of the server, so only the
    /// wait for a message is timed.
    async fn read(&mut self, updates: &mut Vec<Update>) -> Result<(), StreamError> {
        let first = timeout(self.stall_timeout, self.messages.next()).await;
        let mut next = first.map_err(|_| StreamError::Stalled(self.stall_timeout))?;
        loop {
            let message = next.ok_or(StreamError::Closed)?;
            self.take(message, updates).await?;
            if updates.len() >= limits::READ_AT_ONCE {
                return Ok(());
            }
            next = match self.messages.next().now_or_never() {
                Some(next) => next,
                None => return Ok(()),
            };
        }
    }

    async fn take(
        &self,
        message: Result<SubscribeUpdate, Status>,
        updates: &mut Vec<Update>,
    ) -> Result<(), StreamError> {
        let message = match message {
            Ok(message) => message,
            Err(status) => {
                return Err(classify(&status, self.requests.lock().await.replay_asked));
            }
        };
        match incoming(message)? {
            Incoming::Update(update) => updates.push(update),
            Incoming::Ping => self.answer_ping().await?,
            Incoming::Nothing => {}
        }
        Ok(())
    }

    async fn answer_ping(&self) -> Result<(), StreamError> {
        /// Pongs are not awaited, so one id serves for all.
        const PING_ID: i32 = 1;
        let mut requests = self.requests.lock().await;
        let answer = wire::ping_answer(&requests.current, PING_ID);
        requests.send(answer).await
    }
}

async fn connect(endpoint: &Endpoint) -> Result<GeyserGrpcClient, StreamError> {
    let connecting = builder(endpoint)?.connect();
    // The builder's own limit covers the TCP connection, this one TLS and HTTP/2 as well.
    timeout(limits::CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| {
            StreamError::Connect(format!("no connection in {:?}", limits::CONNECT_TIMEOUT))
        })?
        .map_err(|error| StreamError::Connect(chain(&error)))
}

fn builder(endpoint: &Endpoint) -> Result<GeyserGrpcBuilder, StreamError> {
    let refused = |error: yellowstone_grpc_client::GeyserGrpcBuilderError| {
        StreamError::Refused(chain(&error))
    };
    let token = endpoint.x_token.as_ref().map(service_kit::Redacted::expose);
    let mut builder = GeyserGrpcBuilder::from_shared(endpoint.url.to_string())
        .map_err(refused)?
        .x_token(token)
        .map_err(refused)?
        .connect_timeout(limits::CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_adaptive_window(true)
        .http2_keep_alive_interval(limits::KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .max_decoding_message_size(limits::MAX_MESSAGE_BYTES);
    if endpoint.url.scheme() == "https" {
        builder = builder
            .tls_config(ClientTlsConfig::new().with_enabled_roots())
            .map_err(refused)?;
    }
    Ok(builder)
}

/// An error with its causes: the transport's own text is only "transport error".
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
