//! Sockets: streams over WebSocket, for who asks for one where a stream of server-sent events is.
//!
//! What a reader is given is the same over both: an event is a message `{"event", "id", "data"}`, a sign of life a ping. What
//! would be answered with a problem still is, before the connection is taken over.

mod origin;
mod session;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, header},
    response::Response,
};
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use sluice_config::CorsOrigins;
use tokio_tungstenite::tungstenite::{
    self, Utf8Bytes, error::ProtocolError, handshake::server::create_response_with_body,
};

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
/// When it comes from a page that may not open one, or is no handshake of RFC 6455.
pub fn asked(origins: &CorsOrigins, request: &mut Request) -> Result<Option<Opening>, ApiError> {
    if !names_websocket(request.headers()) {
        return Ok(None);
    }
    origin::check(origins, request.headers())?;
    let answer = create_response_with_body(request, Body::empty);
    Ok(Some(Opening {
        answer: answer.map_err(|fault| refusal(&fault))?,
        on_upgrade: upgrade::on(&mut *request),
        hold: request.extensions_mut().remove(),
    }))
}

impl Opening {
    /// Answers that the connection is taken over, and when it is, sends the events down it.
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

fn names_websocket(headers: &HeaderMap) -> bool {
    let names = headers.get_all(header::UPGRADE).into_iter();
    names
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|name| name.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Why no WebSocket can be opened by this request.
fn refusal(fault: &tungstenite::Error) -> ApiError {
    use ProtocolError as P;
    let tungstenite::Error::Protocol(fault) = fault else {
        return ApiError::invalid("Upgrade", format!("no WebSocket can be opened: {fault}"));
    };
    match fault {
        P::MissingConnectionUpgradeHeader => {
            ApiError::invalid("Connection", "must name Upgrade to open a WebSocket")
        }
        P::MissingSecWebSocketVersionHeader => {
            ApiError::invalid("Sec-WebSocket-Version", "must be 13")
        }
        P::MissingSecWebSocketKey => ApiError::MissingField {
            field: "Sec-WebSocket-Key",
        },
        P::InvalidSecWebSocketKey => {
            ApiError::invalid("Sec-WebSocket-Key", "must be 16 bytes in base 64")
        }
        P::WrongHttpVersion => ApiError::invalid("Upgrade", "needs HTTP/1.1"),
        fault => ApiError::invalid(
            "Upgrade",
            format!("must be websocket alone to open one ({fault})"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    /// Headers of a handshake; those of a test's take their place.
    const HANDSHAKE: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    fn asked_with(changed: &str, value: Option<&str>) -> Result<Option<Opening>, ApiError> {
        let mut builder = Request::builder();
        for (name, usual) in HANDSHAKE {
            let value = if name == changed { value } else { Some(usual) };
            if let Some(value) = value {
                builder = builder.header(name, value);
            }
        }
        let mut request = builder.body(Body::empty()).expect("a request");
        asked(&CorsOrigins::default(), &mut request)
    }

    #[test]
    fn a_handshake_is_answered_as_the_standard_says() {
        let opening = asked_with("", None).expect("a handshake").expect("asked");
        assert_eq!(opening.answer.status(), StatusCode::SWITCHING_PROTOCOLS);
        // The standard's own example of a key.
        let accepted = &opening.answer.headers()["sec-websocket-accept"];
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_asks_for_no_websocket_is_none() {
        for other in [None, Some("h2c"), Some("websockets")] {
            let asked = asked_with("upgrade", other).expect("no handshake");
            assert!(asked.is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_faulty_handshake_is_refused_by_the_name_of_its_header() {
        for (name, value, field) in [
            ("connection", None, "Connection"),
            ("connection", Some("close"), "Connection"),
            ("upgrade", Some("h2c, websocket"), "Upgrade"),
            ("sec-websocket-version", Some("8"), "Sec-WebSocket-Version"),
            ("sec-websocket-key", None, "Sec-WebSocket-Key"),
            ("sec-websocket-key", Some("short"), "Sec-WebSocket-Key"),
        ] {
            let refused = asked_with(name, value).err().expect("a refusal");
            assert_eq!(refused.document()["field"], field, "{name} {value:?}");
            assert_eq!(refused.document()["status"], 400);
        }
    }
}
