//! `GET /v1/transactions/{signature}/stream`: what becomes of a transaction, as server-sent events or over WebSocket.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    extract::{Path, Request, State},
    response::Response,
};
use bytes::Bytes;
use futures::{Stream, stream};
use service_kit::CancellationToken;
use solana_signature::Signature;
use tokio::{sync::watch, time::timeout};

use super::{signature, unknown, wire::TransactionStatus};
use crate::{
    answer,
    client::Peer,
    error::{ApiError, ProblemBody},
    extract::QueryMap,
    followed::Followed,
    places::Place,
    sockets::{self, SocketEvent, SocketEvents},
    state::AppState,
    stream_end::StreamEnd,
};

/// After how much silence a comment shows that the stream stands: proxies commonly close a connection on which nothing came
/// for a minute, some after half of one.
const BEAT: Duration = Duration::from_secs(15);

/// What becomes of a transaction
///
/// Server-sent events: `event: status` at once and whenever something of it changed, `data` what
/// `/v1/transactions/{signature}` answers. A reader that is slow is given the newest, and none of those between. A comment
/// every 15 seconds shows that the stream stands. It ends after the last status, of a transaction of which nothing more is
/// expected; when the service stops, with `event: end` and a problem as `data`.
///
/// With `Upgrade: websocket` the same comes over WebSocket: each event is a text message
/// `{"event": "status", "data": <status>}`, the sign of life a ping. After the last status the server closes with 1000; after
/// `end`, and what the reader must not send, as a stream of quotes.
#[utoipa::path(
    get,
    path = "/v1/transactions/{signature}/stream",
    tag = "transactions",
    operation_id = "streamTransaction",
    params(("signature" = String, Path, description = "Its first signature, base 58.")),
    responses(
        (status = 101, description = "The stream over WebSocket, where `Upgrade: websocket` asks for it."),
        (status = 200, description = "The stream; `data` of each event `status` is a status.", body = TransactionStatus, content_type = "text/event-stream"),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn stream(
    State(state): State<AppState>,
    Path(text): Path<String>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let opening = sockets::asked(state.origins(), &mut request)?;
    QueryMap::parse(request.uri().query().unwrap_or_default(), &[])?;
    let signature = signature(&text)?;
    let place = state
        .streams()
        .of_request(Peer::of(request.extensions()), request.headers())?;
    let share = place.share();
    let shown = state.sender().read(&signature);
    let reading = Reading {
        signature,
        shown: shown.ok_or_else(|| unknown(&signature))?,
        next: Next::Status,
        shutdown: state.shutdown().clone(),
        _place: place,
    };
    let mut answer = match opening {
        Some(opening) => opening.answer(reading),
        None => answer::events(Body::from_stream(reading.events())),
    };
    if let Some(share) = share {
        share.put(answer.headers_mut());
    }
    Ok(answer)
}

/// What is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// What is known now.
    Status,
    /// What changes.
    Change,
    /// Nothing.
    Nothing,
}

/// What is sent down a stream.
enum Event {
    /// What is known now, as JSON.
    Status { json: String },
    /// The stream stands.
    Beat,
    /// The last event.
    End(StreamEnd),
}

impl Event {
    fn into_sse(self) -> Bytes {
        match self {
            Self::Status { json } => format!("event: status\ndata: {json}\n\n").into(),
            // A comment, which a reader need not know of.
            Self::Beat => Bytes::from_static(b": it stands\n\n"),
            Self::End(end) => end.sse(),
        }
    }

    fn into_socket(self) -> SocketEvent {
        match self {
            Self::Status { json } => {
                SocketEvent::Message(format!(r#"{{"event":"status","data":{json}}}"#).into())
            }
            Self::Beat => SocketEvent::Beat("it stands".into()),
            Self::End(end) => SocketEvent::End(end),
        }
    }
}

/// One open stream, which holds its place until it is dropped.
struct Reading {
    signature: Signature,
    shown: watch::Receiver<Followed>,
    next: Next,
    shutdown: CancellationToken,
    _place: Place,
}

impl Reading {
    fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, async |mut reading| {
            let event = reading.event().await?;
            Some((Ok(event.into_sse()), reading))
        })
    }

    async fn event(&mut self) -> Option<Event> {
        match self.next {
            Next::Nothing => return None,
            Next::Status => {}
            Next::Change => {
                let change = timeout(BEAT, self.shown.changed());
                let shutdown = self.shutdown.clone();
                match shutdown.run_until_cancelled(change).await {
                    None => return Some(self.end(&ApiError::Stopping)),
                    Some(Err(_)) => return Some(Event::Beat),
                    // The sender ends with the service.
                    Some(Ok(Err(_))) => return Some(self.end(&ApiError::Stopping)),
                    Some(Ok(Ok(()))) => {}
                }
            }
        }
        let status = {
            let followed = self.shown.borrow_and_update();
            self.next = if followed.has_ended() {
                Next::Nothing
            } else {
                Next::Change
            };
            TransactionStatus::new(&self.signature, &followed)
        };
        match serde_json::to_string(&status) {
            Ok(json) => Some(Event::Status { json }),
            Err(error) => Some(self.end(&ApiError::Internal(error.into()))),
        }
    }

    fn end(&mut self, reason: &ApiError) -> Event {
        self.next = Next::Nothing;
        Event::End(StreamEnd::from(reason))
    }
}

impl SocketEvents for Reading {
    async fn next(&mut self) -> Option<SocketEvent> {
        Some(self.event().await?.into_socket())
    }
}
