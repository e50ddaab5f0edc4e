//! Preencoded stream: plays messages that were encoded beforehand to every client, for benchmarks.
//!
//! It stands for a server on a machine of its own, whose encoding must not be part of what is measured. It is stricter in one
//! thing: it sends as fast as it is read, without a pause. It judges nothing: whatever a client asks for, it gets the same,
//! from its first message on, so it serves benchmarks alone.

use std::{io, net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::IntoResponse,
    routing::post,
};
use futures::StreamExt;
use sluice_geyser::Endpoint;
use tokio::{net::TcpListener, task::AbortHandle};

/// Messages handed to the connection at once are cut at about this many bytes: many frames of HTTP/2, so that hardly any
/// is sent that is not full.
const PIECE: usize = 256 * 1024;

/// The server. Dropping it stops it.
pub struct Preencoded {
    endpoint: Endpoint,
    server: AbortHandle,
}

impl Drop for Preencoded {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Preencoded {
    /// Serves these messages to every client, whatever it asks for.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(messages: &[Bytes]) -> io::Result<Self> {
        let pieces: Arc<[Bytes]> = framed(messages).into();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let app = Router::new()
            .route("/geyser.Geyser/Subscribe", post(play))
            .with_state(pieces);
        let server = tokio::spawn(async move { axum::serve(listener, app).await }).abort_handle();
        Ok(Self {
            endpoint: Endpoint {
                url: url.parse().map_err(io::Error::other)?,
                x_token: None,
            },
            server,
        })
    }

    /// How a client reaches it.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// Messages with the prefix that gRPC gives each: not compressed, and its length.
fn framed(messages: &[Bytes]) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for message in messages {
        let length = u32::try_from(message.len()).expect("an account fits in four gigabytes");
        piece.push(0);
        piece.extend(length.to_be_bytes());
        piece.extend(message);
        if piece.len() >= PIECE {
            pieces.push(std::mem::take(&mut piece).into());
        }
    }
    pieces.push(piece.into());
    pieces
}

/// Plays everything, and then keeps the stream open until the client goes.
async fn play(State(pieces): State<Arc<[Bytes]>>) -> impl IntoResponse {
    let count = pieces.len();
    let reported = futures::stream::iter(0..count)
        .map(move |at| Ok::<_, io::Error>(pieces.get(at).cloned().unwrap_or_default()));
    let body = Body::from_stream(reported.chain(futures::stream::pending()));
    ([(CONTENT_TYPE, "application/grpc")], body)
}
