//! Scripted Yellowstone server for tests of the stream's consumers, above all of faults.
//!
//! A local validator never shows most of these. The server speaks the protocol over a socket of the
//! loopback interface, so the client under test is the one that runs in production. What it sends is the
//! script's alone: it knows no filter and no chain, and is as strict as its script. The test kit's
//! `YellowstoneServer` is the script that behaves as the reference server does.

mod connection;
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
use tonic::{Status, codec::CompressionEncoding, transport::Server};
use url::Url;
use yellowstone_grpc_proto::{geyser::geyser_server::GeyserServer, prost::Message};

pub use self::connection::{ClientGone, Connection, Received, Unsent};
use crate::{request::Endpoint, update::Update};

/// Largest request that is read, bytes: what reference servers allow. A larger one ends the stream without a status.
pub const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

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
        Self::with_queue(service::PLAYED_AHEAD).await
    }

    /// Like [`ScriptedServer::start`], and compresses with zstd what a client accepts so.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn compressing() -> io::Result<Self> {
        Self::listen(service::PLAYED_AHEAD, true).await
    }

    /// Like [`ScriptedServer::start`], with room for this many messages that a client has not taken yet.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn with_queue(messages: usize) -> io::Result<Self> {
        Self::listen(messages, false).await
    }

    async fn listen(messages: usize, compresses: bool) -> io::Result<Self> {
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
            queue: messages,
        };
        let mut service = GeyserServer::new(service).max_decoding_message_size(MAX_REQUEST_BYTES);
        if compresses {
            service = service.send_compressed(CompressionEncoding::Zstd);
        }
        let serve = Server::builder()
            .add_service(service)
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

/// A message of the stream as it is on the wire, without the framing of gRPC.
#[must_use]
pub fn wire_bytes(update: Update) -> Bytes {
    encode::update(update).encode_to_vec().into()
}
