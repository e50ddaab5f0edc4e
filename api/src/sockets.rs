//! Sockets: streams over WebSocket, for who asks for one where a stream of server-sent events is.
//!
//! What a reader is given is the same over both: an event is a message `{"event", "id", "data"}`, a sign of life a ping. What
//! would be answered with a problem still is, before the connection is taken over.

mod handshake;
mod origin;
mod session;

use axum::{extract::Request, response::Response};
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use sluice_config::CorsOrigins;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::{error::ApiError, server::Hold, stream_end::StreamEnd};

/// What is sent down a socket.
#[derive(Clone, Debug)]
pub enum SocketEvent {
    /// A message.
    Message(Utf8Bytes),
    /// A sign of life, in words that fit into a ping.
    Beat(Utf8Bytes),
    /// The last event.
    End(StreamEnd),
}

/// What the reader of a socket is given.
pub trait SocketEvents: Send + 'static {
    /// What is to be sent next, once there is something; `None` when all was said.
    fn next(&mut self) -> impl Future<Output = Option<SocketEvent>> + Send;
}

/// A WebSocket that is asked for and may be opened.
pub struct Opening {
    answer: Response,
    on_upgrade: OnUpgrade,
    hold: Option<Hold>,
}

/// The WebSocket that a request asks for, if it does.
///
/// # Errors
/// When it comes from a page that may not open one, or is no handshake of RFC 6455 or RFC 8441.
pub fn asked(origins: &CorsOrigins, request: &mut Request) -> Result<Option<Opening>, ApiError> {
    let Some(handshake) = handshake::of(request)? else {
        return Ok(None);
    };
    origin::check(origins, request.headers())?;
    Ok(Some(Opening {
        answer: handshake.answer(request)?,
        on_upgrade: upgrade::on(&mut *request),
        hold: request.extensions_mut().remove(),
    }))
}

impl Opening {
    /// Answers that the connection, or over HTTP/2 the stream, is taken over, and when it is, sends the events down it.
    pub fn answer(self, events: impl SocketEvents) -> Response {
        let Self {
            answer,
            on_upgrade,
            hold,
        } = self;
        tokio::spawn(async move {
            match on_upgrade.await {
                Ok(connection) => session::run(TokioIo::new(connection), events).await,
                Err(error) => {
                    tracing::debug!(%error, "a connection ended before its WebSocket began")
                }
            }
            drop(hold);
        });
        answer
    }
}
