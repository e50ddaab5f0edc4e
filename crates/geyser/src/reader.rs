//! Reader thread of one connection: reads the socket, decodes, and queues updates for the consumer.
//!
//! On the runtime of the service the connection, the decoding and the consumer would be tasks that
//! wake each other across its workers for every few messages, and a service that is busy with
//! requests would read late. Here the consumer is woken with what has arrived, decoded.

use std::{convert::Infallible, io, sync::Arc, thread, time::Duration};

use futures::{FutureExt, SinkExt, StreamExt};
use secrecy::ExposeSecret;
use tokio::{
    runtime,
    sync::{Mutex, oneshot},
    time::timeout,
};
use tonic::{Status, codec::CompressionEncoding};
use yellowstone_grpc_client::{
    ClientTlsConfig, GeyserGrpcBuilder, GeyserGrpcClient, GeyserGrpcClientError, GeyserStream,
    SubscribeRequestSink,
};
use yellowstone_grpc_proto::prelude::{SubscribeRequest, SubscribeUpdate};

use crate::{
    classify::classify,
    convert::{Incoming, incoming},
    error::StreamError,
    limits,
    request::{Endpoint, Request},
    update::Update,
    update_queue::{Receiver, Sender, update_queue},
    wire,
};

/// What the reader has opened.
pub(crate) struct Opened {
    pub(crate) arrived: Receiver,
    pub(crate) requests: Arc<Mutex<Requests>>,
}

/// Starts the thread that connects, subscribes, and reads until the stream ends or `dropped` does.
///
/// # Errors
/// [`StreamError::Connect`] when the system has no room for another thread.
pub(crate) fn spawn(
    endpoint: Endpoint,
    request: Request,
    stall_timeout: Duration,
    dropped: oneshot::Receiver<Infallible>,
) -> Result<oneshot::Receiver<Result<Opened, StreamError>>, StreamError> {
    let no_thread = |error: io::Error| StreamError::Connect(format!("no thread to read: {error}"));
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no_thread)?;
    let (opened, opening) = oneshot::channel();
    let reading = async move {
        match open(&endpoint, &request, stall_timeout).await {
            Ok((reader, stream)) => {
                if opened.send(Ok(stream)).is_ok() {
                    reader.run().await;
                }
            }
            Err(error) => {
                // The caller is gone, or has its answer already.
                let _ = opened.send(Err(error));
            }
        }
    };
    let thread = thread::Builder::new().name("geyser".to_owned());
    let reading = move || {
        runtime.block_on(async {
            tokio::select! {
                () = reading => {}
                _ = dropped => {}
            }
        });
    };
    thread.spawn(reading).map_err(no_thread)?;
    Ok(opening)
}

async fn open(
    endpoint: &Endpoint,
    request: &Request,
    stall_timeout: Duration,
) -> Result<(Reader, Opened), StreamError> {
    let mut client = connect(endpoint).await?;
    let replay_asked = request.from_slot.is_some();
    let subscription = client.subscribe_with_request(Some(wire::subscribe(request)));
    let (sink, messages) = timeout(limits::SUBSCRIBE_TIMEOUT, subscription)
        .await
        .map_err(|_| {
            let patience = limits::SUBSCRIBE_TIMEOUT;
            StreamError::Connect(format!("no answer to the subscription in {patience:?}"))
        })?
        .map_err(|error| match error {
            GeyserGrpcClientError::TonicStatus(status) => classify(&status, replay_asked),
            GeyserGrpcClientError::TransportError(error) => StreamError::Connect(causes(&error)),
        })?;
    let requests = Arc::new(Mutex::new(Requests { sink, replay_asked }));
    let (sender, arrived) = update_queue(limits::QUEUED_UPDATES);
    let reader = Reader {
        messages,
        requests: Arc::clone(&requests),
        arrived: sender,
        stall_timeout,
    };
    Ok((reader, Opened { arrived, requests }))
}

/// The sending half. Held as long as the stream lives, since a server takes its loss for the end.
pub(crate) struct Requests {
    sink: SubscribeRequestSink,
    replay_asked: bool,
}

impl Requests {
    /// Asks for something else from here on.
    pub(crate) async fn replace(&mut self, request: Request) -> Result<(), StreamError> {
        self.replay_asked |= request.from_slot.is_some();
        self.send(wire::subscribe(&request)).await
    }

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
        requests.send(wire::ping_answer(PING_ID)).await
    }
}

pub(crate) async fn connect(endpoint: &Endpoint) -> Result<GeyserGrpcClient, StreamError> {
    let connecting = builder(endpoint)?.connect();
    // The builder's own limit covers the TCP connection, this one TLS and HTTP/2 as well.
    timeout(limits::CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| {
            StreamError::Connect(format!("no connection in {:?}", limits::CONNECT_TIMEOUT))
        })?
        .map_err(|error| StreamError::Connect(causes(&error)))
}

fn builder(endpoint: &Endpoint) -> Result<GeyserGrpcBuilder, StreamError> {
    let refused = |error: yellowstone_grpc_client::GeyserGrpcBuilderError| {
        StreamError::Refused(causes(&error))
    };
    let token = endpoint.x_token.as_ref().map(ExposeSecret::expose_secret);
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
        // Servers that compress do so for a client that accepts it.
        .accept_compressed(CompressionEncoding::Zstd)
        .max_decoding_message_size(limits::MAX_MESSAGE_BYTES);
    if endpoint.url.scheme() == "https" {
        builder = builder
            .tls_config(ClientTlsConfig::new().with_enabled_roots())
            .map_err(refused)?;
    }
    Ok(builder)
}

/// An error with its causes: the transport's own text is only "transport error".
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
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
