//! Handshake: how a request asks for a WebSocket, with `Upgrade` over HTTP/1.1 (RFC 6455) or with `CONNECT` over HTTP/2 (RFC 8441), and
//! what it is answered.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, header},
    response::Response,
};
use h2::ext::Protocol;
use tokio_tungstenite::tungstenite::{
    self, error::ProtocolError, handshake::server::create_response_with_body,
};

use crate::error::ApiError;

/// What the header and the pseudo-header name that ask for it.
const WEBSOCKET: &[u8] = b"websocket";

/// The one version there is.
const VERSION: &[u8] = b"13";

/// How it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// By a request that is to change the protocol of its connection.
    Upgrade,
    /// By one that is to change that of its stream alone.
    Connect,
}

/// How the request asks for a WebSocket, if it does.
///
/// # Errors
/// When it is to become a tunnel that speaks something else.
pub(super) fn of(request: &Request) -> Result<Option<Handshake>, ApiError> {
    let Some(protocol) = request.extensions().get::<Protocol>() else {
        let is_asked = names_websocket(request.headers());
        return Ok(is_asked.then_some(Handshake::Upgrade));
    };
    if protocol.as_str().as_bytes() == WEBSOCKET {
        return Ok(Some(Handshake::Connect));
    }
    Err(ApiError::invalid(
        ":protocol",
        "must be websocket; ask for other streams with GET",
    ))
}

impl Handshake {
    /// The answer that takes it.
    ///
    /// # Errors
    /// When a header of it is missing, or is not as it has to be.
    pub(super) fn answer(self, request: &Request) -> Result<Response, ApiError> {
        match self {
            Self::Upgrade => {
                create_response_with_body(request, Body::empty).map_err(|fault| refusal(&fault))
            }
            Self::Connect => match request.headers().get(header::SEC_WEBSOCKET_VERSION) {
                Some(version) if version == VERSION => Ok(Response::default()),
                _ => Err(refusal(
                    &ProtocolError::MissingSecWebSocketVersionHeader.into(),
                )),
            },
        }
    }
}

fn names_websocket(headers: &HeaderMap) -> bool {
    let names = headers.get_all(header::UPGRADE).into_iter();
    names
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|name| name.trim_ascii().eq_ignore_ascii_case(WEBSOCKET))
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

    fn answered(request: &Request) -> Result<Option<Response>, ApiError> {
        let asked = of(request)?;
        asked.map(|handshake| handshake.answer(request)).transpose()
    }

    fn answered_with(changed: &str, value: Option<&str>) -> Result<Option<Response>, ApiError> {
        let mut builder = Request::builder();
        for (name, usual) in HANDSHAKE {
            let value = if name == changed { value } else { Some(usual) };
            if let Some(value) = value {
                builder = builder.header(name, value);
            }
        }
        answered(&builder.body(Body::empty()).expect("a request"))
    }

    #[test]
    fn a_handshake_is_answered_as_the_standard_says() {
        let answer = answered_with("", None).expect("a handshake");
        let answer = answer.expect("asked");
        assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
        // The standard's own example of a key.
        let accepted = &answer.headers()["sec-websocket-accept"];
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_asks_for_no_websocket_is_none() {
        for other in [None, Some("h2c"), Some("websockets")] {
            let answer = answered_with("upgrade", other).expect("no handshake");
            assert!(answer.is_none(), "{other:?}");
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
            let refused = answered_with(name, value).expect_err("a refusal");
            assert_eq!(refused.document()["field"], field, "{name} {value:?}");
            assert_eq!(refused.document()["status"], 400);
        }
    }

    /// As it comes over HTTP/2.
    fn connecting(protocol: &'static str, version: Option<&str>) -> Request {
        let mut builder = Request::builder().extension(Protocol::from_static(protocol));
        if let Some(version) = version {
            builder = builder.header(header::SEC_WEBSOCKET_VERSION, version);
        }
        builder.body(Body::empty()).expect("a request")
    }

    #[test]
    fn over_http2_a_stream_becomes_one_without_a_key() {
        let answer = answered(&connecting("websocket", Some("13")));
        let answer = answer.expect("a handshake").expect("asked");
        assert_eq!(answer.status(), StatusCode::OK);
        for (protocol, version, field) in [
            ("connect-udp", Some("13"), ":protocol"),
            ("websocket", None, "Sec-WebSocket-Version"),
            ("websocket", Some("8"), "Sec-WebSocket-Version"),
        ] {
            let refused = answered(&connecting(protocol, version));
            let problem = refused.expect_err("a refusal").document();
            assert_eq!(problem["field"], field, "{protocol} {version:?}");
            assert_eq!(problem["status"], 400);
        }
    }
}
