//! Sockets: streams over WebSocket, for who asks for one where a stream of server-sent events is.
//!
//! What a reader is given is the same over both: an event is a message `{"event", "id", "data"}`, a sign of life a ping. What
//! would be answered with a problem still is, before the connection is taken over.

mod handshake;
mod origin;
mod session;

use axum::{extract::Request, response::Response};
use bytes::Bytes;
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use sluice_config::CorsOrigins;
use tokio_tungstenite::tungstenite::{
    Utf8Bytes,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

use self::handshake::Handshake;
use crate::{
    error::ApiError,
    server::{
        Hold,
        http2::{Sender, TakenOver},
    },
    stream_end::StreamEnd,
};

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

impl SocketEvent {
    /// The one frame in which it is sent; of the end, its message.
    #[must_use]
    pub fn into_frame(self) -> Bytes {
        let frame = match self {
            Self::Message(text) => Frame::message(text, OpCode::Data(Data::Text), true),
            Self::Beat(text) => Frame::ping(text),
            Self::End(end) => Frame::message(end.message(), OpCode::Data(Data::Text), true),
        };
        let mut bytes = Vec::with_capacity(frame.len());
        frame.format(&mut bytes).expect("memory takes it in");
        bytes.into()
    }
}

/// What the reader of a socket is given.
pub trait SocketEvents: Send + 'static {
    /// What is to be sent next, once there is something; `None` when all was said.
    fn next(&mut self) -> impl Future<Output = Option<SocketEvent>> + Send;

    /// Nothing may be sent any more but the goodbye: the socket is about to be closed.
    fn stop(&mut self) {}
}

/// A WebSocket that is asked for and may be opened.
pub struct Opening {
    answer: Response,
    way: Way,
}

/// What becomes the socket.
enum Way {
    /// A connection that speaks HTTP/1.1.
    Connection(OnUpgrade, Option<Hold>),
    /// A stream of one that speaks HTTP/2.
    Stream,
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
    let way = match handshake {
        Handshake::Upgrade => {
            let hold = request.extensions_mut().remove();
            Way::Connection(upgrade::on(&mut *request), hold)
        }
        Handshake::Connect => Way::Stream,
    };
    Ok(Some(Opening {
        answer: handshake.answer(request)?,
        way,
    }))
}

impl Opening {
    /// Answers that the connection, or over HTTP/2 the stream, is taken over, and when it is, sends the events down it.
    pub fn answer(self, events: impl SocketEvents) -> Response {
        match self.way {
            Way::Connection(on_upgrade, hold) => {
                tokio::spawn(over_connection(on_upgrade, hold, events));
                self.answer
            }
            Way::Stream => self.answer_shared(|_| events),
        }
    }

    /// As [`Self::answer`] over HTTP/2, with events of which others are sent by who shares the stream's side that sends: each of
    /// whose writes has to be whole frames.
    pub fn answer_shared<E: SocketEvents>(
        mut self,
        events: impl FnOnce(Sender) -> E + Send + 'static,
    ) -> Response {
        let taken_over = TakenOver::by(|stream| {
            if let Some((duplex, sender)) = stream.duplex() {
                tokio::spawn(session::run(duplex, events(sender)));
            }
        });
        self.answer.extensions_mut().insert(taken_over);
        self.answer
    }
}

/// Sends the events down a connection once it is given away.
async fn over_connection(on_upgrade: OnUpgrade, hold: Option<Hold>, events: impl SocketEvents) {
    match on_upgrade.await {
        Ok(connection) => session::run(TokioIo::new(connection), events).await,
        Err(error) => tracing::debug!(%error, "a connection ended before its WebSocket began"),
    }
    drop(hold);
}
