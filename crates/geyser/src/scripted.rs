//! A real Yellowstone server that plays a script: for tests of whatever consumes the stream, above
//! all of faults that a local validator never shows. It speaks the protocol over a socket of the
//! loopback interface, so the client under test is the one that runs in production.

mod decode;
mod encode;
mod service;

use std::{
    collections::VecDeque,
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::StreamExt;
use tokio::{net::TcpListener, sync::mpsc, task::AbortHandle};
use tokio_stream::wrappers::TcpListenerStream;
pub use tonic::Code;
use tonic::{Status, transport::Server};
use url::Url;
use yellowstone_grpc_proto::geyser::{
    self as proto, geyser_server::GeyserServer, subscribe_update::UpdateOneof,
};
use yellowstone_grpc_proto::prost::Message;

use crate::{Endpoint, Request, Update};

/// Messages a script may send ahead of the client. Small, so that a client that does not read is
/// felt by the script instead of growing the test's memory.
const OUTGOING_CAPACITY: usize = 16;

/// The server. Dropping it stops accepting; connections handed out live on.
#[derive(Debug)]
pub struct ScriptedServer {
    url: Url,
    connections: mpsc::UnboundedReceiver<Connection>,
    refusals: Arc<Mutex<VecDeque<Status>>>,
    server: AbortHandle,
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ScriptedServer {
    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let connections_in = TcpListenerStream::new(listener).inspect(|connection| {
            // A message that waits for the acknowledgement of the one before would distort every timing.
            if let Err(error) = connection.as_ref().map_or(Ok(()), |c| c.set_nodelay(true)) {
                tracing::warn!(%error, "scripted server sends with a delay");
            }
        });
        let url = format!("http://{}", address);
        let (accepted, connections) = mpsc::unbounded_channel();
        let refusals = Arc::<Mutex<VecDeque<Status>>>::default();
        let service = service::Service {
            accepted,
            refusals: Arc::clone(&refusals),
        };
        let serve = Server::builder()
            .add_service(GeyserServer::new(service))
            .serve_with_incoming(connections_in);
        let server = tokio::spawn(async move {
            if let Err(error) = serve.await {
                tracing::error!(%error, "scripted server failed");
            }
        })
        .abort_handle();
        let url = Url::parse(&url).map_err(io::Error::other)?;
        Ok(Self {
            url,
            connections,
            refusals,
            server,
        })
    }

    /// How a client reaches it.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            url: self.url.clone(),
            x_token: None,
        }
    }

    /// Refuses the next subscription that is not refused already.
    pub fn refuse_next(&self, code: Code, message: &str) {
        let mut refusals = self
            .refusals
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        refusals.push_back(Status::new(code, message));
    }

    /// The next subscription a client opened. Waits for ever if none comes, so put a limit around.
    pub async fn accept(&mut self) -> Connection {
        match self.connections.recv().await {
            Some(connection) => connection,
            // Only when the serving task died, which it has logged.
            None => std::future::pending().await,
        }
    }
}

/// One subscription of a client. Dropping it ends the stream without an error.
#[derive(Debug)]
pub struct Connection {
    requests: mpsc::UnboundedReceiver<Received>,
    messages: mpsc::Sender<Result<proto::SubscribeUpdate, Status>>,
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The subscription it carries.
    pub request: Request,
    /// Its ping id, when it is a ping.
    pub ping: Option<i32>,
}

/// A message of the stream as it is on the wire, without the framing of gRPC.
#[must_use]
pub fn wire_bytes(update: Update) -> Bytes {
    encode::update(update).encode_to_vec().into()
}

/// The client has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has closed the stream")]
pub struct ClientGone;

impl Connection {
    /// The client's next message; `None` once the client has closed its half.
    pub async fn received(&mut self) -> Option<Received> {
        self.requests.recv().await
    }

    /// Sends an update as it is. Waits while the client does not read.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn send(&self, update: Update) -> Result<(), ClientGone> {
        self.put(Ok(encode::update(update))).await
    }

    /// Sends a ping.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn ping(&self) -> Result<(), ClientGone> {
        self.put(Ok(proto::SubscribeUpdate {
            update_oneof: Some(UpdateOneof::Ping(proto::SubscribeUpdatePing {})),
            ..proto::SubscribeUpdate::default()
        }))
        .await
    }

    /// Sends a message without content, which the protocol forbids.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn send_garbage(&self) -> Result<(), ClientGone> {
        self.put(Ok(proto::SubscribeUpdate::default())).await
    }

    /// Ends the stream with an error, after everything sent before.
    ///
    /// # Errors
    /// [`ClientGone`].
    pub async fn fail(self, code: Code, message: &str) -> Result<(), ClientGone> {
        self.put(Err(Status::new(code, message))).await
    }

    async fn put(&self, message: Result<proto::SubscribeUpdate, Status>) -> Result<(), ClientGone> {
        self.messages.send(message).await.map_err(|_| ClientGone)
    }
}
