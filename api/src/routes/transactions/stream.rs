//! `GET /v1/transactions/{signature}/stream`: what becomes of a transaction, as server-sent events.

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
    state::AppState,
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
#[utoipa::path(
    get,
    path = "/v1/transactions/{signature}/stream",
    tag = "transactions",
    operation_id = "streamTransaction",
    params(("signature" = String, Path, description = "Its first signature, base 58.")),
    responses(
        (status = 200, description = "The stream; `data` of each event `status` is a status.", body = TransactionStatus, content_type = "text/event-stream"),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn stream(
    State(state): State<AppState>,
    Path(text): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    QueryMap::parse(request.uri().query().unwrap_or_default(), &[])?;
    let signature = signature(&text)?;
    let place = state
        .streams()
        .of_request(Peer::of(request.extensions()), request.headers())?;
    let shown = state.sender().read(&signature);
    let reading = Reading {
        signature,
        shown: shown.ok_or_else(|| unknown(&signature))?,
        next: Next::Status,
        shutdown: state.shutdown().clone(),
        _place: place,
    };
    Ok(answer::events(Body::from_stream(reading.events())))
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
            Some((Ok(event), reading))
        })
    }

    async fn event(&mut self) -> Option<Bytes> {
        match self.next {
            Next::Nothing => return None,
            Next::Status => {}
            Next::Change => {
                let change = timeout(BEAT, self.shown.changed());
                let shutdown = self.shutdown.clone();
                match shutdown.run_until_cancelled(change).await {
                    None => return Some(self.end(&ApiError::Stopping)),
                    Some(Err(_)) => return Some(Bytes::from_static(b": it stands\n\n")),
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
            Ok(json) => Some(format!("event: status\ndata: {json}\n\n").into()),
            Err(error) => Some(self.end(&ApiError::Internal(error.into()))),
        }
    }

    fn end(&mut self, reason: &ApiError) -> Bytes {
        self.next = Next::Nothing;
        format!("event: end\ndata: {}\n\n", reason.document()).into()
    }
}
